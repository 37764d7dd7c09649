//! One socket, as the library knows it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Weak};

use fairwave_host::{
    CloseReason, Endpoint, EndpointConfig, Lasts, Lock, NodeChoice, PathKind, Session, StatusSample, Terms, Ticket,
};
use fairwave_pipe::{OPENS_WITHIN, Pipe, PipeOptions, Watch};
use fairwave_units::{Bytes, Rate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};

use crate::errno::Errno;
use crate::ours::{self, Ours};

/// A socket. The program has one end of a Unix socket pair, and the library the other until the pump has it.
pub(crate) struct Socket {
    /// Identifies the program's end, whatever its descriptor number.
    pub(crate) node: Node,
    pub(crate) is_v6: bool,
    pub(crate) state: Lock<SocketState>,
    /// The error that a call returns in place of ECONNRESET, or of the end of the stream; zero if none.
    error: AtomicI32,
    /// The number of the program's end when it was last seen; it may be another's by now.
    number: AtomicI32,
}

/// How a socket is.
pub(crate) struct SocketState {
    pub(crate) stage: Stage,
    pub(crate) ours: Option<Ours>,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) options: SocketOptions,
    pub(crate) pipe: Option<Pipe>,
    pub(crate) session: Option<Session>,
    /// Sample of its session at the last query of its limit.
    pub(crate) sample: Option<StatusSample>,
}

/// The stage of a socket, which determines the calls allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    New,
    Listening,
    Connecting,
    /// Whether the connecting program has the result.
    Connected {
        is_reported: bool,
    },
    /// It could not be connected.
    Failed,
}

/// The options that a program has set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketOptions {
    pub(crate) session: Terms,
    pub(crate) desired: Option<Rate>,
    pub(crate) path: PathKind,
    pub(crate) is_plain: bool,
    pub(crate) ahead: Bytes,
    /// This host's capacity, if the program sets it; else its network card's.
    pub(crate) capacity: Option<Rate>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            session: Terms::default(),
            desired: None,
            path: PathKind::Shared,
            is_plain: false,
            ahead: PipeOptions::default().ahead,
            capacity: None,
        }
    }
}

impl SocketOptions {
    /// An endpoint for that.
    pub(crate) fn endpoint(&self, listen: Option<SocketAddr>, capacity: Option<Rate>) -> EndpointConfig {
        EndpointConfig {
            listen,
            path: self.path,
            is_plain: self.is_plain,
            send_capacity: capacity,
            receive_capacity: capacity,
            is_card_capacity: self.capacity.is_none(),
            node: NodeChoice::Auto,
            lasts: Lasts { opening: OPENS_WITHIN, ..Lasts::default() },
            ..EndpointConfig::default()
        }
    }

    /// A pipe for that.
    pub(crate) fn pipe(&self) -> PipeOptions {
        // A MiB more is kept than the other end wants ahead, if that is as much: it never waits for the program's next
        // call.
        PipeOptions { ahead: self.ahead, keeps: Bytes::new(self.ahead.get() + (1 << 20)), ..PipeOptions::default() }
    }
}

/// Max bytes that wait between a program and the library, each way; the system doubles it for its overhead.
const BUFFER_BYTES: usize = 212_992;

/// The system's identity of a socket: its device and its inode. Inode numbers are per device.
pub(crate) type Node = (u64, u64);

/// The node of a descriptor, if that is a socket.
pub(crate) fn node_of(descriptor: impl AsFd) -> Result<Node, Errno> {
    let stat = fstat(descriptor)?;
    let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    if is_socket { Ok((stat.st_dev, stat.st_ino)) } else { Err(Errno(libc::ENOTSOCK)) }
}

