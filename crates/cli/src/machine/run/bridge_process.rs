//! The bridge process of a program: the near end of the bridge.

use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use fairwave_bridge::{Near, NearOptions};
use fairwave_host::{Endpoint, EndpointConfig, Lasts};
use fairwave_pipe::{OPENS_WITHIN, PipeOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::map::Map;
use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::interrupt;
use crate::common::output_args::OutputArgs;
use crate::common::screen::Screen;
use crate::common::terminal::{self, print};
use crate::machine::bridge::pump;
use crate::transfer::link::{Bound, LinkArgs};
use crate::transfer::monitor::monitor;

/// TCP is tried in parallel if UDP is not answered within this time: a person waits for a connection.
const TCP_AFTER: fairwave_units::Duration = fairwave_units::Duration::from_millis(300);
/// After the program's end it keeps standard error for this time, to report failures of the last writes.
const SAYS_FOR: Duration = Duration::from_secs(10);
/// Poll interval for whether it is still needed.
const TICK: Duration = Duration::from_millis(20);

/// Starts the bridge process and exits, so that it has no parent here.
pub(super) fn detach() -> Done {
    let begun = keep_standard_streams_alone().and_then(|()| {
        Command::new(this_program()).arg0("fairwave").args(std::env::args_os().skip(1)).arg("--detached").spawn()
    });
    begun.map(drop).map_err(|error| CommandFailure::Run(format!("cannot start the bridge: {}", plain(&error))))
}

/// This very file, also when another lies at its place by now.
pub(super) fn this_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Closes all descriptors except the first three. The rest are the program's: a pipe that it closes must be closed, and
/// a lock that it releases must be free.
#[expect(unsafe_code, reason = "descriptors that came with the process, and that no value owns")]
fn keep_standard_streams_alone() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number| *number > rustix::stdio::raw_stderr()) else { continue };
        // SAFETY: it is open: it is in the list, as is the listed directory's own, and no other thread closes any.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok(())
}

/// Is the near end for as long as the program lives, or has connections.
pub(super) fn stay(program: i32, link: &LinkArgs, is_quiet: bool) -> Done {
    // Ctrl-C is for the program. setsid fails for a group leader.
    let _ = rustix::process::setsid();
    interrupt::be_gentle();
    // The process that becomes the program waits for this one: its number is still its own.
    let program = Pid::from_raw(program)
        .ok_or(io::ErrorKind::InvalidInput.into())
        .and_then(|program| pidfd_open(program, PidfdFlags::empty()).map_err(io::Error::from))
        .map_err(|error| CommandFailure::Run(format!("--beside: {}", plain(&error))))?;
    let screen = Screen::new(OutputArgs { quiet: is_quiet, ..OutputArgs::default() });
    let maps = maps()?;
    let peer = maps.iter().flat_map(Map::peers).next().map(SocketAddr::ip);
    let (config, capacity) = link.config(peer);
    let lasts = Lasts { opening: OPENS_WITHIN, ..config.lasts };
    let config = EndpointConfig { tunnels_after: TCP_AFTER, lasts, ..config };
    let endpoint = Endpoint::bind(&config).map_err(|error| CommandFailure::Run(error.to_string()))?;
    let bound = Bound { endpoint: endpoint.clone(), capacity };
    let options = NearOptions { session: link.session(), pipe: PipeOptions::default() };
    let ways = maps.into_iter().map(Map::way).collect();
    let near = Near::open(endpoint, pump()?, ways, options, move |text| {
        if !is_quiet {
            terminal::note(&format!("fairwave run: {text}"));
        }
    })
    .map_err(|error| CommandFailure::Run(format!("cannot listen on loopback: {}", plain(&error))))?;
    let _socket = monitor(&screen, "run", &bound, Vec::new);
    let (variable, plan) = near.plan();
    print(&format!("{variable}={plan}\n")).and_then(|()| terminal::flush())?;
    wait_for(&program);
    let ended = Instant::now();
    let mut holds_streams = true;
    while !interrupt::is_asked() && !near.is_idle() {
        std::thread::sleep(TICK);
        if holds_streams && ended.elapsed() >= SAYS_FOR {
            let_go_of_standard_streams();
            holds_streams = false;
        }
    }
    bound.endpoint.close();
    Ok(())
}

/// Readers of the program's output must not wait for a server that keeps a connection open.
fn let_go_of_standard_streams() {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        // Without it they stay: nothing else depends on them.
        let _ = rustix::stdio::dup2_stdout(&null).and_then(|()| rustix::stdio::dup2_stderr(&null));
    }
}

/// The maps from the process that starts this one, one per line.
fn maps() -> Result<Vec<Map>, CommandFailure> {
    let wrong = |why: String| {
        CommandFailure::usage(format!("--beside: stdin: {why}"), "this option is internal: use `fairwave run --map`")
    };
    let lines = io::stdin().lock().lines();
    lines.map(|line| line.map_err(|error| error.to_string()).and_then(|line| line.parse()).map_err(wrong)).collect()
}

/// Waits until the program has ended, or this process is asked to stop.
fn wait_for(program: &OwnedFd) {
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    while !interrupt::is_asked() {
        // Readable when it has ended: pidfd_open(2).
        if poll(&mut [PollFd::new(program, PollFlags::IN)], Some(&tick)).is_ok_and(|ready| ready > 0) {
            return;
        }
    }
}
