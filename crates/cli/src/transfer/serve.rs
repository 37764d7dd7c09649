//! `fairwave serve`.

mod attendance;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairwave_files::{Share, ShareOptions};
use fairwave_host::{
    Issued, Keyring, Offering, Refusal, ShareId, StateDir, TicketId, advertised, id_text, now_unix_s, read_id,
    unadvertised,
};
use fairwave_units::Bytes;
use serde::Serialize;

use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::interrupt;
use crate::common::output::print_json;
use crate::common::quantity::quantity;
use crate::common::screen::Screen;
use crate::common::table::TextTable;
use crate::common::terminal::print;
use crate::transfer::monitor::{monitor, transfers};
use crate::transfer::offer::{ListenArgs, Offered, of_state};
use crate::transfer::own_places::note_left_out;
use attendance::Attendance;

/// Offer files for download or upload, and print the ticket that grants access.
///
/// The ticket is the only output on stdout, so that it can be redirected to a file and copied to the other machine over a
/// secure channel. It is a secret: it holds this machine's address and public key, and grants access. Serving the same
/// paths again reuses the same UDP port and accepts tickets that have not expired. Ctrl-C stops the server.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a command line")]
#[command(after_help = "\
Examples:
  fairwave serve big.bin > big.ticket
  fairwave serve inbox --writable --once > inbox.ticket
  fairwave serve inbox --writable --quota \"10 GB\" > inbox.ticket
  fairwave serve team --writable --readable --expires 30d > team.ticket
  fairwave serve --revoke 0123456789abcdef")]
pub(crate) struct Args {
    /// Files and directories to serve
    #[arg(value_name = "PATH", required_unless_present_any = ["revoke", "tickets", "bootstrap"])]
    paths: Vec<PathBuf>,
    /// Accept uploads into PATH (one directory); downloads are refused
    #[arg(long)]
    writable: bool,
    /// With --writable, allow downloads from PATH as well
    #[arg(long, requires = "writable")]
    readable: bool,
    /// Accept symbolic links that point outside PATH, if the client puts with --links; without this they fail
    #[arg(long, requires = "writable", hide_short_help = true)]
    links: bool,
    /// Let clients delete in PATH (put --delete)
    #[arg(long, requires = "writable", hide_short_help = true)]
    delete: bool,
    /// Let clients set owners, set-user-ID bits, extended attributes and devices in PATH (put --archive)
    #[arg(long, requires = "writable", hide_short_help = true)]
    archive: bool,
    /// Limit the size of PATH, such as "10 GB"; uploads beyond it fail
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "writable")]
    quota: Option<Bytes>,
    /// Accept the ticket until the first complete transfer only
    #[arg(long)]
    once: bool,
    /// Revoke the ticket with this ID (see --tickets), including in running servers
    #[arg(long, value_name = "ID", value_parser = ticket_id, exclusive = true)]
    revoke: Option<TicketId>,
    /// List the tickets issued on this machine
    #[arg(long, conflicts_with_all = ["paths", "writable", "revoke"])]
    tickets: bool,
    /// Run as the remote end of `fairwave cp`
    #[arg(long, hide = true, exclusive = true)]
    bootstrap: bool,
    #[command(flatten)]
    listen: ListenArgs,
}

#[derive(Serialize)]
struct TicketEntry {
    id: String,
    share: String,
    /// The paths that the ticket is for, if known.
    paths: Option<Vec<String>>,
    is_readable: Option<bool>,
    is_writable: Option<bool>,
    state: &'static str,
    issued_unix_s: u64,
    expires_unix_s: u64,
    is_once: bool,
}

const TICK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args) -> Done {
    if args.bootstrap {
        return crate::transfer::cp::far::run(crate::transfer::cp::copy_for_another);
    }
    if let Some(id) = args.revoke {
        return revoke(id);
    }
    if args.tickets {
        return list(args.listen.output.json);
    }
    let screen = Screen::new(args.listen.output);
    let paths = absolute(&args.paths)?;
    let share_id = match paths.as_slice() {
        [one] if args.readable => ShareId::of_exchange(one),
        all => ShareId::of(all, args.writable),
    };
    let share = Arc::new(share(paths.clone(), args)?);
    let offered = args.listen.open(share_id, args.once)?;
    let offering = Offering {
        paths: paths.iter().map(|path| shown(path)).collect(),
        takes: args.writable,
        gives: !args.writable || args.readable,
    };
    let command = if offering.gives { "fairwave get @FILE DEST" } else { "fairwave put PATH... @FILE" };
    offered.keyring.keep_offering(offering).map_err(|error| of_state(&error))?;
    note_left_out(&screen, &paths);
    if let Some(missing) = args.listen.link.without_capacity(&offered.bound.capacity) {
        screen.note(&missing);
    }
    note_omitted(&screen, &offered);
    serve(&screen, &offered, &share, command)
}

/// Names the addresses of this host for which the ticket had no room.
fn note_omitted(screen: &Screen, offered: &Offered) {
    let (local, ticket) = (offered.bound.endpoint.local_addr(), &offered.ticket);
    let (all, omitted) = (advertised(local).unwrap_or_default(), unadvertised(local).unwrap_or_default());
    // --advertise names others.
    if omitted.is_empty() || !all.iter().all(|address| ticket.addresses.contains(address)) {
        return;
    }
    let named: Vec<_> = omitted.iter().map(|address| address.ip().to_string()).collect();
    screen.note(&format!(
        "the ticket has no room for these addresses of this host: {}; --advertise chooses others",
        named.join(", ")
    ));
}

