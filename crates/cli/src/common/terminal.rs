//! Stdout and stderr: colour only for terminals that want it, no panic when nobody reads.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

use crate::common::failure::{CommandFailure, Done};

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A good state. Words express it as well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// A bad state.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// A warning.
pub(crate) const WARY: Style = AnsiColor::Yellow.on_default();
/// Curves and hints.
pub(crate) const ACCENT: Style = AnsiColor::Cyan.on_default();

/// Width of stdout in characters, if it is a terminal that reports it, or if `$COLUMNS` is set.
pub(crate) fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    #[cfg(unix)]
    let seen = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    let seen = || None;
    said.or_else(seen).filter(|columns| *columns > 0)
}

/// Text in a style. Escapes are taken out again on the way to anything but a terminal that shows colour.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// First byte of a line of stdout on the way through stderr. Texts have no such byte: it would be escaped.
pub(crate) const MARK: u8 = 1;

/// Whether stdout carries something else.
static IS_STDOUT_TAKEN: AtomicBool = AtomicBool::new(false);

/// From now on lines for stdout go to stderr, each after a [`MARK`].
pub(crate) fn take_stdout() {
    IS_STDOUT_TAKEN.store(true, Ordering::SeqCst);
}

fn print_marked(text: &[u8]) -> Done {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let marked: Vec<u8> = lines.flat_map(|line| std::iter::once(&MARK).chain(line)).copied().collect();
    io::stderr().write_all(&marked).map_err(|error| CommandFailure::writing(&error))
}

/// Writes data to stdout.
pub(crate) fn print(text: &str) -> Done {
    if IS_STDOUT_TAKEN.load(Ordering::SeqCst) {
        return print_marked(anstream::adapter::strip_str(text).to_string().as_bytes());
    }
    anstream::stdout().lock().write_all(text.as_bytes()).map_err(|error| CommandFailure::writing(&error))
}

/// Writes binary data to stdout.
pub(crate) fn print_bytes(bytes: &[u8]) -> Done {
    if IS_STDOUT_TAKEN.load(Ordering::SeqCst) {
        return print_marked(bytes);
    }
    io::stdout().lock().write_all(bytes).map_err(|error| CommandFailure::writing(&error))
}

/// Brings all that was written to where it belongs.
pub(crate) fn flush() -> Done {
    io::stdout().flush().map_err(|error| CommandFailure::writing(&error))
}

/// Says something to people, on stderr.
pub(crate) fn note(text: &str) {
    // Nothing can be done for a reader that is gone.
    let _ = writeln!(anstream::stderr(), "{}", paint(DIM, &format!("note: {}", tamed(text))));
}

/// Says something to people, on stderr, as it is.
pub(crate) fn say(text: &str) {
    // Nothing can be done for a reader that is gone.
    let _ = writeln!(anstream::stderr(), "{}", tamed(text));
}

/// Asks a question on stderr: the answer is typed in the same line.
pub(crate) fn ask(text: &str) {
    // Nothing can be done for a reader that is gone.
    let _ = write!(anstream::stderr(), "{}", tamed(text));
}

/// Says on stderr what is wrong; a last line "hint: ..." stands out.
pub(crate) fn complain(message: &str) {
    let mut text = String::new();
    for line in tamed(message).lines() {
        let _ = match line.strip_prefix("hint: ") {
            Some(hint) => writeln!(text, "{} {hint}", paint(ACCENT, "hint:")),
            None => writeln!(text, "{}", paint(BAD, line)),
        };
    }
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// A text without what a terminal obeys: others' words, such as the names of their files, are in it.
pub(crate) fn tamed(text: &str) -> String {
    let mut tame = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) && c != '\n' {
            tame.extend(c.escape_default());
        } else {
            tame.push(c);
        }
    }
    tame
}

/// Whether a terminal takes it for more than a character to show: controls (C0 and C1), and marks that turn the
/// direction of text around.
pub(crate) fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// Whether a person watches stderr.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tamed__nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(tamed("a\u{1b}[2J\r\u{9b}b\u{202e}c\nd\u{fc}"), "a\\u{1b}[2J\\r\\u{9b}b\\u{202e}c\nd\u{fc}");
    }
}
