//! All tunnels of an endpoint, and the TCP port that others open some at.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fairwave_proto::ControlPacket;
use fairwave_proto::codec::SessionId;
use fairwave_proto::handshake::Prefix;
use fairwave_units::{Duration, Time};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::tunnel::{Broken, Ends, Tunnel, prepare};
use crate::carrier::Carrier;
use crate::crypto::Sealer;
use crate::sys::{Interest, Readiness, Ready};

/// All tunnels, by their numbers.
pub(super) struct Tunnels {
    readiness: Option<Readiness>,
    listener: Option<TunnelListener>,
    all: BTreeMap<NonZeroU32, Tunnel>,
    last: u32,
    /// Time of the next check for connections at the listener, while there is no tunnel.
    looks_at: Time,
    /// The largest datagram.
    most: usize,
    /// Tunnels with unwritten datagrams.
    dirty: Vec<NonZeroU32>,
    /// Tunnels that cannot be written to: they are read for the last time.
    broken: Vec<NonZeroU32>,
    news: Vec<TunnelNews>,
}

/// The TCP port.
struct TunnelListener {
    socket: RawSocket,
    /// Number of the current second, in which connections are counted.
    second: u64,
    count: u32,
    #[cfg(test)]
    seen: u64,
    /// Nobody is, until then.
    closed_until: Option<Time>,
}

/// An event of a tunnel.
#[derive(Debug)]
pub(super) enum TunnelNews {
    /// It was being opened, and is open.
    Connected(NonZeroU32),
    /// It is no more.
    Over(NonZeroU32, Broken),
    /// Data of a session may go on.
    Released(SessionId),
}

/// Tunnels that others opened: in all, and from one prefix.
const MOST: usize = 256;
const MAX_OF_PREFIX: usize = 64;
/// Max connections per second: a flood takes no more of the thread than these and those open at a time.
const MAX_A_SECOND: u32 = 256;
const AT_A_TIME: usize = 16;
const LOOKS_EVERY: Duration = Duration::from_millis(1);
/// Tunnels that are read before the UDP socket has its turn again.
const TUNNELS_A_TURN: usize = 8;
/// Waiting for the listener to be looked at.
const BACKLOG: i32 = 128;
const LISTENER: u64 = 0;
/// The system has no descriptor left: perhaps later.
const CLOSED_FOR: Duration = Duration::from_secs(1);
const NANOS_A_SECOND: u64 = 1_000_000_000;

impl Tunnels {
    /// None yet; datagrams have `most` bytes.
    pub(super) fn new(most: u32) -> Self {
        Self {
            readiness: None,
            listener: None,
            all: BTreeMap::new(),
            last: 0,
            looks_at: Time::ZERO,
            most: most.max(1200) as usize,
            dirty: Vec::new(),
            broken: Vec::new(),
            news: Vec::new(),
        }
    }

    /// Others may come by TCP to the port that the UDP socket has.
    pub(super) fn listen(&mut self, udp: SocketAddr) -> io::Result<()> {
        let socket = listener(udp)?;
        self.readiness_mut()?.add(&socket, LISTENER, Interest::READ)?;
        self.listener = Some(TunnelListener {
            socket,
            second: 0,
            count: 0,
            #[cfg(test)]
            seen: 0,
            closed_until: None,
        });
        Ok(())
    }

    fn readiness_mut(&mut self) -> io::Result<&mut Readiness> {
        let readiness = match self.readiness.take() {
            Some(readiness) => readiness,
            None => Readiness::new()?,
        };
        Ok(self.readiness.insert(readiness))
    }

    /// The descriptors to poll, if any.
    pub(super) fn readiness(&self) -> Option<&Readiness> {
        self.readiness.as_ref()
    }