fn serve(screen: &Screen, offered: &Offered, share: &Arc<Share>, command: &str) -> Done {
    let endpoint = &offered.bound.endpoint;
    endpoint.listen_with(Arc::clone(&offered.keyring), share.judges(), share.accept());
    let shown = Arc::clone(share);
    let _socket = monitor(screen, "serve", &offered.bound, move || transfers(&shown));
    interrupt::be_gentle();
    offered.print_ticket(screen, command)?;
    let mut attendance = Attendance::new(screen, offered.bound.capacity.rate);
    let mut spent = BTreeSet::new();
    loop {
        let is_idle = endpoint.sessions().is_empty() && !share.is_held(offered.ticket.id);
        if interrupt::is_asked() || is_idle && spent.contains(&offered.ticket.id) {
            break;
        }
        std::thread::sleep(TICK);
        let visits = share.transfers();
        let tickets: BTreeSet<TicketId> = visits.iter().map(|visit| visit.ticket).collect();
        for ticket in tickets {
            // Transfers of an expired ticket continue to their end; the endpoint closes the sessions of a revoked
            // ticket.
            if offered.keyring.refusal(ticket) == Some(Refusal::UsedUp) && spent.insert(ticket) {
                // The file has to record it before this process can end.
                offered.keyring.spend(ticket).map_err(|error| of_state(&error))?;
                screen.note(&format!("ticket {} has been used", id_text(ticket)));
            }
        }
        attendance.look(visits)?;
    }
    endpoint.close();
    attendance.look(share.transfers())
}

/// The offered paths, checked.
fn share(paths: Vec<PathBuf>, args: &Args) -> Result<Share, CommandFailure> {
    let writable_into = match (args.writable, paths.as_slice()) {
        (false, _) => None,
        (true, [one]) => Some(one.clone()),
        (true, _) => {
            return Err(CommandFailure::usage(
                "--writable: expected one directory",
                "fairwave serve DIRECTORY --writable",
            ));
        }
    };
    let (quota, session) = (args.quota, args.listen.link.session());
    let (only_takes, may_keep_links, may_delete) = (args.writable && !args.readable, args.links, args.delete);
    Share::new(
        paths,
        ShareOptions {
            writable_into,
            only_takes,
            may_keep_links,
            may_delete,
            may_archive: args.archive,
            quota,
            session,
            ..ShareOptions::default()
        },
    )
    .map_err(|error| CommandFailure::Usage(error.to_string()))
}

/// Paths that mean the same from anywhere, so that the same call names the same share.
fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandFailure> {
    let one = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| {
            CommandFailure::usage(format!("{}: {}", shown(path), plain(&error)), "name existing files or directories")
        })
    };
    paths.iter().map(one).collect()
}

fn shown(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    fairwave_files::escaped(path.as_os_str().as_bytes())
}

/// The keyring of no share: all tickets are in it.
fn keyring() -> Result<Keyring, CommandFailure> {
    let state = StateDir::open().map_err(|error| of_state(&error))?;
    Keyring::open(state, ShareId(0)).map_err(|error| of_state(&error))
}

fn revoke(id: TicketId) -> Done {
    if keyring()?.revoke(id).map_err(|error| of_state(&error))? {
        return Ok(());
    }
    Err(CommandFailure::usage(
        format!("--revoke {}: no such ticket on this machine", id_text(id)),
        "run `fairwave serve --tickets` for a list",
    ))
}

fn list(is_json: bool) -> Done {
    let now_unix_s = now_unix_s();
    let keyring = keyring()?;
    let offering = |share| keyring.offering(share);
    let entry = |(id, issued): (TicketId, Issued)| TicketEntry {
        id: id_text(id),
        share: issued.share.to_string(),
        paths: offering(issued.share).map(|offering| offering.paths),
        is_readable: offering(issued.share).map(|offering| offering.gives),
        is_writable: offering(issued.share).map(|offering| offering.takes),
        state: match issued.refusal(now_unix_s) {
            None => "good",
            Some(Refusal::Expired) => "expired",
            Some(Refusal::UsedUp) => "used up",
            Some(_) => "revoked",
        },
        issued_unix_s: issued.issued_unix_s,
        expires_unix_s: issued.expires_unix_s,
        is_once: issued.is_once,
    };
    let mut all: Vec<_> = keyring.issued().into_iter().map(entry).collect();
    all.sort_by_key(|entry| entry.issued_unix_s);
    if is_json {
        return all.iter().try_for_each(print_json);
    }
    let mut table = TextTable::new(&["ticket", "share", "state", ">hours left", "uses"]);
    for entry in all {
        let left = match (entry.state, entry.expires_unix_s) {
            ("good", 0) => "unlimited".into(),
            ("good", end) => format!("{:.1}", end.saturating_sub(now_unix_s) as f64 / 3600.0),
            _ => "-".into(),
        };
        let uses = if entry.is_once { "one" } else { "any" };
        table.row([entry.id.clone(), share_text(&entry), entry.state.into(), left, uses.into()]);
    }
    print(&table.render(2))
}

/// Description of a ticket's share for people.
fn share_text(entry: &TicketEntry) -> String {
    let Some(paths) = &entry.paths else {
        let is_bench = entry.share == ShareId::of(["bench"], false).to_string();
        return if is_bench { "bench".into() } else { entry.share.clone() };
    };
    let what = match (entry.is_writable, entry.is_readable) {
        (Some(true), Some(true)) => " (writable, readable)",
        (Some(true), _) => " (writable)",
        _ => "",
    };
    paths.join(" ") + what
}

fn size(text: &str) -> Result<Bytes, String> {
    let size = quantity::<Bytes>(text)?;
    if size > Bytes::ZERO { Ok(size) } else { Err("must be above zero".into()) }
}

fn ticket_id(text: &str) -> Result<TicketId, String> {
    read_id(text).ok_or_else(|| "not a ticket ID: expected 16 hexadecimal digits".into())
}
