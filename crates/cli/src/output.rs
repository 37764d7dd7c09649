//! JSON on stdout.

use serde::Serialize;

use crate::Done;
use crate::failure::Failure;
use crate::terminal::print_bytes;

/// Prints one object on a line of its own.
pub(crate) fn print_json(value: &impl Serialize) -> Done {
    print_bytes(json_line(value)?.as_bytes())
}

/// One object and a line break.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let mut line = serde_json::to_string(value).map_err(|error| Failure::Run(error.to_string()))?;
    line.push('\n');
    Ok(line)
}
