//! A table with its permitted keys, and its values with the means to report mistakes.

use std::fmt;

use super::mistake::{Mistake, ReadResult, did_you_mean, quoted};
use super::position::Position;
use super::tree::{Located, TomlTable, TomlValue};

/// The top-level keys of a file.
pub(crate) const TOP_KEYS: &[&str] = &[
    "arrivals",
    "background",
    "cites",
    "duration",
    "ecmp",
    "generate",
    "link",
    "name",
    "node",
    "options",
    "packet",
    "router",
    "runs",
    "sample",
    "scheme",
    "seed",
    "session",
    "start_jitter",
    "title",
    "topology",
    "variant",
];

/// The scheme of a file that sets none.
pub(crate) const DEFAULT_SCHEME: &str = "gtp";

/// The item that a table describes, as the start of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thing<'a> {
    /// The file's own keys.
    Top,
    /// `[options]`.
    Section(&'static str),
    /// `node "d1"`.
    Named(&'static str, &'a str),
    /// `[[session]] 3`, counted from one.
    Nth(&'static str, usize),
    /// "options of session "a"", `red of link "l"`.
    Part(&'static str, &'static str, &'a str),
}

impl fmt::Display for Thing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Section(name) => write!(f, "[{name}]: "),
            Self::Named(kind, name) => write!(f, "{kind} {}: ", quoted(name)),
            Self::Nth(kind, n) => write!(f, "[[{kind}]] {n}: "),
            Self::Part(part, kind, name) => write!(f, "{part} of {kind} {}: ", quoted(name)),
        }
    }
}

/// A table whose keys are all known.
#[derive(Clone, Copy)]
pub(crate) struct TableReader<'a> {
    pub(crate) thing: Thing<'a>,
    pub(crate) place: Position,
    table: &'a TomlTable,
    keys: &'static [&'static str],
}

/// One value and its key.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) thing: Thing<'a>,
    pub(crate) key: &'a str,
    pub(crate) item: &'a Located,
}

