//! Rows as columns.

use crate::{Cell, Row};

/// The columns of a table, all of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns, in the order of the first row with each.
    pub columns: Vec<Column>,
}

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub data: ColumnData,
}

/// Values of one kind, `None` if a row has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Counts and seeds.
    Count(Vec<Option<u64>>),
    /// Switches.
    Flag(Vec<Option<bool>>),
    /// Words, and values of mixed kinds.
    Text(Vec<Option<String>>),
}

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No row has a value.
    Nothing,
    Float,
    Count,
    Flag,
    Text,
}

/// The columns of rows that are read one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub(crate) columns: Vec<(String, Kind)>,
    by_name: std::collections::HashMap<String, usize>,
}

impl Schema {
    /// Adds the columns of a row.
    pub(crate) fn see(&mut self, row: &Row) {
        for (place, (name, cell)) in row.iter().enumerate() {
            let kind = match cell {
                Cell::Null => Kind::Nothing,
                Cell::Float(_) => Kind::Float,
                Cell::Count(_) => Kind::Count,
                Cell::Flag(_) => Kind::Flag,
                Cell::Text(_) => Kind::Text,
            };
            // Most rows have the same columns in the same order.
            let at = match self.columns.get(place) {
                Some((known, _)) if known == name => place,
                _ => *self.by_name.entry(name.clone()).or_insert_with(|| {
                    self.columns.push((name.clone(), Kind::Nothing));
                    self.columns.len() - 1
                }),
            };
            let known = &mut self.columns[at].1;
            *known = match (*known, kind) {
                (Kind::Nothing, kind) | (kind, Kind::Nothing) => kind,
                (one, other) if one == other => one,
                (Kind::Float, Kind::Count) | (Kind::Count, Kind::Float) => Kind::Float,
                _ => Kind::Text,
            };
        }
    }

    /// An empty table with these columns.
    pub(crate) fn table(&self) -> Table {
        let column = |(name, kind): &(String, Kind)| Column {
            name: name.clone(),
            data: match kind {
                Kind::Nothing | Kind::Float => ColumnData::Float(Vec::new()),
                Kind::Count => ColumnData::Count(Vec::new()),
                Kind::Flag => ColumnData::Flag(Vec::new()),
                Kind::Text => ColumnData::Text(Vec::new()),
            },
        };
        Table { columns: self.columns.iter().map(column).collect() }
    }

    /// Adds a row to a table with these columns.
    pub(crate) fn push(&self, table: &mut Table, row: Row) {
        let mut cells = vec![Cell::Null; self.columns.len()];
        for (place, (name, cell)) in row.into_iter().enumerate() {
            let at = match self.columns.get(place) {
                Some((known, _)) if *known == name => Some(place),
                _ => self.by_name.get(&name).copied(),
            };
            if let Some(at) = at {
                cells[at] = cell;
            }
        }
        for (column, cell) in table.columns.iter_mut().zip(cells) {
            match &mut column.data {
                ColumnData::Float(values) => values.push(cell.number()),
                ColumnData::Count(values) => values.push(match cell {
                    Cell::Count(count) => Some(count),
                    _ => None,
                }),
                ColumnData::Flag(values) => values.push(match cell {
                    Cell::Flag(flag) => Some(flag),
                    _ => None,
                }),
                ColumnData::Text(values) => values.push((cell != Cell::Null).then(|| cell.text())),
            }
        }
    }
}

impl Table {
    /// The table of these rows.
    pub fn of(rows: Vec<Row>) -> Self {
        let mut schema = Schema::default();
        for row in &rows {
            schema.see(row);
        }
        let mut table = schema.table();
        for row in rows {
            schema.push(&mut table, row);
        }
        table
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ColumnData {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Float(values) => values.len(),
            Self::Count(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of its values.
    pub fn cell(&self, row: usize) -> Cell {
        match self {
            Self::Float(values) => values.get(row).copied().flatten().map_or(Cell::Null, Cell::Float),
            Self::Count(values) => values.get(row).copied().flatten().map_or(Cell::Null, Cell::Count),
            Self::Flag(values) => values.get(row).copied().flatten().map_or(Cell::Null, Cell::Flag),
            Self::Text(values) => values.get(row).cloned().flatten().map_or(Cell::Null, Cell::Text),
        }
    }
}