impl Socket {
    /// A new one, and the program's end of it.
    pub(crate) fn new(is_v6: bool, stage: Stage, options: SocketOptions) -> Result<(Arc<Self>, OwnedFd), Errno> {
        let (ours, theirs) =
            Ours::open(|| socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None))?;
        // As much as any user may have: twice what the system gives unasked. With less each side waits more often.
        for end in [ours.get(), Some(&theirs)].into_iter().flatten() {
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(end, BUFFER_BYTES);
        }
        let node = node_of(&theirs)?;
        let state = SocketState {
            stage,
            ours: Some(ours),
            endpoint: None,
            peer: None,
            ticket: None,
            options,
            pipe: None,
            session: None,
            sample: None,
        };
        let (error, number) = (AtomicI32::new(0), AtomicI32::new(-1));
        Ok((Arc::new(Self { node, is_v6, state: Lock::new(state), error, number }), theirs))
    }

    /// The program has its end by this number.
    pub(crate) fn seen_at(&self, number: RawFd) {
        self.number.store(number, Ordering::Relaxed);
    }

    pub(crate) fn stage(&self) -> Stage {
        self.state.lock().stage
    }

    /// Whether nothing of it is under way any more: the program can do no more than close it.
    pub(crate) fn is_over(&self) -> bool {
        let (stage, pipe, is_closed) = {
            let state = self.state.lock();
            (state.stage, state.pipe.clone(), state.is_closed())
        };
        is_closed || stage == Stage::Failed || pipe.is_some_and(|pipe| pipe.is_over())
    }

    /// Whether it has its own port, and its program has closed it by a system call.
    pub(crate) fn is_left_with_port(&self) -> bool {
        let state = self.state.lock();
        state.endpoint.is_some() && state.is_closed()
    }

    /// All addresses of its family.
    pub(crate) fn anywhere(&self) -> IpAddr {
        if self.is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
    }

    /// Sets the error of the next call that fails, or that reaches the end of the stream.
    pub(crate) fn set_error(&self, error: Errno) {
        self.error.store(error.0, Ordering::SeqCst);
    }

    /// Takes the error that a call returns, once.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        Some(self.error.swap(0, Ordering::SeqCst)).filter(|error| *error != 0).map(Errno)
    }

    /// Closes the library's end so that the program sees a reset: its next call fails with ECONNRESET, also `read`.
    ///
    /// A Unix socket reports this to one end when the other is closed with unread data. If the program has written
    /// nothing that is unread, a byte is written in its place. If that is impossible, since it has ended its stream or
    /// closed its end, `g_recv` still reports it, and `read` sees the end of the stream.
    pub(crate) fn reset(&self, ours: OwnedFd, error: Errno) {
        self.set_error(error);
        self.leave_unread();
        ours::close(ours);
    }

    /// Writes the byte that the library leaves unread.
    fn leave_unread(&self) {
        // Between a check and the next call another thread may close it. The identity of the number is checked again,
        // and a byte goes to no other socket.
        let is_written = |number: RawFd| number >= 0 && self.write_for_program(number) == Ok(true);
        if !is_written(self.number.load(Ordering::Relaxed)) {
            // It may have it by another number: a copy, or one that it took without the library.
            let _ = number_of(self.node).is_some_and(is_written);
        }
    }

    /// The program has data to read, and its writes are lost: its next write reports that, also one that waits. Some
    /// data stay unread, so that it sees a reset when it has read all.
    fn refuse(&self, ours: &OwnedFd, error: Errno) {
        self.set_error(error);
        self.leave_unread();
        let _ = shutdown(ours, Shutdown::Read);
        // A program that waits to write is woken.
        let mut room = [0; 4096];
        while let Ok(unread) = rustix::io::ioctl_fionread(ours)
            && unread > 1
        {
            let most = room.len().min(usize::try_from(unread - 1).unwrap_or(usize::MAX));
            if !recv(ours, &mut room[..most], RecvFlags::DONTWAIT).is_ok_and(|(got, _)| got > 0) {
                return;
            }
        }
    }

    /// Closes the library's end so that the program sees the end of the stream: nothing may be unread then.
    fn close_quietly(ours: OwnedFd) {
        let mut room = [0; 4096];
        while recv(&ours, &mut room, RecvFlags::DONTWAIT).is_ok_and(|(got, _)| got > 0) {}
        ours::close(ours);
    }

    #[expect(unsafe_code, reason = "the number is the program's")]
    fn write_for_program(&self, number: RawFd) -> Result<bool, Errno> {
        // SAFETY: it is asked what the number leads to, and nothing else is done with it unless that is this socket.
        let theirs = unsafe { BorrowedFd::borrow_raw(number) };
        if node_of(theirs)? != self.node {
            return Ok(false);
        }
        let copy = rustix::io::fcntl_dupfd_cloexec(theirs, 0)?;
        if node_of(&copy)? == self.node {
            // Without room, there is unread data in any case.
            let _ = send(&copy, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        Ok(true)
    }
}

impl SocketState {
    /// Whether its program has closed it by a call of the system. One that has connected has a pipe, which sees that.
    fn is_closed(&self) -> bool {
        let has_no_pipe = matches!(self.stage, Stage::New | Stage::Listening);
        has_no_pipe && self.ours.as_ref().and_then(Ours::get).is_some_and(is_without_peer)
    }
}

/// Gives a program's end the flags that it asked for.
pub(crate) fn set_flags(theirs: &OwnedFd, is_cloexec: bool, is_nonblocking: bool) -> Result<(), Errno> {
    if !is_cloexec {
        fcntl_setfd(theirs, FdFlags::empty())?;
    }
    if is_nonblocking {
        rustix::io::ioctl_fionbio(theirs, true)?;
    }
    Ok(())
}

/// Whether the other end of a pair is closed.
fn is_without_peer(end: impl AsFd) -> bool {
    let mut ends = [PollFd::new(&end, PollFlags::empty())];
    let is_seen = poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|seen| seen > 0);
    is_seen && ends.iter().any(|end| end.revents().contains(PollFlags::HUP))
}