impl<'a> TableReader<'a> {
    /// A reader of a table; an error for the first key in the file that is not in the list.
    pub(crate) fn new(
        thing: Thing<'a>,
        place: Position,
        table: &'a TomlTable,
        keys: &'static [&'static str],
    ) -> ReadResult<Self> {
        let unknown =
            table.entries().iter().filter(|entry| !keys.contains(&&*entry.key)).min_by_key(|entry| entry.place);
        match unknown {
            None => Ok(Self { thing, place, table, keys }),
            Some(entry) => {
                let hint =
                    misplaced(&entry.key, thing).unwrap_or_else(|| did_you_mean(&entry.key, keys.iter().copied()));
                Err(Mistake::new(entry.place, format!("{thing}unknown key {}", quoted(&entry.key)), hint))
            }
        }
    }

    /// A key's value.
    pub(crate) fn get(&self, key: &'static str) -> Option<Field<'a>> {
        debug_assert!(self.keys.contains(&key), "\"{key}\" is missing from the list of keys");
        self.table.get(key).map(|item| Field { thing: self.thing, key, item })
    }

    /// The value of a required key.
    pub(crate) fn need(&self, key: &'static str, hint: &str) -> ReadResult<Field<'a>> {
        self.get(key).ok_or_else(|| self.wrong(format!("{key} is missing"), hint))
    }

    /// Reads a key's value, if present.
    pub(crate) fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(Field<'a>) -> ReadResult<T>,
    ) -> ReadResult<Option<T>> {
        self.get(key).map(read).transpose()
    }

    /// Reads a key's value, or returns the default.
    pub(crate) fn read_or<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl FnOnce(Field<'a>) -> ReadResult<T>,
    ) -> ReadResult<T> {
        self.get(key).map_or(Ok(default), read)
    }

    /// A mistake of the table as a whole.
    pub(crate) fn wrong(&self, message: impl fmt::Display, hint: impl Into<String>) -> Mistake {
        Mistake::new(self.place, format!("{}{message}", self.thing), hint)
    }
}

impl<'a> Field<'a> {
    /// A mistake at this value: `session "a": rtt "1 Mb" is ...`.
    pub(crate) fn wrong(self, what: impl fmt::Display, hint: impl Into<String>) -> Mistake {
        let Self { thing, key, item } = self;
        let message = match shown(&item.value) {
            Some(value) => format!("{thing}{key} {value} {what}"),
            None => format!("{thing}{key} {what}"),
        };
        Mistake::new(item.place, message, hint)
    }

    /// A mistake of the wrong type.
    pub(crate) fn not(self, meant: &str, example: &str) -> Mistake {
        self.wrong(format!("is {}, not {meant}", self.item.value.kind()), format!("write it like {example}"))
    }

    /// This key with another value: an entry of a list.
    pub(crate) fn entry(self, item: &'a Located) -> Self {
        Self { item, ..self }
    }

    pub(crate) fn text(self) -> ReadResult<&'a str> {
        match &self.item.value {
            TomlValue::Text(text) => Ok(text),
            _ => Err(self.not("text", "\"...\", in quotes")),
        }
    }

    pub(crate) fn flag(self) -> ReadResult<bool> {
        match self.item.value {
            TomlValue::Flag(flag) => Ok(flag),
            _ => Err(self.not("true or false", "true")),
        }
    }

    pub(crate) fn list(self, example: &str) -> ReadResult<&'a [Located]> {
        match &self.item.value {
            TomlValue::List(items) => Ok(items),
            _ => Err(self.not("a list", example)),
        }
    }

    pub(crate) fn table(self, example: &str) -> ReadResult<&'a TomlTable> {
        match &self.item.value {
            TomlValue::Table(table) => Ok(table),
            _ => Err(self.not("a table", example)),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn whole(self, least: u64, most: u64) -> ReadResult<u64> {
        let TomlValue::Integer(whole) = self.item.value else {
            return Err(self.not("a whole number", &least.to_string()));
        };
        whole.and_then(|whole| u64::try_from(whole).ok()).filter(|whole| (least..=most).contains(whole)).ok_or_else(
            || self.wrong(format!("must be from {least} to {most}"), format!("for instance {} = {least}", self.key)),
        )
    }

    /// A number within bounds; `open` excludes the bounds.
    pub(crate) fn number(self, least: f64, most: f64, open: bool) -> ReadResult<f64> {
        let number = match self.item.value {
            TomlValue::Integer(Some(whole)) => whole as f64,
            TomlValue::Integer(None) => f64::INFINITY,
            TomlValue::Float(number) => number,
            _ => return Err(self.not("a number", &if open { f64::midpoint(least, most) } else { least }.to_string())),
        };
        // No range contains NaN.
        let fits = if open { least < number && number < most } else { least <= number && number <= most };
        if fits {
            // An integer zero and -0.0 are equal.
            return Ok(number + 0.0);
        }
        let hint = format!("for instance {} = {}", self.key, example(least, most));
        Err(self.wrong(
            if open {
                format!("must be above {least} and below {most}")
            } else {
                format!("must be from {least} to {most}")
            },
            hint,
        ))
    }

    /// One of a list of words.
    pub(crate) fn word<T: Copy>(self, words: &[(&'static str, T)]) -> ReadResult<T> {
        let text = self.text()?;
        words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| self.wrong("is unknown", did_you_mean(text, words.iter().map(|(word, _)| *word))))
    }

    /// Text for users: one line of limited length.
    pub(crate) fn line(self) -> ReadResult<String> {
        let text = self.text()?;
        if text.chars().any(char::is_control) {
            return Err(
                self.wrong("must be one line of printable characters", "leave out control characters and line breaks")
            );
        }
        if text.chars().count() > crate::limits::TEXT_CHARS {
            return Err(
                self.wrong(format!("is longer than {} characters", crate::limits::TEXT_CHARS), "use a shorter text")
            );
        }
        Ok(text.to_owned())
    }
}

/// A plausible number within bounds.
fn example(least: f64, most: f64) -> f64 {
    [0.1, 1.0].into_iter().find(|number| least < *number && *number < most).unwrap_or(most)
}

/// A key of the file below a section's head belongs to the section, in TOML.
fn misplaced(key: &str, thing: Thing<'_>) -> Option<String> {
    let is_misplaced = !matches!(thing, Thing::Top) && TOP_KEYS.contains(&key);
    is_misplaced.then(|| format!("{key} is a key of the file as a whole: write it above the first line in brackets"))
}

/// A value as shown in messages; `None` for lists and tables, which are too long.
fn shown(value: &TomlValue) -> Option<String> {
    match value {
        TomlValue::Text(text) => Some(quoted(text)),
        TomlValue::Integer(Some(whole)) => Some(whole.to_string()),
        TomlValue::Float(number) => Some(number.to_string()),
        TomlValue::Flag(flag) => Some(flag.to_string()),
        TomlValue::Integer(None) | TomlValue::Date | TomlValue::List(_) | TomlValue::Table(_) => None,
    }
}
