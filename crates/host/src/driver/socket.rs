//! The UDP socket of an endpoint.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, Type};

use crate::forks::Marked;
use crate::sys::{force_receive_buffer, granted_buffer, no_timestamps};

/// One UDP port: dual-stack where the system has IPv6. Many datagrams go with one call (GSO), and come so (GRO,
/// recvmmsg), where the kernel can.
pub(crate) struct Socket {
    udp: Marked<UdpSocket>,
    state: UdpSocketState,
    is_v6: bool,
    /// When the kernel refused segmentation: it is tried again later, since a path that shrank looks alike.
    refused_at: Option<Instant>,
    buffers: Buffers,
}

/// Sizes of the buffers that the system granted, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffers {
    pub(crate) receive: usize,
    pub(crate) send: usize,
}

/// Result of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is under way, or lost as any packet may get lost.
    Gone,
    /// The system has no room now.
    Full,
    /// It is larger than the path takes.
    TooLarge,
    /// The kernel does not cut datagrams any more: send them one by one.
    Uncut,
}

/// Requested size, bytes: at 10 Gb/s it holds some 10 ms.
const RECEIVE_BUFFER: usize = 16 << 20;
const SEND_BUFFER: usize = 4 << 20;
/// A system that refuses this has no buffers.
const MIN_BUFFER: usize = 64 << 10;
const TRY_SEGMENTS_AGAIN: Duration = Duration::from_secs(10);

impl Socket {
    /// Binds to an address, or to any port of all addresses.
    pub(crate) fn bind(listen: Option<SocketAddr>) -> io::Result<Self> {
        let any_v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let any_v4 = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let udp = Marked::open(|| match listen {
            None => raw(any_v6).or_else(|_| raw(any_v4(0))),
            // All addresses of a machine without IPv6 are those of IPv4.
            Some(address) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
                raw(address).or_else(|error| if in_use(&error) { Err(error) } else { raw(any_v4(address.port())) })
            }
            Some(address) => raw(address),
        })?;
        let is_v6 = udp.local_addr()?.is_ipv6();
        let state = state(&udp)?;
        let buffers = buffers(&udp)?;
        Ok(Self { udp, state, is_v6, refused_at: None, buffers })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    pub(crate) fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Datagrams of one call.
    pub(crate) fn segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(crate) fn receives_in_batches(&self) -> bool {
        self.state.gro_segments() > 1
    }

    /// An address in the form that this socket accepts; `None` if it cannot reach such addresses.
    pub(crate) fn reach(&self, address: SocketAddr) -> Option<SocketAddr> {
        match (self.is_v6, address) {
            (true, SocketAddr::V4(v4)) => Some(SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))),
            (false, SocketAddr::V6(_)) => None,
            _ => Some(address),
        }
    }

    /// Sends one datagram, or several of `segment` bytes each, the last of which may be shorter; from an address of
    /// this host, if it is set.
    pub(crate) fn send(&mut self, to: (Option<IpAddr>, SocketAddr), contents: &[u8], segment: usize) -> Sent {
        self.send_with(to, None, contents, segment)
    }

    /// Sends packets that routers may mark (ECT(0)); otherwise like [`Socket::send`].
    pub(crate) fn send_capable(&mut self, to: (Option<IpAddr>, SocketAddr), contents: &[u8], segment: usize) -> Sent {
        self.send_with(to, Some(EcnCodepoint::Ect0), contents, segment)
    }

    fn send_with(
        &mut self,
        (src_ip, to): (Option<IpAddr>, SocketAddr),
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
        segment: usize,
    ) -> Sent {
        let segment_size = (segment < contents.len()).then_some(segment);
        if segment_size.is_some() && self.segments() == 1 {
            self.retry_segments();
            if self.segments() == 1 {
                return Sent::Uncut;
            }
        }
        let transmit = Transmit { destination: to, ecn, contents, segment_size, src_ip };
        let Err(error) = self.state.try_send(UdpSockRef::from(&*self.udp), &transmit) else { return Sent::Gone };
        if error.kind() == io::ErrorKind::WouldBlock {
            return Sent::Full;
        }
        if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) {
            return Sent::TooLarge;
        }
        if segment_size.is_some() && self.segments() == 1 {
            self.refused_at = Some(Instant::now());
            tracing::info!(%to, %error, "GSO is unavailable: sending datagrams one by one");
            return Sent::Uncut;
        }
        tracing::debug!(%to, %error, "cannot send a datagram");
        Sent::Gone
    }

    fn retry_segments(&mut self) {
        let is_time = self.refused_at.is_some_and(|at| at.elapsed() > TRY_SEGMENTS_AGAIN);
        if is_time && let Ok(state) = state(&self.udp) {
            self.state = state;
            self.refused_at = None;
            tracing::debug!(segments = self.segments(), "retrying GSO");
        }
    }

    /// Receives available datagrams. Returns the number of buffers filled.
    pub(crate) fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        self.state.recv(UdpSockRef::from(&*self.udp), buffers, meta)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

/// With all kernel features for datagrams except timestamps: nothing uses them, and with a timestamp, an address and
/// the length of a batch (GRO) there is no room for the ECN field in the control data of a datagram.
fn state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    no_timestamps(socket);
    Ok(state)
}

fn in_use(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

fn raw(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = RawSocket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// As large as the system lets them be. Root may go beyond the limits that others have.
fn buffers(socket: &UdpSocket) -> io::Result<Buffers> {
    let raw = SockRef::from(socket);
    if !force_receive_buffer(socket, RECEIVE_BUFFER) {
        grow(RECEIVE_BUFFER, |bytes| raw.set_recv_buffer_size(bytes))?;
    }
    grow(SEND_BUFFER, |bytes| raw.set_send_buffer_size(bytes))?;
    let [receive, send] = [raw.recv_buffer_size()?, raw.send_buffer_size()?].map(granted_buffer);
    Ok(Buffers { receive, send })
}

/// Sets the size of a buffer. Beyond its limit, Linux silently grants less, and other systems refuse: then it is halved.
pub(crate) fn grow(mut bytes: usize, set: impl Fn(usize) -> io::Result<()>) -> io::Result<()> {
    loop {
        match set(bytes) {
            Err(_) if bytes > MIN_BUFFER => bytes /= 2,
            set => return set,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn grow__halves_until_the_system_grants_it() {
        let granted = Cell::new(0);
        let limited = |most: usize| {
            let granted = &granted;
            move |bytes: usize| {
                granted.set(bytes);
                if bytes > most { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
            }
        };
        grow(RECEIVE_BUFFER, limited(7 << 20)).unwrap();
        assert_eq!(granted.get(), 4 << 20);
        assert!(grow(RECEIVE_BUFFER, limited(0)).is_err());
    }
}
