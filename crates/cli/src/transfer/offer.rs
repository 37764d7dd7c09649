//! Shared parts of the commands that listen: a port, a ticket, and its holders.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_files::escaped;

use fairwave_host::{
    Carrier, Keyring, Listen, Server, ServerError, ServerOptions, ShareId, StateDir, StateError, Ticket, Validity,
    id_text, now_unix_s,
};
use serde::Serialize;

use super::link::{Bound, LinkArgs, Ports, not_bound};
use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::output::print_json;
use crate::common::output_args::OutputArgs;
use crate::common::quantity::quantity;
use crate::common::screen::Screen;
use crate::common::terminal::{self, print};

/// Address and validity of a ticket.
#[derive(Clone, Debug, Default, clap::Args)]
struct TicketOffer {
    /// Listen on this address [default port: 8642; 0 for any free port]
    #[arg(long, value_name = "ADDR[:PORT]", conflicts_with = "port", value_parser = listen_address, hide_short_help = true)]
    listen: Option<SocketAddr>,
    /// Listen on one of these UDP ports [default: the port of the last run, or 8642, or any]
    #[arg(long, value_name = "A-B")]
    port: Option<Ports>,
    /// Address to put into the ticket, if a router forwards its port to this machine
    #[arg(long, value_name = "ADDR[:PORT]", hide_short_help = true)]
    advertise: Vec<String>,
    /// Write the ticket to FILE instead of stdout, readable only by its owner
    #[arg(long, value_name = "FILE")]
    ticket: Option<PathBuf>,
    /// Validity of the ticket, such as 30m, 12h, 1d, "2 h" or never
    #[arg(long, value_name = "T", value_parser = validity)]
    expires: Option<TicketExpiry>,
}

/// Options of every command that listens.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ListenArgs {
    #[command(flatten)]
    offer: TicketOffer,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) link: LinkArgs,
}

/// When a ticket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TicketExpiry(Option<u64>);

/// A process that others can come to.
pub(crate) struct Offered {
    pub(crate) bound: Bound,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) ticket: Ticket,
    /// File that the ticket goes to instead of stdout.
    ticket_file: Option<PathBuf>,
}

#[derive(Serialize)]
struct TicketEvent<'a> {
    event: &'static str,
    ticket: String,
    id: String,
    addresses: &'a [SocketAddr],
    expires_unix_s: u64,
    is_once: bool,
}

impl ListenArgs {
    /// Binds a port and issues a ticket for this share, for one transfer if `is_once`.
    pub(crate) fn open(&self, share: ShareId, is_once: bool) -> Result<Offered, CommandFailure> {
        self.offer.open(&self.link, share, is_once)
    }
}

impl TicketOffer {
    fn open(&self, link: &LinkArgs, share: ShareId, is_once: bool) -> Result<Offered, CommandFailure> {
        let why = "a server supports udp, and with auto also tcp";
        link.check_carrier("serve", &[Carrier::Udp], why)?;
        let state = StateDir::open().map_err(|error| of_state(&error))?;
        let keyring = Keyring::open(state, share).map_err(|error| of_state(&error))?;
        let (endpoint, capacity) = link.config(None);
        link.check_minimum(&capacity)?;
        let listen = match (self.listen, &self.port) {
            (Some(address), _) => Listen::At(address),
            (None, Some(Ports(ports))) => Listen::Among(ports.clone()),
            (None, None) => Listen::Usual,
        };
        let options =
            ServerOptions { endpoint, listen, advertise: self.advertise.clone(), validity: self.validity(is_once) };
        let Server { endpoint, keyring, ticket } = Server::open(keyring, &options).map_err(|error| match error {
            ServerError::Listen(error) => not_bound("--listen", &options.listen, &error),
            ServerError::State(error) => of_state(&error),
            ServerError::Addresses(_) => CommandFailure::Run(error.to_string()),
            ServerError::Advertise { .. } => CommandFailure::usage(
                format!("--advertise {error}"),
                "write an address or a name, with a port if it differs: 192.0.2.7, [2001:db8::7]:9000",
            ),
        })?;
        Ok(Offered { bound: Bound::of(endpoint, &capacity), keyring, ticket, ticket_file: self.ticket.clone() })
    }

    /// Validity that the call sets; `None` if it sets none.
    fn validity(&self, is_once: bool) -> Option<Validity> {
        let lasts_s = self.expires.map_or(Validity::default().lasts_s, |expiry| expiry.0);
        (is_once || self.expires.is_some()).then_some(Validity { lasts_s, is_once })
    }
}

