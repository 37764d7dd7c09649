//! Datagrams as they come, many at a time.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use fairwave_proto::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta};

use super::socket::Socket;

/// Room for what one call receives.
#[derive(Default)]
pub(crate) struct Inbox {
    buffers: Vec<Box<[u8]>>,
    meta: Vec<RecvMeta>,
}

/// Source address of a datagram, and this host's address that it arrived at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramPath {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Ecn,
}

/// Messages of one call; each may hold many datagrams.
const MESSAGES: usize = 16;
const MESSAGE_BYTES: usize = 1 << 16;

impl Inbox {
    pub(crate) fn new() -> Self {
        let buffers = (0..MESSAGES).map(|_| vec![0; MESSAGE_BYTES].into_boxed_slice()).collect();
        Self { buffers, meta: vec![RecvMeta::default(); MESSAGES] }
    }

    /// Receives the available messages and returns their number. The socket is empty if it is less than
    /// [`Inbox::capacity`].
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        let mut buffers = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
        let mut slices: [IoSliceMut<'_>; MESSAGES] =
            std::array::from_fn(|_| buffers.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        match socket.receive(&mut slices, &mut self.meta) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// The datagrams of the first `messages` messages.
    pub(crate) fn datagrams(&mut self, messages: usize) -> impl Iterator<Item = (DatagramPath, &mut [u8])> {
        self.buffers.iter_mut().zip(&self.meta).take(messages).flat_map(|(buffer, meta)| {
            let length = meta.len.min(buffer.len());
            let stride = meta.stride.max(1);
            let mut way = DatagramPath { from: meta.addr, to: meta.dst_ip, ecn: ecn(meta.ecn) };
            if let SocketAddr::V6(from) = &mut way.from {
                // Linux sets none; a value would name a tunnel.
                from.set_flowinfo(0);
            }
            buffer[..length].chunks_mut(stride).map(move |datagram| (way, datagram))
        })
    }

    /// Messages of one call.
    pub(crate) fn capacity(&self) -> usize {
        self.buffers.len()
    }
}

/// The kernel puts no datagrams into one message (GRO) whose fields differ.
fn ecn(field: Option<EcnCodepoint>) -> Ecn {
    match field {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable,
        Some(EcnCodepoint::Ect1) => Ecn::CapableOne,
        Some(EcnCodepoint::Ce) => Ecn::Marked,
    }
}