    /// The largest datagram.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn get(&self, number: NonZeroU32) -> Option<&Tunnel> {
        self.all.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: NonZeroU32) -> Option<&mut Tunnel> {
        self.all.get_mut(&number)
    }

    /// The tunnels that ssh keeps open.
    pub(super) fn of_ssh(&self) -> impl Iterator<Item = &Tunnel> {
        self.all.values().filter(|tunnel| tunnel.carrier == Carrier::Ssh)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Tunnel> {
        self.all.values()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// So many came to the listener and were looked at.
    #[cfg(test)]
    pub(super) fn seen(&self) -> u64 {
        self.listener.as_ref().map_or(0, |listener| listener.seen)
    }

    fn next_number(&mut self) -> NonZeroU32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if let Some(number) = NonZeroU32::new(self.last).filter(|number| !self.all.contains_key(number)) {
                return number;
            }
        }
    }

    /// Begins to open a TCP connection.
    pub(super) fn connect(&mut self, now: Time, to: SocketAddr) -> io::Result<NonZeroU32> {
        let number = self.next_number();
        let tunnel = Tunnel::connect(now, number, to)?;
        tunnel.enlist(self.readiness_mut()?)?;
        self.all.insert(number, tunnel);
        Ok(number)
    }

    /// Takes over two descriptors that lead to a process at another host, as ssh started it.
    pub(super) fn add(
        &mut self,
        now: Time,
        (reader, writer): (OwnedFd, OwnedFd),
        peer: SocketAddr,
        is_gone: &Arc<AtomicBool>,
    ) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        let number = self.next_number();
        let tunnel = Tunnel::new(now, number, Carrier::Ssh, peer, Ends::Pair(reader, writer));
        let tunnel = tunnel.watched_by(is_gone);
        tunnel.enlist(self.readiness_mut()?)?;
        self.all.insert(number, tunnel);
        Ok(())
    }

    /// Ends a tunnel: its sessions are notified.
    pub(super) fn end(&mut self, number: NonZeroU32, why: Broken) {
        let Some(tunnel) = self.all.remove(&number) else { return };
        if let Some(readiness) = &mut self.readiness {
            tunnel.delist(readiness);
        }
        tracing::debug!(peer = %tunnel.address, carrier = %tunnel.carrier, ?why, "tunnel closed");
        self.news.push(TunnelNews::Over(number, why));
    }

    /// Looks who has something to do: the tunnels to be read are added to `readable`, some at a time.
    pub(super) fn poll(&mut self, now: Time, readable: &mut Vec<NonZeroU32>) {
        let Some(readiness) = &mut self.readiness else { return };
        // New connections may wait a little; sessions without a tunnel pay for no more than that.
        if self.all.is_empty() && now < self.looks_at {
            return;
        }
        self.looks_at = now.saturating_add(LOOKS_EVERY);
        readable.append(&mut self.broken);
        for ready in readiness.ready::<TUNNELS_A_TURN>() {
            if ready.number == LISTENER {
                self.accept(now);
            } else if let Some(number) = u32::try_from(ready.number).ok().and_then(NonZeroU32::new) {
                self.on_ready(now, number, ready, readable);
            }
        }
    }

    fn on_ready(&mut self, now: Time, number: NonZeroU32, ready: Ready, readable: &mut Vec<NonZeroU32>) {
        let (Some(readiness), Some(tunnel)) = (&mut self.readiness, self.all.get_mut(&number)) else { return };
        match tunnel.finish_connecting(now, readiness) {
            Ok(true) => return self.news.push(TunnelNews::Connected(number)),
            Ok(false) => {}
            Err(why) => return self.end(number, why),
        }
        if ready.writes {
            self.flush_one(number);
        }
        if ready.reads && !readable.contains(&number) {
            readable.push(number);
        }
        // An error of the write side of a pipe pair does not show at the other descriptor.
        if ready.is_broken
            && let Some(tunnel) = self.all.get_mut(&number)
        {
            tunnel.break_off(Broken::Closed);
        }
    }

    /// A tunnel was read: as far as it could be, if there is a reason why it is over.
    pub(super) fn on_read(&mut self, number: NonZeroU32, over: Option<Broken>) {
        let broken = self.all.get_mut(&number).and_then(Tunnel::take_broken);
        if let Some(why) = over.or(broken) {
            self.end(number, why);
        }
    }

    /// Lets in who waits at the listener.
    fn accept(&mut self, now: Time) {
        for _ in 0..AT_A_TIME {
            let Some(listener) = &mut self.listener else { return };
            let second = now.as_nanos() / NANOS_A_SECOND;
            if listener.second != second {
                (listener.second, listener.count) = (second, 0);
            }
            if listener.count >= MAX_A_SECOND {
                let next = Time::from_nanos((second + 1).saturating_mul(NANOS_A_SECOND));
                return self.pause_listener(next);
            }
            let accepted = listener.socket.accept();
            match accepted {
                Ok((socket, from)) => {
                    listener.count += 1;
                    #[cfg(test)]
                    (listener.seen += 1);
                    if let Some(from) = from.as_socket() {
                        // If full, it is closed at once: a later attempt may find room.
                        let _ = self.let_in(now, socket, from);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An error of this connection only: accept(2).
                Err(error) if is_of_one(&error) => listener.count += 1,
                Err(error) => {
                    tracing::info!(%error, "TCP accept paused");
                    return self.pause_listener(now.saturating_add(CLOSED_FOR));
                }
            }
        }
    }

    fn let_in(&mut self, now: Time, socket: RawSocket, from: SocketAddr) -> io::Result<()> {
        let accepted = || self.all.values().filter(|tunnel| tunnel.is_accepted);
        let prefix = Prefix::of(from.ip());
        let of_prefix = accepted().filter(|tunnel| Prefix::of(tunnel.address.ip()) == prefix).count();
        if accepted().count() >= MOST || of_prefix >= MAX_OF_PREFIX {
            return Ok(());
        }
        prepare(&socket)?;
        let number = self.next_number();
        let tunnel = Tunnel::accepted(now, number, socket, from);
        tunnel.enlist(self.readiness_mut()?)?;
        self.all.insert(number, tunnel);
        Ok(())
    }

    fn pause_listener(&mut self, until: Time) {
        if let (Some(readiness), Some(listener)) = (&mut self.readiness, &mut self.listener) {
            listener.closed_until = Some(until);
            let _ = readiness.change(&listener.socket, LISTENER, Interest::NONE);
        }
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if let (Some(readiness), Some(listener)) = (&mut self.readiness, &mut self.listener)
            && listener.closed_until.take_if(|until| *until <= now).is_some()
        {
            let _ = readiness.change(&listener.socket, LISTENER, Interest::READ);
        }
        let is_over = |tunnel: &&Tunnel| tunnel.ends_at().is_some_and(|at| at <= now);
        let over: Vec<_> = self.all.values().filter(is_over).map(|tunnel| tunnel.number).collect();
        for number in over {
            self.end(number, Broken::Idle);
        }
    }

    /// When to come with [`Tunnels::handle_timeout`].
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let listener = self.listener.as_ref().and_then(|listener| listener.closed_until);
        self.all.values().filter_map(Tunnel::ends_at).chain(listener).min()
    }

    /// Puts a datagram into a tunnel, if there is room.
    pub(super) fn put(&mut self, number: NonZeroU32, datagram: &[u8]) {
        let Some(room) = self.all.get_mut(&number).and_then(|tunnel| tunnel.room(datagram.len())) else { return };
        room.copy_from_slice(datagram);
        self.on_put(number);
    }

    /// Seals a control packet into a tunnel, if there is room.
    pub(super) fn put_control(&mut self, number: NonZeroU32, packet: &ControlPacket, sealer: &mut Sealer) {
        let length = packet.datagram_bytes() as usize;
        let Some(room) = self.all.get_mut(&number).and_then(|tunnel| tunnel.room(length)) else { return };
        packet.seal(sealer, room).expect("a datagram has room for all of its packet");
        self.on_put(number);
    }

    /// Writes the queued datagrams of a tunnel if they are worth a write. Returns whether it is full.
    pub(super) fn on_put(&mut self, number: NonZeroU32) -> bool {
        let Some(tunnel) = self.all.get(&number) else { return false };
        if tunnel.is_full() {
            self.flush_one(number);
        }
        if !self.dirty.contains(&number) {
            self.dirty.push(number);
        }
        self.all.get(&number).is_some_and(Tunnel::is_full)
    }

    /// Writes what waits in all of them.
    pub(super) fn flush(&mut self) {
        while let Some(number) = self.dirty.pop() {
            self.flush_one(number);
        }
    }

    fn flush_one(&mut self, number: NonZeroU32) {
        let (Some(readiness), Some(tunnel)) = (&mut self.readiness, self.all.get_mut(&number)) else { return };
        tunnel.flush(readiness);
        if tunnel.is_broken() {
            self.broken.push(number);
        }
        self.news.extend(tunnel.release().map(TunnelNews::Released));
    }

    /// Takes the events since the last call.
    pub(super) fn news(&mut self) -> Vec<TunnelNews> {
        std::mem::take(&mut self.news)
    }
}

