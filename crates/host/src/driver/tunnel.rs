//! One tunnel: a byte stream that carries datagrams.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairwave_proto::codec::SessionId;
use fairwave_proto::tunnel_address;
use fairwave_units::{Duration, Time};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use thiserror::Error;

use super::framing::{FrameQueue, LENGTH_BYTES};
use crate::carrier::Carrier;
use crate::sys::{Interest, Readiness, limit_unsent};

/// A byte stream that carries datagrams both ways, in order.
pub(super) struct Tunnel {
    pub(super) number: NonZeroU32,
    pub(super) carrier: Carrier,
    /// The peer's address that its sessions report.
    pub(super) address: SocketAddr,
    /// Whether somebody came by it.
    pub(super) is_accepted: bool,
    ends: Ends,
    is_connecting: bool,
    queue: FrameQueue,
    /// Whether it waits for a notice of room.
    waits: bool,
    /// Of a datagram of which not all has come.
    rest: Vec<u8>,
    /// Sessions whose data wait for room.
    held: Vec<SessionId>,
    /// Those that came to be here and are open.
    sessions: u32,
    /// Time since when it has no session, and the bytes received since.
    idle_since: Time,
    idle_datagrams: u32,
    /// Nothing can be written any more; what has come is still read.
    broken: Option<Broken>,
    /// Tells who watches it that it is over.
    is_gone: Arc<AtomicBool>,
}

/// Its descriptors.
pub(super) enum Ends {
    /// One for both directions.
    Socket(TcpStream),
    /// One to read, one to write.
    Pair(OwnedFd, OwnedFd),
}

/// Why a tunnel is no more.
#[derive(Debug, Error)]
pub(super) enum Broken {
    #[error("the peer closed the connection")]
    Closed,
    #[error("received data that is not the Fairwave protocol")]
    Nonsense,
    #[error("no reply over the connection")]
    Idle,
    #[error("another route was faster")]
    Slower,
    #[error("TCP: {}", .0.to_string().split(" (os error").next().unwrap_or_default())]
    System(io::Error),
}

/// One write takes as much as this; with so much that waits, data wait before it.
const FULL_BYTES: usize = 64 << 10;
/// Below this there is room again.
const ROOM_AT: usize = FULL_BYTES / 2;
/// Max bytes queued, since control packets and answers are queued even when it is full; fewer while it has no session.
const MAX_QUEUED: usize = 256 << 10;
const MAX_QUEUED_IDLE: usize = 16 << 10;
/// Max bytes that TCP has accepted and not sent yet: more would only delay control packets.
const NOT_SENT_BYTES: u32 = 128 << 10;
/// Nobody has to be let into a tunnel without a session for longer than a handshake takes.
const IDLE_LASTS: Duration = Duration::from_secs(6);
/// A handshake takes a few.
const MAX_IDLE_DATAGRAMS: u32 = 64;

impl Tunnel {
    pub(super) fn new(now: Time, number: NonZeroU32, carrier: Carrier, peer: SocketAddr, ends: Ends) -> Self {
        Self {
            number,
            carrier,
            address: tunnel_address(peer, number),
            is_accepted: false,
            ends,
            is_connecting: false,
            queue: FrameQueue::default(),
            waits: false,
            rest: Vec::new(),
            held: Vec::new(),
            sessions: 0,
            idle_since: now,
            idle_datagrams: 0,
            broken: None,
            is_gone: Arc::default(),
        }
    }

    /// A TCP connection that somebody else opened.
    pub(super) fn accepted(now: Time, number: NonZeroU32, socket: RawSocket, from: SocketAddr) -> Self {
        let ends = Ends::Socket(socket.into());
        Self { is_accepted: true, ..Self::new(now, number, Carrier::Tcp, from, ends) }
    }