impl Offered {
    /// Prints the ticket on a separate line on stdout, or writes it to the file of `--ticket`.
    pub(crate) fn print_ticket(&self, screen: &Screen, command: &str) -> Done {
        let Ticket { id, addresses, expires_unix_s, is_once, .. } = &self.ticket;
        if screen.output.json {
            print_json(&TicketEvent {
                event: "ticket",
                ticket: self.ticket.to_string(),
                id: id_text(*id),
                addresses,
                expires_unix_s: *expires_unix_s,
                is_once: *is_once,
            })?;
        } else if self.ticket_file.is_none() {
            print(&format!("{}\n", self.ticket))?;
        }
        terminal::flush()?;
        let mut command = command.to_owned();
        if let Some(path) = &self.ticket_file {
            let name = escaped(path.as_os_str().as_bytes());
            write_private(path, &format!("{}\n", self.ticket)).map_err(|error| {
                CommandFailure::usage(
                    format!("--ticket {name}: cannot write: {}", plain(&error)),
                    "name a file in a directory that you can write to",
                )
            })?;
            command = command.replace("@FILE", &format!("@{name}"));
        } else if is_open_to_others() {
            screen
                .note("other users can read the file that holds the ticket: use --ticket FILE, or chmod 600 the file");
        }
        let facts = self.bound.endpoint.facts();
        let port = facts.local.port();
        let places: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let mut places = places.join(", ");
        if addresses.iter().any(|address| address.port() != port) {
            places = format!("port {port} for clients that connect to {places}");
        }
        let carriers = if facts.listens_tcp { "UDP, or TCP if UDP is blocked" } else { "UDP" };
        screen.note(&format!("listening on {places} over {carriers}; capacity {}", self.bound.capacity));
        if let Some(error) = &facts.tcp_error {
            screen.note(&format!("cannot listen on TCP port {port}: {error}; clients without UDP cannot connect"));
        }
        let uses = if *is_once { ", for one transfer" } else { "" };
        screen.note(&format!(
            "ticket {} is valid {}{uses}; its holder can run: {command}",
            id_text(*id),
            until(*expires_unix_s, now_unix_s())
        ));
        Ok(())
    }
}

/// Replaces the file at `path` in one step with one that only its owner can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes()).and_then(|()| fs::rename(&new, path)).inspect_err(|_| {
        // The error that matters is the one that is returned.
        let _ = fs::remove_file(&new);
    })
}

/// Whether stdout is a file that others may read.
fn is_open_to_others() -> bool {
    let is_file = |stat: &rustix::fs::Stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    rustix::fs::fstat(io::stdout()).is_ok_and(|stat| is_file(&stat) && stat.st_mode & 0o044 != 0)
}

/// An error of the state directory.
pub(crate) fn of_state(error: &StateError) -> CommandFailure {
    CommandFailure::Run(format!("{error}\nhint: run `fairwave doctor` to check the state directory"))
}

fn until(expires_unix_s: u64, now_unix_s: u64) -> String {
    if expires_unix_s == 0 {
        return "until revoked".into();
    }
    match expires_unix_s.saturating_sub(now_unix_s) {
        left_s @ 0..=119 => format!("for {left_s} s"),
        left_s @ 120..=7199 => format!("for {} min", left_s / 60),
        left_s => format!("for {} h", left_s.saturating_add(1800) / 3600),
    }
}

/// Durations of a ticket: minutes as m, and days and weeks, which are not units of a simulation.
fn in_days(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_at_checked(text.trim().len().checked_sub(1)?)?;
    let unit_s = match unit {
        "m" => 60.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return None,
    };
    let number: f64 = number.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * unit_s)
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    fairwave_host::listen_address(text)
        .ok_or_else(|| "not an address: use the form 192.0.2.7, 192.0.2.7:8642 or [2001:db8::7]:8642".into())
}

fn validity(text: &str) -> Result<TicketExpiry, String> {
    if matches!(text, "never" | "inf") {
        return Ok(TicketExpiry(None));
    }
    let seconds = match in_days(text) {
        Some(seconds) => seconds,
        None => quantity::<fairwave_units::Duration>(text)
            .map_err(|_| {
                format!("\"{}\" is not a duration: use the form 30m, 12h, 1d or \"90 min\"", text.escape_debug())
            })?
            .as_secs_f64(),
    };
    let seconds = seconds.ceil() as u64;
    if seconds == 0 { Err("must be above zero".into()) } else { Ok(TicketExpiry(Some(seconds))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_address__says_how_one_is_written() {
        let error = listen_address("here").unwrap_err();
        assert!(error.starts_with("not an address: use the form 192.0.2.7, "), "{error}");
    }

    #[test]
    fn validity__is_a_span_or_never() {
        assert_eq!(validity("2 h"), Ok(TicketExpiry(Some(7200))));
        assert_eq!(validity("never"), Ok(TicketExpiry(None)));
        assert_eq!(validity("0 s"), Err("must be above zero".into()));
        for (text, seconds) in
            [("1d", 86_400), ("1.5 d", 129_600), ("12h", 43_200), ("30m", 1800), ("30 min", 1800), ("1w", 604_800)]
        {
            assert_eq!(validity(text), Ok(TicketExpiry(Some(seconds))), "{text}");
        }
        for wrong in ["2", "1y", "-1d", "d", "", "NaNd", "0d"] {
            assert!(validity(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn until__takes_any_end_and_any_clock() {
        assert_eq!(until(0, 1_000), "until revoked");
        assert_eq!(until(1_060, 1_000), "for 60 s");
        assert_eq!(until(900, 1_000), "for 0 s");
        assert_eq!(until(1_000 + 7_199, 1_000), "for 119 min");
        assert_eq!(until(1_000 + 9_000, 1_000), "for 3 h");
        // `--expires 1e15w` lasts beyond what the keyring counts: (2^64 - 1) / 3600 h.
        assert_eq!(validity("1e15w"), Ok(TicketExpiry(Some(u64::MAX))));
        assert_eq!(until(u64::MAX, 0), "for 5124095576030431 h");
        assert_eq!(until(u64::MAX, u64::MAX), "for 0 s");
    }
}