/// A TCP port of the same number at the same addresses.
fn listener(udp: SocketAddr) -> io::Result<RawSocket> {
    let is_any_v6 = udp.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let socket = RawSocket::new(Domain::for_address(udp), Type::STREAM, Some(Protocol::TCP))?;
    if is_any_v6 {
        socket.set_only_v6(false)?;
    }
    // Old connections that are still closing must not prevent listening.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&udp.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Whether an accept error concerns only one connection.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        PermissionDenied,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A connection whose other end is gone, as if it came from an address.
    fn come(tunnels: &mut Tunnels, listener: &TcpListener, from: [u8; 4]) -> usize {
        let socket = RawSocket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.connect(&listener.local_addr().unwrap().into()).unwrap();
        drop(listener.accept().unwrap());
        tunnels.let_in(Time::ZERO, socket, SocketAddr::from((from, 1))).unwrap();
        tunnels.len()
    }

    #[test]
    fn let_in__has_a_maximum_for_a_prefix_and_for_all() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut tunnels = Tunnels::new(1200);
        let of_prefix = (0..70).map(|host| come(&mut tunnels, &listener, [192, 0, 2, host])).max();
        assert_eq!(of_prefix, Some(64));
        let of_all = (0..250).map(|net| come(&mut tunnels, &listener, [198, 51, net, 1])).max();
        assert_eq!(of_all, Some(256));
        // Tunnels that this end opens do not count.
        tunnels.connect(Time::ZERO, listener.local_addr().unwrap()).unwrap();
        assert_eq!(come(&mut tunnels, &listener, [203, 0, 113, 1]), 257);
    }
}
