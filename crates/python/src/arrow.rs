//! Tables for other libraries, by the Arrow PyCapsule interface: polars, pyarrow, pandas and DuckDB take them without a
//! file between, and without pyarrow.

use std::ffi::CString;
use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow_stream::{ArrowBuffer, ArrowColumn, ArrowRows, ArrowSchema, ArrowStream, count};

/// Columns that are handed over as often as somebody asks for them.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct ArrowTable {
    rows: Arc<ArrowRows>,
}

/// A column as the Python side gives it.
#[derive(FromPyObject)]
enum GivenColumn<'py> {
    Floats(PyReadonlyArray1<'py, f64>),
    Counts(PyReadonlyArray1<'py, i64>),
    Flags(PyReadonlyArray1<'py, bool>),
    /// Numbers of words, -1 for none, and the words.
    Names((PyReadonlyArray1<'py, i32>, Vec<String>)),
    Words(Vec<Option<String>>),
}

#[pymethods]
impl ArrowTable {
    /// Copies columns, which must be of one length. NaN and None are nulls.
    #[new]
    fn new(named: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let mut columns = Vec::with_capacity(named.len());
        for (name, given) in named {
            let given: GivenColumn<'_> = given.extract().map_err(|_| {
                PyTypeError::new_err(format!(
                    "column \"{name}\" has an unsupported type: expected numbers, booleans or strings"
                ))
            })?;
            let name = CString::new(name).map_err(|_| PyValueError::new_err("a column name contains a zero byte"))?;
            columns.push(column(name, &given)?);
        }
        let length = columns.first().map_or(0, ArrowColumn::length);
        if let Some(other) = columns.iter().find(|column| column.length() != length) {
            let what = format!("{length} rows, and {} in column {:?}", other.length(), other.name());
            return Err(PyValueError::new_err(what));
        }
        Ok(Self { rows: Arc::new(ArrowRows { columns, length }) })
    }

    /// How many rows it has.
    fn __len__(&self) -> usize {
        self.rows.length
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.rows.columns.iter().map(|column| column.name().to_string_lossy().into_owned()).collect()
    }

    /// The types of the columns, by the PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, ArrowSchema::of(&self.rows), c"arrow_schema")
    }

    /// The rows, by the PyCapsule interface. Another schema may be asked for, and this one is given.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        PyCapsule::new_with_value(py, ArrowStream::of(&self.rows), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<ArrowTable: {} rows, {} columns>", self.rows.length, self.rows.columns.len())
    }
}

fn column(name: CString, given: &GivenColumn<'_>) -> PyResult<ArrowColumn> {
    Ok(match given {
        GivenColumn::Floats(values) => {
            let values: Vec<f64> = values.as_array().iter().copied().collect();
            let (valid, nulls) = validity(values.iter().map(|value| !value.is_nan()));
            ArrowColumn::new(name, c"g", values.len(), nulls, vec![valid, ArrowBuffer::Floats(values)])
        }
        GivenColumn::Counts(values) => {
            let values: Vec<i64> = values.as_array().iter().copied().collect();
            ArrowColumn::new(name, c"l", values.len(), 0, vec![ArrowBuffer::Absent, ArrowBuffer::Counts(values)])
        }
        GivenColumn::Flags(values) => {
            let length = values.as_array().len();
            let flags = bits(values.as_array().iter().copied());
            ArrowColumn::new(name, c"b", length, 0, vec![ArrowBuffer::Absent, ArrowBuffer::Bytes(flags)])
        }
        GivenColumn::Words(words) => texts(name, words.iter().map(Option::as_deref)),
        GivenColumn::Names((codes, words)) => {
            let codes: Vec<i32> = codes.as_array().iter().copied().collect();
            let most = i32::try_from(words.len()).unwrap_or(i32::MAX);
            if let Some(code) = codes.iter().find(|code| !(-1..most).contains(*code)) {
                return Err(PyValueError::new_err(format!("column {name:?}: no category {code}")));
            }
            let (valid, nulls) = validity(codes.iter().map(|code| *code >= 0));
            let length = codes.len();
            // A null's code is not looked at, but has to be one.
            let codes = codes.into_iter().map(|code| code.max(0)).collect();
            let column = ArrowColumn::new(name, c"i", length, nulls, vec![valid, ArrowBuffer::Codes(codes)]);
            column.with_words(texts(CString::default(), words.iter().map(|word| Some(word.as_str()))))
        }
    })
}

/// Words with 64-bit offsets.
fn texts<'a>(name: CString, words: impl Iterator<Item = Option<&'a str>> + Clone) -> ArrowColumn {
    let (valid, nulls) = validity(words.clone().map(|word| word.is_some()));
    let (mut offsets, mut bytes) = (vec![0_i64], Vec::new());
    for word in words {
        bytes.extend_from_slice(word.unwrap_or_default().as_bytes());
        offsets.push(count(bytes.len()));
    }
    let length = offsets.len() - 1;
    let buffers = vec![valid, ArrowBuffer::Counts(offsets), ArrowBuffer::Bytes(bytes)];
    ArrowColumn::new(name, c"U", length, nulls, buffers)
}

/// The bitmap of what is there, absent where all is, and how many are missing.
fn validity(is_there: impl Iterator<Item = bool> + Clone) -> (ArrowBuffer, usize) {
    match is_there.clone().filter(|is_there| !is_there).count() {
        0 => (ArrowBuffer::Absent, 0),
        nulls => (ArrowBuffer::Bytes(bits(is_there)), nulls),
    }
}

/// Eight a byte, the first in the lowest place.
fn bits(flags: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, flag) in flags.enumerate() {
        if at % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(flag) << (at % 8);
        }
    }
    bytes
}
