//! The text as a tree of values with their lines.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, ReadResult};
use super::position::{LineStarts, Position};
use super::shape;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    pub(crate) value: TomlValue,
    pub(crate) place: Position,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TomlValue {
    Text(Box<str>),
    /// `None` beyond the range of an i128.
    Integer(Option<i128>),
    Float(f64),
    Flag(bool),
    Date,
    List(Vec<Located>),
    Table(TomlTable),
}

/// Keys with their values, sorted by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TomlTable {
    entries: Vec<TableKey>,
}

/// One key of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableKey {
    pub(crate) key: Box<str>,
    /// Position of the key.
    pub(crate) place: Position,
    pub(crate) item: Located,
}

impl TomlTable {
    pub(crate) fn get(&self, key: &str) -> Option<&Located> {
        self.find(key).ok().map(|at| &self.entries[at].item)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Located> {
        self.find(key).ok().map(|at| &mut self.entries[at].item)
    }

    /// Sets a key, replacing an earlier value.
    pub(crate) fn set(&mut self, entry: TableKey) {
        match self.find(&entry.key) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Located> {
        self.find(key).ok().map(|at| self.entries.remove(at).item)
    }

    pub(crate) fn entries(&self) -> &[TableKey] {
        &self.entries
    }

    /// Gives every value in it one position.
    fn relocate(&mut self, place: Position) {
        for entry in &mut self.entries {
            entry.place = place;
            entry.item.relocate(place);
        }
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| (*entry.key).cmp(key))
    }

    /// A table of keys in any order; of equal keys the last one counts.
    pub(crate) fn from_entries(mut entries: Vec<TableKey>) -> Self {
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Self { entries }
    }
}

impl Located {
    /// Gives the table and every value in it one position.
    pub(crate) fn relocate(&mut self, place: Position) {
        self.place = place;
        match &mut self.value {
            TomlValue::List(items) => items.iter_mut().for_each(|item| item.relocate(place)),
            TomlValue::Table(table) => table.relocate(place),
            _ => {}
        }
    }
}

impl TomlValue {
    /// Its kind, with an article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads TOML text.
pub(crate) fn parse(text: &str) -> ReadResult<TomlTable> {
    let lines = LineStarts::new(text);
    shape::check(text, &lines)?;
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Mistake::new(
            Position::Line(lines.line(at)),
            format!("not TOML: {}", error.message()),
            syntax_hint(error.message(), lines.text(text, at)),
        )
    })?;
    table(root.into_inner(), &lines)
}

/// Most broken lines are quantities without quotes.
fn syntax_hint(message: &str, line: &str) -> String {
    if message.contains("duplicate key") {
        return "the key is already set above in the same table".to_owned();
    }
    let value = line.split_once('=').map_or("", |(_, value)| value.split('#').next().unwrap_or("").trim());
    if value.is_empty() || value.contains(['"', '\'', '[', '{']) {
        return "a line is key = value, [table], [[table]] or # a remark".to_owned();
    }
    format!("write text and quantities in quotes: \"{}\"", value.chars().take(40).collect::<String>())
}

fn table(table: DeTable<'_>, lines: &LineStarts) -> ReadResult<TomlTable> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let place = Position::Line(lines.line(key.span().start));
        entries.push(TableKey { key: key.into_inner().into(), place, item: item(value, lines)? });
    }
    Ok(TomlTable::from_entries(entries))
}

fn item(value: Spanned<DeValue<'_>>, lines: &LineStarts) -> ReadResult<Located> {
    let place = Position::Line(lines.line(value.span().start));
    let value = match value.into_inner() {
        DeValue::String(text) => TomlValue::Text(text.into()),
        DeValue::Integer(whole) => TomlValue::Integer(i128::from_str_radix(whole.as_str(), whole.radix()).ok()),
        DeValue::Float(number) => TomlValue::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => TomlValue::Flag(flag),
        DeValue::Datetime(_) => TomlValue::Date,
        DeValue::Array(items) => {
            let items = items.into_iter().map(|value| item(value, lines));
            TomlValue::List(items.collect::<ReadResult<_>>()?)
        }
        DeValue::Table(inner) => TomlValue::Table(table(inner, lines)?),
    };
    Ok(Located { value, place })
}
