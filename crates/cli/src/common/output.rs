//! JSON on stdout.

use std::fmt::Write;

use serde::Serialize;

use crate::common::failure::{CommandFailure, Done};
use crate::common::terminal::{is_obeyed, print_bytes};

/// Prints one object on a separate line.
pub(crate) fn print_json(value: &impl Serialize) -> Done {
    print_bytes(json_line(value)?.as_bytes())
}

/// One object and a line break. Others' words are in it, such as the names of their files, and a terminal may show it:
/// what that would obey is escaped, as RFC 8259 s7 lets any character be.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, CommandFailure> {
    let text = serde_json::to_string(value).map_err(|error| CommandFailure::Run(error.to_string()))?;
    Ok(escaped_line(&text))
}

/// As [`print_json`], of an object that is text already.
pub(crate) fn print_json_text(text: &str) -> Done {
    print_bytes(escaped_line(text).as_bytes())
}

/// A line without what a terminal obeys. Such a character stands within a string.
fn escaped_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Such a character stands within a string, and none needs more than one \u.
        if is_obeyed(c) {
            let _ = write!(line, "\\u{:04x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_line__escapes_what_a_terminal_obeys_and_stays_the_same_text() {
        let text = "a\u{7f}\u{9b}2J\u{85}\u{61c}\u{200e}\u{202e}\u{2069}\n\u{fc}\u{1f600}\"";
        let line = json_line(&text).unwrap();
        let escaped = "\"a\\u007f\\u009b2J\\u0085\\u061c\\u200e\\u202e\\u2069\\n\u{fc}\u{1f600}\\\"\"\n";
        assert_eq!(line, escaped);
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