    /// A TCP connection that is being opened.
    pub(super) fn connect(now: Time, number: NonZeroU32, to: SocketAddr) -> io::Result<Self> {
        let socket = RawSocket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        prepare(&socket)?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => return Err(error),
            _ => {}
        }
        let new = Self::new(now, number, Carrier::Tcp, to, Ends::Socket(socket.into()));
        Ok(Self { is_connecting: true, waits: true, ..new })
    }

    /// Tells this when it is over.
    pub(super) fn watched_by(self, is_gone: &Arc<AtomicBool>) -> Self {
        Self { is_gone: Arc::clone(is_gone), ..self }
    }

    /// Looks at it from now on.
    pub(super) fn enlist(&self, readiness: &mut Readiness) -> io::Result<()> {
        let number = self.number.get().into();
        readiness.add(self.reader(), number, self.interest())?;
        if let Ends::Pair(_, writer) = &self.ends {
            readiness.add(writer, number, Interest::NONE)?;
        }
        Ok(())
    }

    /// Removes it from the set, also if others have its descriptors.
    pub(super) fn delist(&self, readiness: &mut Readiness) {
        readiness.remove(self.reader());
        if let Ends::Pair(_, writer) = &self.ends {
            readiness.remove(writer);
        }
        self.is_gone.store(true, Ordering::SeqCst);
    }

    fn rearm(&self, readiness: &mut Readiness) {
        let number = self.number.get().into();
        // Both are known there.
        let _ = match &self.ends {
            Ends::Socket(socket) => readiness.change(socket, number, self.interest()),
            Ends::Pair(_, writer) => {
                readiness.change(writer, number, if self.waits { Interest::WRITE } else { Interest::NONE })
            }
        };
    }

    fn interest(&self) -> Interest {
        let is_out = self.waits && matches!(self.ends, Ends::Socket(_));
        match (self.is_connecting, is_out) {
            (true, _) => Interest::WRITE,
            (false, true) => Interest::BOTH,
            (false, false) => Interest::READ,
        }
    }

    fn reader(&self) -> BorrowedFd<'_> {
        match &self.ends {
            Ends::Socket(socket) => socket.as_fd(),
            Ends::Pair(reader, _) => reader.as_fd(),
        }
    }

    /// A connection that was being opened is: whether it was just now.
    pub(super) fn finish_connecting(&mut self, now: Time, readiness: &mut Readiness) -> Result<bool, Broken> {
        let Ends::Socket(socket) = &self.ends else { return Ok(false) };
        if !self.is_connecting {
            return Ok(false);
        }
        if let Some(error) = socket.take_error().map_err(Broken::System)? {
            return Err(Broken::System(error));
        }
        (self.is_connecting, self.waits, self.idle_since) = (false, false, now);
        self.rearm(readiness);
        Ok(true)
    }

    /// Reads into `room`, behind what is left of the last time: how many bytes are there. Whether there may be more:
    /// only if all of the room is used.
    pub(super) fn read(&mut self, room: &mut [u8]) -> Result<usize, (usize, Broken)> {
        let kept = self.rest.len().min(room.len());
        room[..kept].copy_from_slice(&self.rest[..kept]);
        self.rest.clear();
        match rustix::io::read(self.reader(), &mut room[kept..]) {
            Ok(0) => Err((kept, Broken::Closed)),
            Ok(read) => Ok(kept + read),
            Err(Errno::AGAIN | Errno::INTR) => Ok(kept),
            Err(error) => Err((kept, Broken::System(error.into()))),
        }
    }

    /// Of a datagram of which the rest has not come.
    pub(super) fn keep(&mut self, rest: &[u8]) {
        self.rest.extend_from_slice(rest);
    }

    /// A datagram arrived: whether it may be processed. A peer without a session sends hellos, and little else.
    pub(super) fn may_say(&mut self, datagram: &[u8]) -> bool {
        if self.sessions > 0 || !self.is_accepted {
            return true;
        }
        self.idle_datagrams += 1;
        let is_first = self.idle_datagrams == 1;
        self.idle_datagrams <= MAX_IDLE_DATAGRAMS && (!is_first || fairwave_proto::codec::is_handshake(datagram))
    }

    /// Room for a datagram; `None` if too much waits.
    pub(super) fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        let most = if self.sessions > 0 { MAX_QUEUED } else { MAX_QUEUED_IDLE };
        self.queue.push(length, most)
    }

    /// Removes the last datagram, of `length` bytes, which is not sent after all.
    pub(super) fn take_back(&mut self, length: usize) {
        self.queue.take_back(length);
    }

    /// Whether as much waits as one write takes.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() + LENGTH_BYTES >= FULL_BYTES
    }

    /// A session whose data wait until there is room.
    pub(super) fn hold(&mut self, session: SessionId) {
        if !self.held.contains(&session) {
            self.held.push(session);
        }
    }

    /// The sessions that may go on, if there is room again.
    pub(super) fn release(&mut self) -> std::vec::Drain<'_, SessionId> {
        let end = if self.queue.len() <= ROOM_AT { self.held.len() } else { 0 };
        self.held.drain(..end)
    }

    /// Writes what waits, as far as there is room.
    pub(super) fn flush(&mut self, readiness: &mut Readiness) {
        if self.is_connecting || self.broken.is_some() {
            return;
        }
        let mut is_stuck = false;
        while !is_stuck && self.queue.len() > 0 {
            match self.ends.write(self.queue.unsent()) {
                Ok(written) => self.queue.on_sent(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_stuck = true,
                Err(error) => return self.break_off(Broken::System(error)),
            }
        }
        if is_stuck != self.waits {
            self.waits = is_stuck;
            self.rearm(readiness);
        }
    }

    /// Nothing can be written any more.
    pub(super) fn break_off(&mut self, why: Broken) {
        self.broken.get_or_insert(why);
        self.queue = FrameQueue::default();
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Whether it is over when all that has come is read, and why.
    pub(super) fn take_broken(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    /// A session came to be here: what carries it.
    pub(super) fn on_open(&mut self) -> Carrier {
        self.sessions += 1;
        self.carrier
    }

    /// One of them is over.
    pub(super) fn on_closed(&mut self, now: Time) {
        self.sessions = self.sessions.saturating_sub(1);
        if self.sessions == 0 {
            (self.idle_since, self.idle_datagrams) = (now, 0);
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    #[cfg(test)]
    pub(super) fn shrink(&self) {
        if let Ends::Socket(socket) = &self.ends {
            let socket = socket2::SockRef::from(socket);
            socket.set_send_buffer_size(16 << 10).unwrap();
            socket.set_recv_buffer_size(16 << 10).unwrap();
        }
    }

    #[cfg(test)]
    pub(super) fn shut_down(&self) {
        if let Ends::Socket(socket) = &self.ends {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.carrier == Carrier::Tcp
    }

    /// When it expires unused. A tunnel that ssh started lasts as long as ssh.
    pub(super) fn ends_at(&self) -> Option<Time> {
        let may_end = self.sessions == 0 && self.carrier == Carrier::Tcp;
        may_end.then(|| self.idle_since.saturating_add(IDLE_LASTS))
    }
}

impl Ends {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            // Without SIGPIPE, which would end a process that does not expect it.
            Self::Socket(socket) => (&mut &*socket).write(bytes),
            Self::Pair(_, writer) => Ok(rustix::io::write(writer, bytes)?),
        }
    }
}

/// Options of each TCP connection: no Nagle delay, and a small send queue.
pub(super) fn prepare(socket: &RawSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    limit_unsent(socket, NOT_SENT_BYTES)
}
