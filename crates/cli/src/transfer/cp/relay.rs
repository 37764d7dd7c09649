//! A copy between two other machines: the machine of the destination fetches from that of the sources.
//!
//! Files travel directly between them, or through the two ssh connections, whose bytes are passed on here unread. Both
//! far ends leave when this process does.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fairwave_host::Carriers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::message::{CpTask, RemotePath};
use super::ssh::{self, FarEnd, SshCall};
use super::ssh_process;
use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::screen::Screen;

const TICK: Duration = Duration::from_millis(50);
/// Grace period of the far end after an interrupt: as its own, and the way.
const STOPS_WITHIN: Duration = Duration::from_secs(15);
/// Bytes that are passed on at once.
const PART_BYTES: usize = 64 << 10;

/// The call, as it is repeated at the machine of the destination.
pub(super) struct Call {
    pub(super) arguments: Vec<OsString>,
    pub(super) lists: Vec<Vec<u8>>,
}

/// Copies from a far end, or within the machine of the destination.
pub(super) fn run(screen: &Screen, from: Option<FarEnd>, call: Call, taker: impl FnOnce(CpTask) -> SshCall) -> Done {
    let paths = |all: Vec<OsString>| all.iter().map(|path| RemotePath::new(path)).collect();
    let lists = call.lists.into_iter().map(OsString::from_vec).collect();
    let ticket = from.as_ref().map(|from| from.ticket.to_string());
    let taker = taker(CpTask::Copy { arguments: paths(call.arguments), lists: paths(lists), ticket });
    let done = ssh::begin_copy(&taker).and_then(|child| attend(screen, from.as_ref(), &taker, child));
    if let Some(lines) = &taker.lines {
        lines.finish();
    }
    if let Some(from) = from {
        from.end();
    }
    done
}

/// Passes bytes on until the copy has ended.
fn attend(screen: &Screen, from: Option<&FarEnd>, taker: &SshCall, mut child: Child) -> Done {
    interrupt::be_gentle();
    let is_over = Arc::new(AtomicBool::new(false));
    let tunnel = from.and_then(|from| from.route(Carriers::Any)).map(|route| route.tunnel);
    let (reader, writer) = tunnel.map(|tunnel| (File::from(tunnel.reader), File::from(tunnel.writer))).unzip();
    let begun = pass_on(&mut child, reader, writer, &is_over);
    let mut stopping: Option<Instant> = begun.is_err().then(Instant::now);
    let status = loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => break status.code(),
            Err(_) => break None,
        }
        let is_unread = taker.lines.as_ref().is_some_and(|lines| lines.is_unread());
        match stopping {
            None if interrupt::is_asked() || is_unread => {
                stopping = Some(Instant::now());
                screen.note("stopping; press Ctrl-C again to stop at once");
            }
            Some(since) if since.elapsed() > STOPS_WITHIN => {
                ssh_process::kill(&mut child);
                break None;
            }
            Some(_) => is_over.store(true, Ordering::SeqCst),
            None => {}
        }
        std::thread::sleep(TICK);
    };
    is_over.store(true, Ordering::SeqCst);
    begun.map_err(|error| CommandFailure::Run(format!("cannot start a thread: {error}")))?;
    let hint = "hint: repeat the command to resume";
    match status {
        _ if taker.lines.as_ref().is_some_and(|lines| lines.is_unread()) => {
            Err(CommandFailure::Run(format!("stdout: its reader has left; the transfer was stopped\n{hint}")))
        }
        Some(0) => Ok(()),
        Some(code @ (1..=5 | 130)) => Err(CommandFailure::Reported(code as u8)),
        _ if interrupt::is_asked() => Err(CommandFailure::Interrupted(format!("stopped\n{hint}"))),
        Some(255) | None => Err(CommandFailure::Lost(format!("{}: the ssh connection ended\n{hint}", taker.host))),
        Some(code) => {
            Err(CommandFailure::Lost(format!("{}: the remote fairwave exited with status {code}\n{hint}", taker.host)))
        }
    }
}

/// Two threads that pass bytes on, from the machine of the sources and to it. The end of standard input is an interrupt:
/// it stays open until the copy is over.
fn pass_on(child: &mut Child, reader: Option<File>, writer: Option<File>, is_over: &Arc<AtomicBool>) -> io::Result<()> {
    let (Some(stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let is_over = Arc::clone(is_over);
    std::thread::Builder::new().spawn(move || {
        if let Some(reader) = reader {
            // The far end gets by without it as long as datagrams come.
            let _ = pass_to(&stdin, &reader, &is_over);
        }
        while !is_over.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
        }
        drop(stdin);
    })?;
    std::thread::Builder::new().spawn(move || {
        let is_passed = writer.is_some_and(|mut writer| io::copy(&mut stdout, &mut writer).is_ok());
        if !is_passed {
            // The copy waits for nobody who is gone.
            let _ = io::copy(&mut stdout, &mut io::sink());
        }
    })?;
    Ok(())
}

/// Passes bytes on until there are no more, or the copy is over.
fn pass_to(mut to: &ChildStdin, mut from: &File, is_over: &AtomicBool) -> io::Result<()> {
    let mut part = vec![0; PART_BYTES];
    let wait = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    while !is_over.load(Ordering::SeqCst) {
        if poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&wait))? == 0 {
            continue;
        }
        match from.read(&mut part)? {
            0 => break,
            bytes => to.write_all(&part[..bytes])?,
        }
    }
    Ok(())
}
