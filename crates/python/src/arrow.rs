//! Tables for other libraries, through the Arrow PyCapsule interface: polars, pyarrow, pandas and DuckDB read them
//! without a file and without pyarrow.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, RecordBatchOptions,
};
use arrow_schema::{Field, Schema, ffi::FFI_ArrowSchema};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Columns that can be exported any number of times.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct ArrowTable {
    rows: RecordBatch,
}

/// A column as the Python side passes it.
#[derive(FromPyObject)]
enum GivenColumn<'py> {
    Floats(PyReadonlyArray1<'py, f64>),
    Counts(PyReadonlyArray1<'py, i64>),
    Flags(PyReadonlyArray1<'py, bool>),
    /// Indices of words, -1 for a null, and the words.
    Names((PyReadonlyArray1<'py, i32>, Vec<String>)),
    Words(Vec<Option<String>>),
}

#[pymethods]
impl ArrowTable {
    /// Copies columns, which must have the same length. NaN and None become nulls.
    #[new]
    fn new(named: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let (mut fields, mut columns) = (Vec::with_capacity(named.len()), Vec::with_capacity(named.len()));
        for (name, given) in named {
            let given: GivenColumn<'_> = given.extract().map_err(|_| {
                PyTypeError::new_err(format!(
                    "column \"{name}\" has an unsupported type: expected numbers, booleans or strings"
                ))
            })?;
            if name.contains('\0') {
                return Err(PyValueError::new_err("a column name contains a zero byte"));
            }
            let column = column(&name, &given)?;
            fields.push(Field::new(name, column.data_type().clone(), true));
            columns.push(column);
        }
        let length = columns.first().map_or(0, |column| column.len());
        if let Some((other, field)) = columns.iter().zip(&fields).find(|(column, _)| column.len() != length) {
            let what = format!("{length} rows, and {} in column {:?}", other.len(), field.name());
            return Err(PyValueError::new_err(what));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
        Ok(Self { rows: rows.map_err(|error| PyValueError::new_err(error.to_string()))? })
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.rows.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The types of the columns, for the PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.rows.schema_ref().as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, for the PyCapsule interface. A caller may ask for another schema; it gets this one.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let rows = RecordBatchIterator::new([Ok(self.rows.clone())], self.rows.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<ArrowTable: {} rows, {} columns>", self.rows.num_rows(), self.rows.num_columns())
    }
}

fn column(name: &str, given: &GivenColumn<'_>) -> PyResult<ArrayRef> {
    Ok(match given {
        GivenColumn::Floats(values) => {
            let values = values.as_array();
            Arc::new(values.iter().map(|value| (!value.is_nan()).then_some(*value)).collect::<Float64Array>())
        }
        GivenColumn::Counts(values) => Arc::new(Int64Array::from_iter_values(values.as_array().iter().copied())),
        GivenColumn::Flags(values) => {
            Arc::new(values.as_array().iter().map(|flag| Some(*flag)).collect::<BooleanArray>())
        }
        GivenColumn::Words(words) => Arc::new(LargeStringArray::from_iter(words)),
        GivenColumn::Names((codes, words)) => {
            let codes = codes.as_array();
            let end = i32::try_from(words.len()).unwrap_or(i32::MAX);
            if let Some(code) = codes.iter().find(|code| !(-1..end).contains(*code)) {
                return Err(PyValueError::new_err(format!("column {name:?}: no category {code}")));
            }
            let codes: Int32Array = codes.iter().map(|code| (*code >= 0).then_some(*code)).collect();
            let names = DictionaryArray::try_new(codes, Arc::new(LargeStringArray::from_iter_values(words)));
            Arc::new(names.map_err(|error| PyValueError::new_err(format!("column {name:?}: {error}")))?)
        }
    })
}
