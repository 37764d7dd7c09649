//! The output of a sweep: a table of means with their intervals, or its rows as JSON.

use std::fmt::Write as _;

use fairwave_study::{Cell, Mean, Study, Table};
use serde_json::{Map, Value};

use crate::common::failure::Done;
use crate::common::output::json_line;
use crate::common::quantity::rate;
use crate::common::table::{TextTable, shortened};
use crate::common::terminal;

/// Points that a person reads; the file has all of them.
const MAX_POINTS: usize = 40;
/// A column of numbers: head, column of the file, formatter.
type NumberColumn = (&'static str, &'static str, fn(f64) -> String);
const NUMBERS: [NumberColumn; 4] = [
    (">total", "metrics.total_bps", rate),
    (">Jain", "metrics.jain", |value| format!("{value:.4}")),
    (">gap to max-min", "metrics.gap_to_max_min", |value| format!("{:.1} %", 100.0 * value)),
    (">converged after", "metrics.converged_s", |value| format!("{value:.2} s")),
];

/// The columns that [`text`] looks at.
pub(super) fn columns(study: &Study) -> Vec<String> {
    let numbers = NUMBERS.map(|(_, name, _)| name.to_owned());
    study.own_columns().into_iter().chain(numbers).collect()
}

/// A line per point: its parameters, the number of runs, and the measures of the run as a whole over its seeds.
pub(super) fn text(study: &Study, table: &Table) -> String {
    let mut own = study.own_columns();
    own.retain(|name| name != "seed");
    let points = points(&own, table);
    let heads: Vec<String> = own.iter().map(|name| shortened(name, 30)).collect();
    let mut lines = TextTable::of(heads, &[">runs"], &NUMBERS.map(|(head, ..)| head));
    for (values, rows) in points.iter().take(MAX_POINTS) {
        let numbers = NUMBERS.map(|(_, name, write)| {
            let column = table.column(name);
            let values = rows.iter().filter_map(|row| column?.data.cell(*row).number());
            Mean::of(values).map_or("-".into(), |mean| {
                let there = if mean.count < rows.len() {
                    format!(" ({} of {})", mean.count, rows.len())
                } else {
                    String::new()
                };
                if mean.half_width.is_nan() || mean.half_width == 0.0 {
                    format!("{}{there}", write(mean.mean))
                } else {
                    format!("{} ± {}{there}", write(mean.mean), write(mean.half_width))
                }
            })
        });
        let cells = values.iter().map(|value| shortened(value, 30)).chain([rows.len().to_string()]).chain(numbers);
        lines.row(cells.collect::<Vec<_>>());
    }
    let mut text = lines.render(0);
    if points.len() > MAX_POINTS {
        let _ = writeln!(text, "... and {} more points", points.len() - MAX_POINTS);
    }
    text
}

/// The rows of each point, in the order in which points first occur.
fn points(own: &[String], table: &Table) -> Vec<(Vec<String>, Vec<usize>)> {
    let columns: Vec<_> = own.iter().filter_map(|name| table.column(name)).collect();
    let mut points: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for row in 0..table.len() {
        let values: Vec<String> = columns.iter().map(|column| column.data.cell(row).text()).collect();
        let at = *known.entry(values.clone()).or_insert_with(|| {
            points.push((values, Vec::new()));
            points.len() - 1
        });
        points[at].1.push(row);
    }
    points
}

/// An object a row, with all its columns.
pub(crate) fn print_json(table: &Table) -> Done {
    for row in 0..table.len() {
        let cells = table.columns.iter().map(|column| {
            let value = match column.data.cell(row) {
                Cell::Null => Value::Null,
                // JSON has no such numbers.
                Cell::Float(number) if number.is_infinite() => number.to_string().into(),
                Cell::Float(number) => number.into(),
                Cell::Count(count) => count.into(),
                Cell::Flag(flag) => flag.into(),
                Cell::Text(text) => text.into(),
            };
            (column.name.clone(), value)
        });
        terminal::print_bytes(json_line(&cells.collect::<Map<_, _>>())?.as_bytes())?;
    }
    Ok(())
}
