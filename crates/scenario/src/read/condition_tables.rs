//! `conditions = { ... }` of a link.

use fairwave_units::{Bytes, Duration, Time};

use super::mistake::ReadResult;
use super::reader::{Field, TableReader, Thing};
use super::tree::TomlValue;
use crate::conditions::{Conditions, Steps};
use crate::limits;

pub(super) const CONDITION_KEYS: &[&str] = &[
    "burst_loss",
    "capacity",
    "delay",
    "drop",
    "duplicate",
    "jitter",
    "loss",
    "period",
    "policer",
    "reorder",
    "trace",
];

/// The conditions of a link.
pub(super) fn conditions(field: Field<'_>) -> ReadResult<Conditions> {
    let table = field.table("{ jitter = \"2 ms\" }")?;
    let thing = match field.thing {
        Thing::Named(kind, name) => Thing::Part("conditions", kind, name),
        _ => Thing::Section("link.conditions"),
    };
    let reader = TableReader::new(thing, field.item.place, table, CONDITION_KEYS)?;
    let period = reader.read("period", |field| field.positive_span(limits::RUN))?;
    let usual = Conditions::default();
    Ok(Conditions {
        capacity: reader.read("capacity", |field| steps(field, period, "\"10 Mb/s\"", Field::rate))?,
        delay: reader.read("delay", |field| steps(field, period, "\"20 ms\"", |field| field.span(limits::DELAY)))?,
        loss: reader.read("loss", |field| steps(field, period, "0.01", Field::chance))?,
        burst_loss: reader.read("burst_loss", |field| {
            let [enter, leave] = pair(field, "[0.001, 0.2]")?;
            Ok([enter.chance()?, leave.number(0.0, 1.0, false)?])
        })?,
        drop: reader.read("drop", drop)?.unwrap_or_default(),
        policer: reader.read("policer", |field| {
            let [rate, size] = pair(field, "[\"10 Mb/s\", \"100 kB\"]")?;
            Ok((rate.capacity()?, size.size(Bytes::new(1), limits::SIZE)?))
        })?,
        jitter: reader.read_or("jitter", usual.jitter, |field| field.span(limits::DELAY))?,
        reorder: reader.read("reorder", |field| {
            let [share, delay] = pair(field, "[0.01, \"5 ms\"]")?;
            Ok((share.number(0.0, 1.0, false)?, delay.positive_span(limits::DELAY)?))
        })?,
        duplicate: reader.read_or("duplicate", usual.duplicate, |field| field.number(0.0, 1.0, false))?,
    })
}

/// Both values of a list of two.
fn pair<'a>(field: Field<'a>, example: &str) -> ReadResult<[Field<'a>; 2]> {
    match field.list(example)? {
        [first, second] => Ok([field.entry(first), field.entry(second)]),
        _ => Err(field.wrong("is not a list of two values", format!("write it like {example}"))),
    }
}

/// Numbers of packets in order, from one on.
fn drop(field: Field<'_>) -> ReadResult<Box<[u64]>> {
    let mut numbers = Vec::new();
    for item in field.list("[3, 10]")? {
        let entry = field.entry(item);
        let number = entry.whole(1, limits::PACKETS)?;
        if numbers.last().is_some_and(|last| *last >= number) {
            return Err(entry.wrong("must be above the number before it", "write the numbers in order"));
        }
        numbers.push(number);
    }
    Ok(numbers.into())
}

/// Pairs of a time and a value, the first at zero.
fn steps<'a, T: Copy + PartialEq>(
    field: Field<'a>,
    period: Option<Duration>,
    value: &str,
    read: impl Fn(Field<'a>) -> ReadResult<T>,
) -> ReadResult<Steps<T>> {
    let example = format!("[[\"0 s\", {value}], [\"4 s\", {value}]]");
    let items = field.list(&example)?;
    if items.len() > limits::CONDITION_STEPS {
        let message = format!("has {} steps, the limit is {}", items.len(), limits::CONDITION_STEPS);
        return Err(field.wrong(message, "merge steps"));
    }
    let mut steps: Vec<(Time, T)> = Vec::with_capacity(items.len());
    for item in items {
        let entry = field.entry(item);
        let TomlValue::List(values) = &item.value else { return Err(entry.not("a step", &example)) };
        let [at, value] = &values[..] else {
            return Err(entry.wrong("has a step that is not a time and a value", format!("write it like {example}")));
        };
        let at_field = entry.entry(at);
        let at = at_field.instant()?;
        let is_in_order = steps.last().map_or(at == Time::ZERO, |(before, _)| at > *before);
        if !is_in_order || period.is_some_and(|period| at >= Time::ZERO + period) {
            let hint = "steps start at \"0 s\" and are in order of time, all before the period ends";
            return Err(at_field.wrong("is not a valid time of this step", hint));
        }
        let value = read(entry.entry(value))?;
        if steps.last().is_none_or(|(_, before)| *before != value) {
            steps.push((at, value));
        }
    }
    if steps.is_empty() {
        return Err(field.wrong("has no steps", format!("write it like {example}")));
    }
    Ok(Steps::new(steps.into(), period))
}
