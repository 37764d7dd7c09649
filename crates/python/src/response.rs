//! Response functions over an array of loss rates.

use fairwave_schemes::response::window;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Mean windows in packets at loss rates.
#[pyfunction]
#[pyo3(signature = (scheme, loss_rate))]
pub(crate) fn response<'py>(
    py: Python<'py>,
    scheme: &str,
    loss_rate: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    if window(scheme, 0.5).is_none() {
        return Err(PyValueError::new_err(format!("scheme: \"{scheme}\" has no response function")));
    }
    let loss_rate = loss_rate.as_slice()?;
    if let Some(position) = loss_rate.iter().position(|loss_rate| !(*loss_rate > 0.0 && *loss_rate < 1.0)) {
        let wrong = loss_rate[position];
        return Err(PyValueError::new_err(format!("loss_rate[{position}]: {wrong} must be between 0 and 1")));
    }
    let windows = loss_rate.iter().filter_map(|loss_rate| window(scheme, *loss_rate)).collect();
    Ok(PyArray1::from_vec(py, windows))
}
