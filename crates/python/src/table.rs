//! Tables of Parquet files as columns of Python, and back.

use std::path::PathBuf;

use fairwave_study::{Column, ColumnData, Table};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::failed;

/// A table as arrays by name: numbers without a value are NaN, words without one None.
pub(crate) fn columns(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for Column { name, data } in table.columns {
        match data {
            ColumnData::Float(values) => {
                let values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
                columns.set_item(name, values.into_pyarray(py))?;
            }
            ColumnData::Count(values) if values.iter().all(Option::is_some) => {
                let values: Vec<i64> = values.into_iter().flatten().map(u64::cast_signed).collect();
                columns.set_item(name, values.into_pyarray(py))?;
            }
            ColumnData::Count(values) => {
                let values: Vec<f64> = values.into_iter().map(|value| value.map_or(f64::NAN, |it| it as f64)).collect();
                columns.set_item(name, values.into_pyarray(py))?;
            }
            ColumnData::Flag(values) if values.iter().all(Option::is_some) => {
                columns.set_item(name, values.into_iter().flatten().collect::<Vec<bool>>().into_pyarray(py))?;
            }
            ColumnData::Flag(values) => columns.set_item(name, values)?,
            ColumnData::Text(values) => columns.set_item(name, values)?,
        }
    }
    Ok(columns)
}

/// Writes columns as a Parquet file: arrays of numbers, counts and switches, and lists of words or None.
#[pyfunction]
pub(crate) fn write_parquet(py: Python<'_>, path: PathBuf, named: &Bound<'_, PyDict>, about: String) -> PyResult<()> {
    let mut table = Table::default();
    for (name, values) in named {
        let name: String = name.extract()?;
        let data = if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f64>>() {
            ColumnData::Float(values.as_array().iter().map(|value| (!value.is_nan()).then_some(*value)).collect())
        } else if let Ok(values) = values.extract::<PyReadonlyArray1<'_, i64>>() {
            let count = |value: &i64| u64::try_from(*value).ok();
            ColumnData::Count(values.as_array().iter().map(count).collect())
        } else if let Ok(values) = values.extract::<PyReadonlyArray1<'_, bool>>() {
            ColumnData::Flag(values.as_array().iter().map(|value| Some(*value)).collect())
        } else if let Ok(values) = values.extract::<Vec<Option<String>>>() {
            ColumnData::Text(values)
        } else {
            return Err(PyTypeError::new_err(format!(
                "column \"{name}\" has an unsupported type: expected numbers or text"
            )));
        };
        table.columns.push(Column { name, data });
    }
    let written = py.detach(|| fairwave_study::write_parquet(&path, &table, &[("fairwave.about", about)]));
    written.map_err(|error| failed(py, &error))
}

/// The columns of a Parquet file.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let table = py.detach(|| fairwave_study::read_parquet(&path)).map_err(|error| failed(py, &error))?;
    columns(py, table)
}
