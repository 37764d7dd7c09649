//! Traces of links: CSV with a column of times, or mahimahi's form, one delivery opportunity a line.

use std::collections::BTreeMap;

use super::file_text::{FileMistake, number, pairs, rows};
use super::mistake::{did_you_mean, quoted};
use super::tree::TomlValue;

/// Names of columns, with the key of the conditions and the unit.
const COLUMNS: [(&str, &str, &str); 8] = [
    ("time_s", "time", "s"),
    ("time_ms", "time", "ms"),
    ("capacity_bps", "capacity", "b/s"),
    ("capacity_kbps", "capacity", "kb/s"),
    ("capacity_mbps", "capacity", "Mb/s"),
    ("delay_s", "delay", "s"),
    ("delay_ms", "delay", "ms"),
    ("loss", "loss", ""),
];

/// Bits per second of one opportunity in a millisecond: mahimahi delivers up to 1500 bytes at each.
const OPPORTUNITY_BPS: u64 = 1500 * 8 * 1000;

/// The conditions that a trace sets: keys and values.
pub(super) fn columns(text: &str) -> Result<Vec<(&'static str, TomlValue)>, FileMistake> {
    let is_opportunity = |cells: &[&str]| cells.len() == 1 && cells[0].bytes().all(|byte| byte.is_ascii_digit());
    match rows(text).next() {
        None => Err(FileMistake::new(None, "no lines", EXAMPLE)),
        Some((_, cells)) if is_opportunity(&cells) => opportunities(text),
        Some(_) => table(text),
    }
}

const EXAMPLE: &str = "the first line of a CSV file names its columns, such as time_s,capacity_mbps";

/// Steps of a header's columns.
fn table(text: &str) -> Result<Vec<(&'static str, TomlValue)>, FileMistake> {
    let mut rows = rows(text);
    let (line, header) = rows.next().unwrap_or_default();
    let mut columns = Vec::with_capacity(header.len());
    for name in &header {
        let known = COLUMNS.iter().find(|(known, ..)| known == name).ok_or_else(|| {
            let hint = did_you_mean(name, COLUMNS.iter().map(|(known, ..)| *known));
            FileMistake::new(line, format!("unknown column {}", quoted(name)), hint)
        })?;
        if columns.iter().any(|(_, key, _)| *key == known.1) {
            return Err(FileMistake::new(line, format!("two columns for the {}", known.1), "leave one out"));
        }
        columns.push(*known);
    }
    let time = columns.iter().position(|(_, key, _)| *key == "time");
    let Some(time) = time.filter(|_| columns.len() > 1) else {
        return Err(FileMistake::new(line, "needs a column of times and one of values", EXAMPLE));
    };
    let mut values: Vec<Vec<(TomlValue, TomlValue)>> = vec![Vec::new(); columns.len()];
    let mut before = None;
    for (line, cells) in rows {
        if cells.len() != columns.len() {
            let message = format!("{} cells, the first line has {}", cells.len(), columns.len());
            return Err(FileMistake::new(line, message, "write a value for each column"));
        }
        let numbers = cells.iter().map(|cell| number(line, cell)).collect::<Result<Vec<_>, _>>()?;
        let at = numbers[time];
        if before.map_or(at != 0.0, |before| at <= before) {
            let message = format!("{} is not a valid time of this line", quoted(cells[time]));
            return Err(FileMistake::new(line, message, "the first time is 0, and each is above the one before it"));
        }
        before = Some(at);
        for ((column, number), (_, key, unit)) in values.iter_mut().zip(numbers).zip(&columns) {
            let value = match *key {
                "loss" if number >= 1.0 => {
                    let message = format!("the loss {number} is not below 1");
                    return Err(FileMistake::new(line, message, "write a probability: 0.01 is one of a hundred"));
                }
                "loss" => TomlValue::Float(number),
                _ => TomlValue::Text(format!("{number} {unit}").into()),
            };
            column.push((TomlValue::Text(format!("{at} {}", columns[time].2).into()), value));
        }
    }
    if before.is_none() {
        return Err(FileMistake::new(None, "no lines below the names of the columns", "write a line with time 0"));
    }
    let keys = columns.iter().map(|(_, key, _)| *key);
    Ok(keys.zip(values).filter(|(key, _)| *key != "time").map(|(key, steps)| (key, pairs(steps))).collect())
}

/// Each line of mahimahi's traces is a millisecond at which 1500 bytes may leave, and the trace repeats after the last
/// one. The opportunity at t fills the millisecond that ends at t, so that packets leave at the same instants.
fn opportunities(text: &str) -> Result<Vec<(&'static str, TomlValue)>, FileMistake> {
    let mut times_ms = Vec::new();
    for (line, cells) in rows(text) {
        let time = match cells[..] {
            [cell] => cell.parse::<u64>().ok(),
            _ => None,
        };
        let Some(time) = time.filter(|time| times_ms.last().is_none_or(|before| before <= time)) else {
            let message = format!("{} is not a valid time of this line", quoted(cells.join(" ")));
            return Err(FileMistake::new(line, message, "mahimahi's traces have whole milliseconds in order of time"));
        };
        times_ms.push(time);
    }
    let period = times_ms.last().copied().unwrap_or_default();
    if period == 0 {
        return Err(FileMistake::new(None, "ends at 0 ms", "the last line is the length of a mahimahi trace"));
    }
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for time in times_ms {
        *counts.entry((time + period - 1) % period).or_default() += 1;
    }
    let step = |ms: u64, opportunities: u64| {
        let rate = opportunities.saturating_mul(OPPORTUNITY_BPS);
        (TomlValue::Text(format!("{ms} ms").into()), TomlValue::Text(format!("{rate} b/s").into()))
    };
    let (mut steps, mut until) = (Vec::new(), 0);
    for (ms, count) in counts {
        if ms > until {
            steps.push(step(until, 0));
        }
        steps.push(step(ms, count));
        until = ms + 1;
    }
    if until < period {
        steps.push(step(until, 0));
    }
    Ok(vec![("capacity", pairs(steps)), ("period", TomlValue::Text(format!("{period} ms").into()))])
}
