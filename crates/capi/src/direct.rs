//! `g_send` and `g_recv` of many bytes, which bypass the descriptor between the program and the session.
//!
//! A waiting call waits in a system call, so that signals, timeouts and whether a socket blocks are the system's.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use fairwave_pipe::{Given, Pipe};
use libc::ssize_t;
use rustix::fs::OFlags;
use rustix::net::sockopt::{Timeout, socket_timeout};
use rustix::net::{RecvFlags, SendFlags};

use crate::errno::Errno;
use crate::signals;
use crate::socket::{Socket, Stage};

/// Calls with less go through the descriptor: what a copy costs is less than what it costs to save one.
const LEAST: usize = 32 << 10;
/// After this many bytes since the last wait, more will arrive, and are cheaper taken together. The pump has the same
/// rest.
const REST: Duration = Duration::from_micros(50);

/// The result of sending bytes directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direct {
    /// So many went, and the call is over.
    Sent(usize),
    /// So many went, and what follows has to go through the descriptor.
    Rest(usize),
    /// Nothing went, for this reason.
    Failed(Errno),
}

impl Direct {
    /// The result of the call.
    pub(crate) fn outcome(self) -> Result<ssize_t, Errno> {
        match self {
            Self::Sent(bytes) | Self::Rest(bytes) => Ok(bytes.cast_signed()),
            Self::Failed(error) => Err(error),
        }
    }

    fn or_sent(self, bytes: usize) -> Self {
        if bytes > 0 { Self::Sent(bytes) } else { self }
    }
}

/// The pipe of a socket for a call of this many bytes that needs no descriptor.
pub(crate) fn pipe_for(socket: Option<&Socket>, length: usize, flags: i32) -> Option<Pipe> {
    let knows = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if length < LEAST || isize::try_from(length).is_err() || flags & !knows != 0 {
        return None;
    }
    let state = socket?.state.lock();
    state.pipe.clone().filter(|_| matches!(state.stage, Stage::Connected { .. }))
}

/// Receives as `recv(2)` does.
pub(crate) fn recv(pipe: &Pipe, fd: BorrowedFd<'_>, room: &mut [u8], flags: i32) -> Result<ssize_t, Errno> {
    let mut peeks = RecvFlags::PEEK;
    peeks.set(RecvFlags::DONTWAIT, flags & libc::MSG_DONTWAIT != 0);
    loop {
        match pipe.take(fd, room) {
            Err(rustix::io::Errno::AGAIN) => {}
            taken => return Ok(taken?.cast_signed()),
        }
        // It waits as long as the system would, and for what the system would wait for.
        signals::let_come(|| rustix::net::recv(fd, &mut [0; 1], peeks))?;
        if pipe.is_busy() {
            std::thread::sleep(REST);
        }
    }
}

/// Sends as `send(2)` does, as much as can go without the descriptor.
pub(crate) fn send(pipe: &Pipe, fd: BorrowedFd<'_>, bytes: &[u8], flags: i32) -> Direct {
    let mut sent = 0;
    loop {
        // Whether the program may write at all: a send of zero bytes reports only that.
        if rustix::net::send(fd, &[], SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
            return Direct::Rest(sent);
        }
        match pipe.give(&bytes[sent..]) {
            Given::Some(more) => sent += more,
            Given::ByDescriptor => return Direct::Rest(sent),
            Given::NoRoom => {
                if !waits(fd, flags) {
                    return Direct::Rest(sent);
                }
                if let Err(error) = pipe.wait_for_room(|wait| signals::let_come(wait)) {
                    return Direct::Failed(error.into()).or_sent(sent);
                }
            }
        }
        if sent == bytes.len() {
            return Direct::Sent(sent);
        }
    }
}

/// Whether a call waits until there is room, however long that takes. One that waits for a while only (SO_SNDTIMEO)
/// does so at the descriptor.
fn waits(fd: BorrowedFd<'_>, flags: i32) -> bool {
    let is_blocking = rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
    flags & libc::MSG_DONTWAIT == 0 && is_blocking && socket_timeout(fd, Timeout::Send) == Ok(None)
}
