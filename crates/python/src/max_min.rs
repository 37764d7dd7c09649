//! The max-min fair allocation of arrays.

use fairwave_schemes::global::{self, MaxMinError, Paths, PerSession, Problem};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Max-min fair rates in bit/s. `sessions` has a row a session; -1 reads as 2^32 - 1 and pads. Nothing is copied.
#[pyfunction]
#[pyo3(signature = (capacity_bps, sessions, demand_bps, weights))]
pub(crate) fn max_min<'py>(
    py: Python<'py>,
    capacity_bps: PyReadonlyArray1<'py, f64>,
    sessions: PyReadonlyArray2<'py, u32>,
    demand_bps: Option<PyReadonlyArray1<'py, f64>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let problem = Problem {
        capacities_bps: capacity_bps.as_slice()?,
        paths: Paths::Rows { width: sessions.shape()[1], resources: sessions.as_slice()? },
        demands_bps: demand_bps.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
        weights: weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
    };
    let outcome = py.detach(|| global::max_min(&problem));
    match outcome {
        Ok(optimum) => Ok(optimum.rates_bps.into_pyarray(py)),
        Err(error) => Err(PyValueError::new_err(format!("{}: {error}", argument(&error)))),
    }
}

/// The argument that an error is about.
fn argument(error: &MaxMinError) -> &'static str {
    match error {
        MaxMinError::Capacity { .. } => "capacity_bps",
        MaxMinError::Demand { .. } | MaxMinError::Length { what: PerSession::Demands, .. } => "demand_bps",
        MaxMinError::Weight { .. } | MaxMinError::Length { what: PerSession::Weights, .. } => "weights",
        _ => "sessions",
    }
}
