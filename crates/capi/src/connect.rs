//! Sockets that call.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::{ConnectOptions, Ticket};
use fairwave_pipe::greeting;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use crate::connector::Attempt;
use crate::errno::Errno;
use crate::library::Library;
use crate::signals;
use crate::socket::{Socket, SocketWatch, Stage};

/// Fills the way from the program, so that it can write nothing: how many bytes that takes.
fn fill(theirs: impl AsFd) -> usize {
    let (piece, mut filled) = ([0; 4096], 0);
    // Smaller and smaller pieces, until nothing goes in.
    for size in [4096, 256, 1] {
        while let Ok(sent) = send(&theirs, &piece[..size], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            filled += sent;
        }
    }
    filled
}

/// Calls: `theirs` is the program's end. Returns when it is connected, or at once if it does not wait.
pub(crate) fn connect(
    library: &Library,
    socket: &Arc<Socket>,
    theirs: BorrowedFd<'_>,
    ticket: &Ticket,
) -> Result<(), Errno> {
    let options = socket.state.lock().options;
    let bound = socket.state.lock().endpoint.clone();
    let first = ticket.addresses.first().copied().ok_or(Errno(libc::EDESTADDRREQ))?;
    let endpoint = match bound {
        Some(endpoint) => endpoint,
        None => library.endpoint(socket, &options, first)?,
    };
    {
        let mut state = socket.state.lock();
        if state.stage != Stage::New {
            return Err(Errno(libc::EALREADY));
        }
        state.stage = Stage::Connecting;
        state.peer = Some(first);
        state.endpoint = Some(endpoint.clone());
    }
    let filler_bytes = fill(theirs);
    let watch = Box::new(SocketWatch { socket: Arc::downgrade(socket) });
    let (pipe, handler) = library.pump.pipe(options.pipe(), watch);
    socket.state.lock().pipe = Some(pipe.clone());
    let options = ConnectOptions { sends: true, receives: true, greeting: greeting(b""), options: options.session };
    let answer = endpoint.begin(ticket, options, handler, None).map_err(|error| Errno::from(&error))?;
    let attempt = Attempt { socket: Arc::clone(socket), pipe, filler_bytes, answer };
    library.connector.watch(attempt)?;
    if rustix::fs::fcntl_getfl(theirs)?.contains(rustix::fs::OFlags::NONBLOCK) {
        return Err(Errno(libc::EINPROGRESS));
    }
    wait_for(socket, theirs)
}

/// Waits until an attempt has come to something, as long as SO_SNDTIMEO allows.
fn wait_for(socket: &Socket, theirs: BorrowedFd<'_>) -> Result<(), Errno> {
    let most = rustix::net::sockopt::socket_timeout(theirs, rustix::net::sockopt::Timeout::Send)?;
    let until = most.and_then(|most| Instant::now().checked_add(most));
    loop {
        if let Some(outcome) = outcome(socket) {
            return outcome;
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(Errno(libc::EINPROGRESS));
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut ends = [PollFd::from_borrowed_fd(theirs, PollFlags::OUT)];
        signals::let_come(|| poll(&mut ends, timeout.as_ref()))?;
    }
}

/// The result of an attempt, if it is over. It is returned once.
pub(crate) fn outcome(socket: &Socket) -> Option<Result<(), Errno>> {
    let mut state = socket.state.lock();
    match state.stage {
        Stage::Connected { is_reported: false } => {
            state.stage = Stage::Connected { is_reported: true };
            Some(Ok(()))
        }
        Stage::Connected { is_reported: true } => Some(Err(Errno(libc::EISCONN))),
        Stage::Failed => Some(Err(socket.take_error().unwrap_or(Errno(libc::ECONNABORTED)))),
        Stage::New | Stage::Listening | Stage::Connecting => None,
    }
}
