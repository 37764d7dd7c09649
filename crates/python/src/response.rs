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
    let mut windows = Vec::with_capacity(loss_rate.as_slice()?.len());
    for (position, &loss_rate) in loss_rate.as_slice()?.iter().enumerate() {
        if !(loss_rate > 0.0 && loss_rate < 1.0) {
            return Err(PyValueError::new_err(format!("loss_rate[{position}]: {loss_rate} must be between 0 and 1")));
        }
        let window = window(scheme, loss_rate)
            .ok_or_else(|| PyValueError::new_err(format!("scheme: \"{scheme}\" has no response function")))?;
        windows.push(window);
    }
    Ok(PyArray1::from_vec(py, windows))
}
