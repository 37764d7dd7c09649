//! A scheme by its name, and its options.

use std::sync::Arc;

use fairwave_schemes::scheme::{self, GivenValue, OptionSpec, OptionValue, Options, Scheme};
use fairwave_units::Duration;

use super::mistake::{Mistake, ReadResult, did_you_mean, near, quoted};
use super::reader::{Field, Thing};
use super::tree::{TableKey, TomlTable, TomlValue};
use crate::SchemeChoice;

/// The scheme that a value names.
pub(crate) fn scheme(field: Field<'_>) -> ReadResult<&'static Scheme> {
    let name = field.text()?;
    scheme::find(name).ok_or_else(|| {
        let hint = match (scheme::unavailable(name), near(name, scheme::known_names())) {
            (Some(why), _) => why.to_owned(),
            (None, Some(near)) => format!("did you mean \"{near}\"?"),
            (None, None) => format!("the schemes are {}", scheme::known_names().collect::<Vec<_>>().join(" ")),
        };
        field.wrong("is not a scheme", hint)
    })
}

/// A scheme with the options of a table.
pub(crate) fn choice(scheme: &'static Scheme, thing: Thing<'_>, table: Option<&TomlTable>) -> ReadResult<SchemeChoice> {
    let mut options = Options::default();
    let mut entries: Vec<&TableKey> = table.map(TomlTable::entries).unwrap_or_default().iter().collect();
    entries.sort_by_key(|entry| entry.place);
    for entry in entries {
        let spec = scheme.option(&entry.key).ok_or_else(|| unknown(scheme, thing, entry))?;
        options.set(spec, value(spec, Field { thing, key: &entry.key, item: &entry.item })?);
    }
    Ok(SchemeChoice { scheme, options })
}

fn unknown(scheme: &Scheme, thing: Thing<'_>, entry: &TableKey) -> Mistake {
    let message = format!("{thing}scheme \"{}\" has no option {}", scheme.name, quoted(&entry.key));
    let hint = match scheme.options {
        [] => "it takes no options".to_owned(),
        options => did_you_mean(&entry.key, options.iter().map(|spec| spec.name)),
    };
    Mistake::new(entry.place, message, hint)
}

/// An option's value from a file.
fn value(spec: &OptionSpec, field: Field<'_>) -> ReadResult<OptionValue> {
    let given = match &field.item.value {
        TomlValue::Text(text) => GivenValue::Text(text),
        TomlValue::Flag(flag) => GivenValue::Flag(*flag),
        // "inf" is a number of TOML as well as a word of some options.
        TomlValue::Float(number) if *number == f64::INFINITY && spec.words().contains(&"inf") => {
            GivenValue::Text("inf")
        }
        TomlValue::Float(number) => GivenValue::Number(*number),
        TomlValue::Integer(whole) => GivenValue::Number(whole.map_or(f64::NAN, |whole| whole as f64)),
        other => GivenValue::Other(other.kind()),
    };
    spec.read(given).map_err(|error| {
        let message = format!("{}{}: {}", field.thing, field.key, error.problem);
        Mistake::new(field.item.place, message, error.hint())
    })
}

/// GTP's alpha and beta outside `[options]`.
pub(crate) fn gtp_number(field: Field<'_>) -> ReadResult<f64> {
    match gtp_option(field)? {
        Some(OptionValue::Number(number)) => Ok(number),
        _ => field.number(0.0, 1.0, false),
    }
}

/// GTP's control interval outside `[options]`: a time, or `None` for "rtt".
pub(crate) fn gtp_interval(field: Field<'_>) -> ReadResult<Option<Duration>> {
    match gtp_option(field)? {
        Some(OptionValue::Time(span)) => Ok(Some(span)),
        _ => Ok(None),
    }
}

/// A key with the meaning of GTP's option of that name.
fn gtp_option(field: Field<'_>) -> ReadResult<Option<OptionValue>> {
    let spec = scheme::find("gtp").and_then(|gtp| gtp.option(field.key));
    spec.map(|spec| value(spec, field)).transpose()
}

/// Shares one choice between nearby equal ones.
#[derive(Default)]
pub(crate) struct Choices(Vec<Arc<SchemeChoice>>);

impl Choices {
    pub(crate) fn share(&mut self, choice: SchemeChoice) -> Arc<SchemeChoice> {
        const LOOK_BACK: usize = 16;
        if let Some(same) = self.0.iter().rev().take(LOOK_BACK).find(|known| ***known == choice) {
            return Arc::clone(same);
        }
        let choice = Arc::new(choice);
        self.0.push(Arc::clone(&choice));
        choice
    }
}
