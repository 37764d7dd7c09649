//! The list of schemes as columns.

use fairwave_schemes::scheme::{self, Scheme};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Columns `name`, `kind`, `models`, `needs`, `options` (name to default), `header_bytes`, `cites`, `help`.
#[pyfunction]
pub(crate) fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("name", column(|scheme| scheme.name))?;
    columns.set_item("kind", column(|scheme| scheme.kind.name()))?;
    columns.set_item("models", column(|scheme| scheme.models.iter().map(|model| model.name()).collect::<Vec<_>>()))?;
    columns.set_item("needs", column(|scheme| scheme.needs))?;
    let options = scheme::schemes().iter().map(|scheme| {
        let options = PyDict::new(py);
        scheme.options.iter().try_for_each(|option| options.set_item(option.name, option.default))?;
        Ok(options)
    });
    columns.set_item("options", options.collect::<PyResult<Vec<_>>>()?)?;
    columns.set_item("header_bytes", column(|scheme| scheme.header.get()))?;
    columns.set_item("cites", column(|scheme| scheme.cites))?;
    columns.set_item("help", column(|scheme| scheme.help))?;
    Ok(columns)
}

fn column<T>(entry: impl Fn(&Scheme) -> T) -> Vec<T> {
    scheme::schemes().iter().map(entry).collect()
}
