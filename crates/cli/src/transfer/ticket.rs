//! Tickets, as a call names them: secrets, which do not belong into a command line.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use fairwave_files::escaped;
use fairwave_host::Ticket;

use crate::common::failure::{CommandFailure, plain};
use crate::common::terminal;

/// Environment variable of the ticket if the call has none.
pub(crate) const VARIABLE: &str = "FAIRWAVE_TICKET";
/// No file that holds a ticket is larger.
const MOST_BYTES: u64 = 64 << 10;
const HINT: &str = "TICKET is @FILE, - for stdin, or the text printed by `fairwave serve`; or set FAIRWAVE_TICKET";

/// Whether a word names a ticket, rather than a file.
pub(crate) fn is_ticket(word: &OsStr) -> bool {
    let Some(word) = word.to_str() else { return word.as_bytes().starts_with(b"@") };
    let looks_so = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.len() > 20;
    word == "-" || word.starts_with('@') || word.strip_prefix("fw").is_some_and(looks_so)
}

/// The ticket of the environment.
pub(crate) fn from_environment() -> Option<Result<Ticket, CommandFailure>> {
    let text = std::env::var_os(VARIABLE)?;
    let wrong = |error: String| CommandFailure::usage(format!("{VARIABLE}: {error}"), HINT);
    Some(match text.to_str() {
        Some(text) => text.parse().map_err(|error: fairwave_host::TicketError| wrong(error.to_string())),
        None => Err(wrong("not valid UTF-8".into())),
    })
}

/// The ticket that a word names.
pub(crate) fn read(word: &OsStr) -> Result<Ticket, CommandFailure> {
    let (name, text) = match word.as_bytes().strip_prefix(b"@") {
        Some(file) => (escaped(file), limited(&escaped(file), File::open(OsStr::from_bytes(file)))?),
        None if word == "-" => ("stdin".into(), limited("stdin", Ok(io::stdin().lock()))?),
        None => {
            if is_ticket(word) {
                terminal::note(
                    "other users can see a ticket on the command line; use @FILE, - or FAIRWAVE_TICKET to \
                                keep it secret",
                );
            }
            ("TICKET".into(), word.to_string_lossy().into_owned())
        }
    };
    text.parse().map_err(|error| match meant(word) {
        Some(meant) => CommandFailure::usage(format!("{name}: {error}"), &meant),
        None => CommandFailure::usage(format!("{name}: {error}"), HINT),
    })
}

/// Hint for a word that is the name of a file that holds a ticket, or a place on another machine.
fn meant(word: &OsStr) -> Option<String> {
    let is_place = word.to_str().and_then(|word| word.split_once(':')).is_some_and(|(host, _)| !host.contains('/'));
    if is_place && !is_ticket(word) {
        return Some("use `fairwave cp` to copy to or from HOST:PATH over ssh".to_owned());
    }
    let text = limited("", File::open(word)).ok().filter(|_| !is_ticket(word))?;
    text.parse::<Ticket>().ok()?;
    Some(format!("did you mean @{}? Write @ before the name of a ticket file", escaped(word.as_bytes())))
}

fn limited(name: &str, source: io::Result<impl Read>) -> Result<String, CommandFailure> {
    let read = || {
        let mut text = String::new();
        source?.take(MOST_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error: io::Error| {
        let what = match error.kind() {
            io::ErrorKind::InvalidData => "does not hold a ticket".into(),
            _ => plain(&error),
        };
        CommandFailure::usage(format!("{name}: {what}"), HINT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ticket__tells_tickets_from_files() {
        for word in ["-", "@ticket", "fw10123456789abcdefghjkmnpqrstv"] {
            assert!(is_ticket(OsStr::new(word)), "{word}");
        }
        for word in ["fw1", "fwd/notes.txt", "ticket", ".", "fw1.bin"] {
            assert!(!is_ticket(OsStr::new(word)), "{word}");
        }
    }

    #[test]
    fn read__names_what_is_wrong() {
        let message = |word: &str| read(OsStr::new(word)).unwrap_err().message().unwrap().to_owned();
        assert!(message("@/no/such/file").starts_with("/no/such/file: no such file\nhint: "));
        assert!(message("hello").starts_with("TICKET: not a ticket: it must start with \"fw1\""));
        assert_eq!(read(OsStr::new("hello")).unwrap_err().code(), 2);
    }
}
