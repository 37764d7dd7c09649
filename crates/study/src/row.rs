//! The summary of a run as a row.

use fairwave_scenario::Summary;
use serde_json::Value;

use crate::{Cell, Row};

/// Maximum total of columns for named elements. Beyond that a row has only the numbers of the whole run and of schemes:
/// larger tables are not useful, and slow down readers of Parquet.
pub(crate) const MAX_COLUMNS: usize = 20_000;

/// Adds the numbers of a summary to a row, flattened: "metrics.jain", "session.NAME.rate_bps", "link.NAME.utilisation".
/// Existing columns of the row are kept.
pub(crate) fn add_summary(row: &mut Row, summary: &Summary) -> Result<(), serde_json::Error> {
    let Value::Object(mut all) = serde_json::to_value(summary)? else { return Ok(()) };
    let mut flat = Row::new();
    for word in ["scheme", "model", "duration_s"] {
        if let Some(value) = all.remove(word) {
            flat.push((word.to_owned(), cell(&value)));
        }
    }
    for part in ["metrics", "window", "options", "engine"] {
        if let Some(Value::Object(numbers)) = all.remove(part) {
            flat.extend(numbers.iter().map(|(key, value)| (format!("{part}.{key}"), cell(value))));
        }
    }
    for (list, kind, by) in [
        ("schemes", "schemes", "scheme"),
        ("sessions", "session", "name"),
        ("links", "link", "name"),
        ("background", "background", "name"),
    ] {
        if let Some(Value::Array(elements)) = all.remove(list) {
            add_elements(&mut flat, kind, by, &elements);
        }
    }
    let known: std::collections::HashSet<String> = row.iter().map(|(name, _)| name.clone()).collect();
    row.extend(flat.into_iter().filter(|(name, _)| !known.contains(name)));
    Ok(())
}

/// The numbers of named elements; their texts are in the scenario.
fn add_elements(flat: &mut Row, kind: &str, by: &str, elements: &[Value]) {
    if elements.iter().map(|element| element.as_object().map_or(0, serde_json::Map::len)).sum::<usize>() > MAX_COLUMNS {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    for element in elements.iter().filter_map(Value::as_object) {
        let name = element.get(by).and_then(Value::as_str).unwrap_or_default();
        // Two choices of one scheme differ in their options.
        let again = names.iter().filter(|known| *known == name).count();
        names.push(name.to_owned());
        let name = if again == 0 { name.to_owned() } else { format!("{name}#{}", again + 1) };
        let numbers = element.iter().filter(|(_, value)| value.is_number() || value.is_null() || value.is_boolean());
        flat.extend(numbers.map(|(key, value)| (format!("{kind}.{name}.{key}"), cell(value))));
    }
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(flag) => Cell::Flag(*flag),
        Value::Number(number) => match number.as_u64() {
            Some(count) => Cell::of_count(count),
            None => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    }
}
