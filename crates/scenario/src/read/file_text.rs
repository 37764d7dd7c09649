//! Text of a file that a scenario names: its lines, its numbers and its mistakes.

use super::mistake::quoted;
use super::position::Position;
use super::tree::{Located, TomlValue};

/// A mistake in the file.
#[derive(Debug)]
pub(super) struct FileMistake {
    /// From one; `None` if it is not in one line.
    pub(super) line: Option<usize>,
    pub(super) message: String,
    pub(super) hint: String,
}

impl FileMistake {
    pub(super) fn new(line: impl Into<Option<usize>>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { line: line.into(), message: message.into(), hint: hint.into() }
    }
}

/// The cells of each line that has any, with its number: separated by commas or spaces; `#` starts a remark.
pub(super) fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.split('#').next().unwrap_or("")));
    lines.map(|(n, line)| (n, cut(line))).filter(|(_, cells)| !cells.is_empty())
}

fn cut(line: &str) -> Vec<&str> {
    if line.contains(',') { line.split(',').map(str::trim).collect() } else { line.split_whitespace().collect() }
}

/// A list of pairs.
pub(super) fn pairs(pairs: impl IntoIterator<Item = (TomlValue, TomlValue)>) -> TomlValue {
    let place = Position::File;
    let located = |value| Located { value, place };
    let pair = |(one, other)| located(TomlValue::List(vec![located(one), located(other)]));
    TomlValue::List(pairs.into_iter().map(pair).collect())
}

/// A number of at least zero in a cell.
pub(super) fn number(line: usize, cell: &str) -> Result<f64, FileMistake> {
    let number = cell.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| {
        FileMistake::new(line, format!("{} is not a number of at least 0", quoted(cell)), "use a decimal point")
    })
}
