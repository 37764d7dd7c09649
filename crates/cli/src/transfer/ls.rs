//! `fairwave ls`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use fairwave_files::{ListFailure, ListFilter, ListedEntry, ListedKind, TransferError, escaped, list};
use fairwave_host::{Carrier, Refusal, Ticket};
use serde::Serialize;

use crate::common::failure::{CommandFailure, Done};
use crate::common::output::print_json;
use crate::common::output_args::OutputArgs;
use crate::common::screen::Screen;
use crate::common::terminal::{print, tamed};
use crate::transfer::connecting;
use crate::transfer::cp::{self, SshArgs, place::CpPlace};
use crate::transfer::link::{LinkArgs, NO_SSH, OF_TICKETS};
use crate::transfer::name::Name;
use crate::transfer::ticket;

/// List the files of a ticket, or of a machine that ssh reaches.
///
/// Each line has the size in bytes, the time of the last change (UTC) and the name. Wildcards (`*`, `?`, `[...]`) match
/// at the other end. A ticket for one transfer stays valid.
#[derive(Debug, clap::Args)]
#[command(override_usage = "fairwave ls [OPTIONS] TICKET [NAME]...\n       fairwave ls [OPTIONS] HOST:[PATH]...")]
#[command(after_help = "\
Examples:
  fairwave ls @big.ticket
  fairwave ls -R @big.ticket data/2024
  fairwave ls 'server:results/*.h5'")]
pub(crate) struct Args {
    /// Ticket (@FILE, - for stdin, its text, or in $FAIRWAVE_TICKET) and names in its share, or HOST:PATH
    #[arg(value_name = "TICKET [NAME]...|HOST:[PATH]...", hide = false)]
    words: Vec<OsString>,
    /// List everything below the named directories
    #[arg(long, short = 'R')]
    recursive: bool,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    link: LinkArgs,
}

/// The place of the listed files.
enum Listed {
    Ticket(Box<Ticket>, Vec<OsString>),
    Far { host: String, paths: Vec<OsString> },
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    name: Name,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_unix_s: Option<f64>,
    /// Permission bits in octal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Prints entries.
struct Printer<'a> {
    screen: &'a Screen,
    failed: u64,
}

pub(crate) fn run(args: &Args) -> Done {
    let screen = Screen::new(args.output);
    let mut printer = Printer { screen: &screen, failed: 0 };
    match words(&args.words)? {
        Listed::Ticket(ticket, names) => {
            args.link.check_carrier("ls", &OF_TICKETS, NO_SSH)?;
            of_ticket(&mut printer, args, &ticket, &names)?;
        }
        Listed::Far { host, paths } => {
            args.link.check_carrier("ls", &[Carrier::Ssh], "HOST:PATH is listed over ssh")?;
            cp::list(&args.ssh, host, &paths, args.recursive, &mut |entry| printer.print(entry))?;
        }
    }
    match printer.failed {
        0 => Ok(()),
        1 => Err(CommandFailure::Files("1 entry could not be listed".into())),
        count => Err(CommandFailure::Files(format!("{count} entries could not be listed"))),
    }
}

