//! `fairwave daemon`.

use std::path::PathBuf;
use std::time::Duration as StdDuration;

use clap::ValueEnum;
use fairwave_daemon::{Daemon, DaemonError, Settings};
use fairwave_host::door::usual_sockets;
use fairwave_proto::{CardCapacity, ShareBy};
use fairwave_units::{Duration, Rate};

use crate::Done;
use crate::failure::CommandFailure;
use crate::interrupt;
use crate::simulate::quantity;
use crate::transfer::link::positive_rate;
use crate::transfer::screen::{Screen, Talk};

/// Be the end node of this machine: the sessions of all Fairwave processes of all users share its capacity.
///
/// Processes find it at its socket and take part by themselves; the data stay theirs. Without --capacity, --send and
/// --receive each network card has 95 % of its speed, and what crosses none that tells its speed, such as loopback, is
/// not held. Where a daemon ends, its processes keep what they were granted last, a tenth less each minute, until one
/// is there again. An interrupt ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave daemon
  fairwave daemon --capacity \"700 Mb/s\" --socket /tmp/fairwave.sock
  FAIRWAVE_DAEMON=/tmp/fairwave.sock fairwave get @big.ticket .")]
pub(crate) struct Args {
    /// Where its socket is [default: $FAIRWAVE_DAEMON; as root /run/fairwave/daemon.sock, else fairwave/daemon.sock in
    /// $XDG_RUNTIME_DIR]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// What this machine may send, and receive, by all its cards together, loopback too, such as "1 Gb/s"
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    capacity: Option<Rate>,
    /// What it may send, where that is another rate
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    send: Option<Rate>,
    /// What it may receive, where that is another rate
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    receive: Option<Rate>,
    /// The control interval, from 1 ms to 200 ms; it becomes longer where a tick costs more than a fiftieth of it
    #[arg(long, value_name = "T", value_parser = interval, default_value = "20 ms")]
    interval: Duration,
    /// Between whom the capacity is shared, before each shares its part among its sessions
    #[arg(long, value_enum, value_name = "WHO", default_value = "user")]
    share_by: ShareByName,
    #[command(flatten)]
    talk: Talk,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShareByName {
    /// Users of this machine
    User,
    /// Processes
    Process,
    /// Sessions, whosever they are
    Session,
}

const LOOK_EVERY: StdDuration = StdDuration::from_millis(50);

pub(crate) fn run(args: &Args) -> Done {
    let screen = Screen::new(args.talk);
    let settings = settings(args)?;
    let socket = settings.socket.clone();
    let capacity = settings.everything;
    let daemon = Daemon::start(settings).map_err(|error| match error {
        DaemonError::Bind(error) => {
            CommandFailure::usage(format!("--socket {error}"), "`fairwave status` shows the daemon that runs")
        }
        DaemonError::System(_) => CommandFailure::Run(error.to_string()),
    })?;
    interrupt::be_gentle();
    let words = |rate: Option<Rate>| rate.map_or_else(|| "unlimited".to_owned(), |rate| format!("{rate:.2}"));
    let shares = match capacity {
        None => "each network card".to_owned(),
        Some(CardCapacity { send, receive }) if send == receive => words(send),
        Some(CardCapacity { send, receive }) => format!("{} out, {} in", words(send), words(receive)),
    };
    screen.note(&format!("shares {shares} at {}", socket.display()));
    while !interrupt::is_asked() {
        std::thread::sleep(LOOK_EVERY);
        if daemon.is_over() {
            return Err(CommandFailure::Run("the daemon's threads have ended".to_owned()));
        }
    }
    Ok(())
}

fn settings(args: &Args) -> Result<Settings, CommandFailure> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => usual_socket()?,
    };
    let socket = std::path::absolute(&socket)
        .map_err(|error| CommandFailure::usage(format!("--socket {}: {error}", socket.display()), "name a path"))?;
    let (send, receive) = (args.send.or(args.capacity), args.receive.or(args.capacity));
    let everything = (send.is_some() || receive.is_some()).then_some(CardCapacity { send, receive });
    let share_by = match args.share_by {
        ShareByName::User => ShareBy::User,
        ShareByName::Process => ShareBy::Process,
        ShareByName::Session => ShareBy::Session,
    };
    Ok(Settings { interval: args.interval, share_by, everything, ..Settings::at(socket) })
}

/// Root's is the system's; who is not root has one of its own.
fn usual_socket() -> Result<PathBuf, CommandFailure> {
    let is_root = rustix::process::geteuid().is_root();
    let sockets = usual_sockets();
    let found = if is_root || sockets.len() == 1 { sockets.first() } else { sockets.get(1) };
    let is_system = |path: &PathBuf| path.starts_with("/run/fairwave");
    found.filter(|path| is_root || !is_system(path)).cloned().ok_or_else(|| {
        CommandFailure::usage("daemon: there is no usual place for its socket", "name one: --socket PATH")
    })
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = quantity::<Duration>(text)?;
    let bounds = Duration::from_millis(1)..=Duration::from_millis(200);
    if bounds.contains(&interval) { Ok(interval) } else { Err("must lie between 1 ms and 200 ms".into()) }
}
