//! `aqm = { ... }` of a link or node: the parameters of its queue's rule.

use fairwave_units::Bytes;

use super::mistake::ReadResult;
use super::reader::{Field, TableReader, Thing};
use super::tree::TomlValue;
use crate::{Aqm, Discipline, MarkFrom, limits};

pub(super) const AQM_KEYS: &[&str] = &["ecn", "interval", "mark_from", "quantum", "target"];

/// The keys that a rule uses.
fn used(discipline: Option<Discipline>) -> &'static [&'static str] {
    match discipline {
        Some(Discipline::Red | Discipline::Avq) => &["ecn"],
        Some(Discipline::Rem) => &["ecn", "interval"],
        Some(Discipline::EcnStep) => &["mark_from"],
        Some(Discipline::Codel | Discipline::Pie) => &["ecn", "interval", "target"],
        Some(Discipline::FqCodel) => &["ecn", "interval", "quantum", "target"],
        Some(Discipline::Fq) => &["quantum"],
        Some(Discipline::DualPi2) => &["interval", "mark_from", "target"],
        _ => &[],
    }
}

/// The parameters of a queue with this rule.
pub(super) fn aqm(reader: &TableReader<'_>, discipline: Option<Discipline>) -> ReadResult<Aqm> {
    let Some(field) = reader.get("aqm") else { return Ok(Aqm::default()) };
    let table = field.table("{ target = \"5 ms\", ecn = true }")?;
    let thing = match field.thing {
        Thing::Named(kind, name) => Thing::Part("aqm", kind, name),
        _ => Thing::Section("aqm"),
    };
    let inner = TableReader::new(thing, field.item.place, table, AQM_KEYS)?;
    let used = used(discipline);
    if let Some(entry) = table.entries().iter().find(|entry| !used.contains(&&*entry.key)) {
        let name = discipline.map_or("drop-tail", Discipline::name);
        let hint = match used {
            [] => "rules with parameters: red ecn-step codel fq-codel fq pie dualpi2 rem avq".to_owned(),
            _ => format!("{name} has {}", used.join(", ")),
        };
        return Err(reader.wrong(format!("aqm.{} has no effect on discipline \"{name}\"", entry.key), hint));
    }
    Ok(Aqm {
        target: inner.read("target", |field| field.positive_span(limits::DELAY))?,
        interval: inner.read("interval", |field| field.positive_span(limits::DELAY))?,
        ecn: inner.read("ecn", Field::flag)?,
        mark_from: inner.read("mark_from", mark_from)?,
        quantum: inner.read("quantum", |field| field.size(Bytes::new(1), limits::SIZE))?,
    })
}

fn mark_from(field: Field<'_>) -> ReadResult<MarkFrom> {
    match &field.item.value {
        TomlValue::Text(text) if text.trim().ends_with('s') && !text.contains("packet") => {
            field.span(limits::DELAY).map(MarkFrom::Delay)
        }
        TomlValue::Text(text) if text.trim().ends_with('B') => {
            field.size(Bytes::new(1), limits::SIZE).map(MarkFrom::Bytes)
        }
        _ => field.packets(1).map(MarkFrom::Packets),
    }
}