fn of_ticket(printer: &mut Printer<'_>, args: &Args, ticket: &Ticket, names: &[OsString]) -> Done {
    let bound = args.link.bind(ticket.addresses.first().map(SocketAddr::ip))?;
    let filter = ListFilter::new(&names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>(), args.recursive);
    let mut done = Ok(());
    let listed = connecting::patiently(printer.screen, ticket, |has_answered| {
        list(&bound.endpoint, ticket, args.link.session(), filter, &mut |entry| {
            has_answered();
            done = printer.print(entry);
            if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    bound.endpoint.close();
    listed.map_err(|error| match error {
        ListFailure::Connect(TransferError::Connect(error))
            if connecting::refusal(&error) == Some(Refusal::Direction) =>
        {
            connecting::transfer_failure(&TransferError::OnlyTakes, ticket)
        }
        ListFailure::Connect(error) => connecting::transfer_failure(&error, ticket),
        ListFailure::Ended(_) => CommandFailure::Lost(error.to_string()),
        ListFailure::Invalid(_) => CommandFailure::Run(error.to_string()),
    })?;
    done
}

/// The arguments of a call; the ticket may be in the environment.
fn words(words: &[OsString]) -> Result<Listed, CommandFailure> {
    let wrong = |message: String| {
        CommandFailure::usage(format!("ls: {message}"), "fairwave ls TICKET [NAME]..., or fairwave ls HOST:[PATH]...")
    };
    if let Some((first, names)) = words.split_first()
        && ticket::is_ticket(first)
    {
        return Ok(Listed::Ticket(Box::new(ticket::read(first)?), names.to_vec()));
    }
    if let Some(ticket) = ticket::from_environment() {
        return Ok(Listed::Ticket(Box::new(ticket?), words.to_vec()));
    }
    let (mut hosts, mut paths) = (Vec::new(), Vec::new());
    for word in words {
        match CpPlace::read(word).map_err(wrong)? {
            CpPlace::There { host, path } => {
                paths.push(path);
                hosts.push(host);
            }
            CpPlace::Here(path) => {
                let path = escaped(path.as_os_str().as_bytes());
                return Err(wrong(format!("{path} is neither a ticket nor HOST:PATH")));
            }
        }
    }
    hosts.dedup();
    match <[String; 1]>::try_from(hosts) {
        Ok([host]) => Ok(Listed::Far { host, paths }),
        Err(hosts) if hosts.is_empty() => Err(wrong("missing ticket or HOST:PATH".into())),
        Err(_) => Err(wrong("the paths are on more than one machine".into())),
    }
}

impl Printer<'_> {
    /// Prints an entry; one that failed goes to stderr, except in JSON.
    fn print(&mut self, entry: &ListedEntry<'_>) -> Done {
        let name = escaped(entry.path);
        if let ListedKind::Failed(reason) = entry.kind {
            self.failed += 1;
            if !self.screen.output.json {
                self.screen.complain(&format!("{name}: {reason}"));
                return Ok(());
            }
        }
        if self.screen.output.json { print_json(&row(entry)) } else { print(&line(entry, &name)) }
    }
}

fn line(entry: &ListedEntry<'_>, name: &str) -> String {
    let size = match entry.kind {
        ListedKind::File(bytes) => bytes.to_string(),
        _ => "-".to_owned(),
    };
    let time = if has_time(entry) { utc(entry.modified.0) } else { "-".to_owned() };
    let rest = match entry.kind {
        ListedKind::Directory => "/".to_owned(),
        ListedKind::Symlink(target) => format!(" -> {}", escaped(target)),
        ListedKind::Skipped(reason) => format!("  ({})", tamed(reason)),
        _ => String::new(),
    };
    format!("{size:>15}  {time:<20}  {name}{rest}\n")
}

fn row<'a>(entry: &ListedEntry<'a>) -> Row<'a> {
    let (kind, bytes, target, reason) = match entry.kind {
        ListedKind::File(bytes) => ("file", Some(bytes), None, None),
        ListedKind::Directory => ("directory", None, None, None),
        ListedKind::Symlink(target) => ("link", None, Some(escaped(target)), None),
        ListedKind::Skipped(reason) => ("other", None, None, Some(reason)),
        ListedKind::Failed(reason) => ("failed", None, None, Some(reason)),
    };
    let (seconds, nanoseconds) = entry.modified;
    Row {
        name: Name::of(entry.path),
        kind,
        bytes,
        modified_unix_s: has_time(entry).then_some(seconds as f64 + f64::from(nanoseconds) / 1e9),
        mode: has_time(entry).then(|| format!("{:o}", entry.mode)),
        target,
        reason,
    }
}

/// Whether the mode and time of an entry are known.
fn has_time(entry: &ListedEntry<'_>) -> bool {
    matches!(entry.kind, ListedKind::File(_) | ListedKind::Directory | ListedKind::Symlink(_))
}

/// A time as ISO 8601 has it, in UTC.
fn utc(unix_s: i64) -> String {
    let (days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years start in March.
    let day = i128::from(days) + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (year_of_era + era * 400, month + 3) } else { (year_of_era + era * 400 + 1, month - 9) };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by `date -u -d @SECONDS`.
    #[test]
    fn utc__is_a_calendars() {
        for (unix_s, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_728_043, "2026-11-26T21:20:43Z"),
        ] {
            assert_eq!(utc(unix_s), expected);
        }
        assert!(utc(i64::MAX).len() > 20 && utc(i64::MIN).len() > 20);
    }

    #[test]
    fn line__nothing_is_left_that_a_terminal_obeys() {
        let entry =
            ListedEntry { path: b"a\x1b[2J", kind: ListedKind::Symlink(b"\x07"), mode: 0o777, modified: (0, 0) };
        let line = line(&entry, &escaped(entry.path));
        assert!(line.trim_end().chars().all(|c| !c.is_control()), "{line:?}");
    }
}