/// The number that a program has for a socket; any of several.
fn number_of((_, inode): Node) -> Option<RawFd> {
    let link = format!("socket:[{inode}]");
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    let found =
        entries.flatten().find(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == &*link));
    found?.file_name().to_str()?.parse().ok()
}

/// Hears how the pipe of a socket fares. The socket has the pipe, and is kept by the library's table.
pub(crate) struct SocketWatch {
    pub(crate) socket: Weak<Socket>,
}

impl Watch for SocketWatch {
    fn on_open(&self, session: &Session) {
        let Some(socket) = self.socket.upgrade() else { return };
        let desired = {
            let mut state = socket.state.lock();
            state.session = Some(session.clone());
            state.peer = Some(session.facts().peer);
            state.options.desired
        };
        if let Some(desired) = desired {
            session.set_desired(desired);
        }
    }

    fn on_cut(&self, descriptor: Option<OwnedFd>, _reason: CloseReason) {
        // Before it is connected, the connecting program gets the error.
        let Some(ours) = descriptor else { return };
        let Some(socket) = self.socket.upgrade() else { return ours::close(ours) };
        let pipe = socket.state.lock().pipe.clone();
        if pipe.is_some_and(|pipe| pipe.status().is_ended) {
            // The program has read the end of the stream: that stays, as with TCP. Its writes now fail with EPIPE.
            Socket::close_quietly(ours);
        } else {
            socket.reset(ours, Errno(libc::ECONNRESET));
        }
        self.release();
    }

    fn on_cutting(&self, descriptor: &OwnedFd) {
        if let Some(socket) = self.socket.upgrade() {
            socket.refuse(descriptor, Errno(libc::ECONNRESET));
        }
    }

    fn on_end(&self, descriptor: Option<OwnedFd>) {
        descriptor.into_iter().for_each(ours::close);
        self.release();
    }
}

impl SocketWatch {
    /// The endpoint is not kept for a session that is over.
    fn release(&self) {
        let endpoint = self.socket.upgrade().and_then(|socket| socket.state.lock().endpoint.take());
        drop(endpoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_over__of_a_new_one_that_its_program_closed() {
        let (socket, theirs) = Socket::new(false, Stage::New, SocketOptions::default()).unwrap();
        assert!(!socket.is_over());
        drop(theirs);
        assert!(socket.is_over());
    }

    #[test]
    fn endpoint__waits_for_a_busy_host_as_long_as_for_a_silent_one() {
        let lasts = SocketOptions::default().endpoint(None, None).lasts;
        assert_eq!((lasts.opening, lasts.silent), (OPENS_WITHIN, OPENS_WITHIN));
    }
}
