//! Tables as Parquet files.

use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};

use crate::table::{ColumnData, Table};
use crate::{Cell, Row, StudyError};

/// A Parquet file under construction, written as successive tables with the same columns.
pub(crate) struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> ParquetFile<W> {
    /// A file with the columns of this table, and metadata.
    pub(crate) fn new(into: W, columns: &Table, words: &[(&str, String)]) -> Result<Self, ParquetError> {
        let words = words.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("fairwave ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(words))
            .build();
        Ok(Self { writer: SerializedFileWriter::new(into, schema(columns)?, Arc::new(properties))? })
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, rows: &Table) -> Result<(), ParquetError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &rows.columns {
            add_column(&mut group, &column.data)?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file and returns its writer.
    pub(crate) fn end(self) -> Result<W, ParquetError> {
        self.writer.into_inner()
    }
}

fn schema(columns: &Table) -> Result<TypePtr, ParquetError> {
    let fields = columns.columns.iter().map(|column| {
        let (physical, logical) = match column.data {
            ColumnData::Float(_) => (Physical::DOUBLE, None),
            ColumnData::Count(_) => (Physical::INT64, None),
            ColumnData::Flag(_) => (Physical::BOOLEAN, None),
            ColumnData::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(&column.name, physical).with_logical_type(logical);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn add_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    data: &ColumnData,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".into()));
    };
    match data {
        ColumnData::Float(values) => {
            let there: Vec<f64> = values.iter().flatten().copied().collect();
            column.typed::<DoubleType>().write_batch(&there, Some(&levels(values)), None)?;
        }
        ColumnData::Count(values) => {
            let there: Vec<i64> = values.iter().flatten().map(|value| value.cast_signed()).collect();
            column.typed::<Int64Type>().write_batch(&there, Some(&levels(values)), None)?;
        }
        ColumnData::Flag(values) => {
            let there: Vec<bool> = values.iter().flatten().copied().collect();
            column.typed::<BoolType>().write_batch(&there, Some(&levels(values)), None)?;
        }
        ColumnData::Text(values) => {
            let there: Vec<ByteArray> = values.iter().flatten().map(|value| value.as_str().into()).collect();
            column.typed::<ByteArrayType>().write_batch(&there, Some(&levels(values)), None)?;
        }
    }
    column.close()
}

/// Parquet's definition levels: which values are present.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

/// A value of a Parquet file's metadata; `None` if it cannot be read.
pub(crate) fn metadata_of(path: &Path, word: &str) -> Option<String> {
    let read = catch_unwind(|| {
        let reader = SerializedFileReader::new(File::open(path).ok()?).ok()?;
        let words = reader.metadata().file_metadata().key_value_metadata()?;
        words.iter().find(|pair| pair.key == word)?.value.clone()
    });
    read.ok().flatten()
}

/// The rows of a Parquet file, one by one.
pub(crate) fn read_rows(path: &Path, hear: &mut dyn FnMut(Row) -> Result<(), StudyError>) -> Result<(), StudyError> {
    let broken = |what: String| {
        StudyError::refused(
            path,
            format!("not a readable Parquet file: {what}"),
            "choose another --out, or move it away",
        )
    };
    // The library checks its input; a panic caused by anything that it misses must not end the process.
    let rows = catch_unwind(AssertUnwindSafe(|| -> Result<Result<(), StudyError>, ParquetError> {
        let file = File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
        let reader = SerializedFileReader::new(file)?;
        for row in reader.get_row_iter(None)? {
            let row: Row = row?.get_column_iter().map(|(name, field)| (name.clone(), cell(field))).collect();
            if let Err(error) = hear(row) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }));
    match rows {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(broken(error.to_string())),
        Err(_) => Err(broken("corrupt file".into())),
    }
}

fn cell(field: &Field) -> Cell {
    match field {
        Field::Null => Cell::Null,
        Field::Bool(flag) => Cell::Flag(*flag),
        Field::Double(number) => Cell::Float(*number),
        Field::Float(number) => Cell::Float(f64::from(*number)),
        Field::ULong(count) => Cell::of_count(*count),
        Field::Long(count) => u64::try_from(*count).map_or(Cell::Float(*count as f64), Cell::Count),
        Field::Str(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    }
}
