//! Distributions of sizes from files: a size in bytes and the share of transfers up to it on each line.

use super::file_text::{FileMistake, number, pairs, rows};
use super::tree::TomlValue;

/// The points of the distribution function, as `quantiles` has them. Shares that end at 100 are percentages.
pub(super) fn points(text: &str) -> Result<TomlValue, FileMistake> {
    const FORM: &str = "each line has a size in bytes and the share of transfers up to it: 10000 0.15";
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (line, cells) in rows(text) {
        // Names of columns.
        if points.is_empty() && cells.iter().all(|cell| cell.parse::<f64>().is_err()) {
            continue;
        }
        let [size, share] = cells[..] else {
            return Err(FileMistake::new(line, format!("{} cells", cells.len()), FORM));
        };
        let point = (number(line, share)?, number(line, size)?);
        if points.last().is_some_and(|before| point.0 <= before.0 || point.1 < before.1) {
            return Err(FileMistake::new(line, "a point that is not after the one before it", FORM));
        }
        points.push(point);
    }
    let scale = match points.last() {
        Some((1.0, _)) => 1.0,
        Some((100.0, _)) => 100.0,
        _ => return Err(FileMistake::new(None, "must end at the share 1, or at 100 percent", FORM)),
    };
    // Transfers below the first point have its size.
    if let Some((share, size)) = points.first().copied()
        && share > 0.0
    {
        points.insert(0, (0.0, size));
    }
    let bytes = |size: f64| TomlValue::Text(format!("{} B", size.round().max(1.0)).into());
    Ok(pairs(points.into_iter().map(|(share, size)| (TomlValue::Float(share / scale), bytes(size)))))
}
