//! Demands of sessions: a rate, or rates over time.

use fairwave_units::{Rate, Time};

use super::drawn::each;
use super::mistake::ReadResult;
use super::reader::{Field, TableReader};
use super::tree::TomlValue;
use crate::{Demand, limits};

/// The demands of a table: one for all sessions, or one for each.
pub(super) enum Demands {
    All(Demand),
    Each(Box<[Demand]>),
}

pub(super) fn demands(field: Field<'_>, count: u64) -> ReadResult<Demands> {
    let TomlValue::Table(table) = &field.item.value else { return demand(field).map(Demands::All) };
    let list =
        TableReader::new(field.thing, field.item.place, table, &["each"])?.need("each", "demand = { each = [..] }")?;
    each(Field { key: field.key, ..list }, count, demand).map(Demands::Each)
}

/// A rate, "inf", or a schedule of both.
fn demand(field: Field<'_>) -> ReadResult<Demand> {
    const EXAMPLE: &str = "[[\"0 s\", \"400 Mb/s\"], [\"4 s\", \"800 Mb/s\"]]";
    let TomlValue::List(steps) = &field.item.value else {
        let rate = field.or_inf(Field::rate)?;
        return Ok(rate.map_or(Demand::Unlimited, Demand::Constant));
    };
    if steps.len() > limits::SCHEDULE_STEPS {
        return Err(
            field.wrong(format!("has {} steps, the limit is {}", steps.len(), limits::SCHEDULE_STEPS), "merge steps")
        );
    }
    let mut schedule: Vec<(Time, Option<Rate>)> = Vec::with_capacity(steps.len());
    for step in steps {
        let field = field.entry(step);
        let TomlValue::List(pair) = &step.value else { return Err(field.not("a step of a schedule", EXAMPLE)) };
        let [time, rate] = &pair[..] else {
            return Err(field.wrong("has a step that is not a time and a rate", format!("write it like {EXAMPLE}")));
        };
        let time_field = field.entry(time);
        let time = time_field.instant()?;
        match schedule.last() {
            None if time != Time::ZERO => {
                return Err(time_field.wrong(
                    "must be \"0 s\": the first step is the initial demand",
                    "for instance [\"0 s\", \"0 Mb/s\"] for an initial demand of zero",
                ));
            }
            Some((before, _)) if time <= *before => {
                return Err(time_field.wrong(
                    format!("must be later than the step before it, at {before}"),
                    "write the steps in order of time",
                ));
            }
            _ => {}
        }
        schedule.push((time, field.entry(rate).or_inf(Field::rate)?));
    }
    if schedule.is_empty() {
        return Err(field.wrong("has no steps", format!("write it like {EXAMPLE}")));
    }
    Ok(Demand::Schedule(schedule.into()))
}
