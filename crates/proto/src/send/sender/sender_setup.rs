//! How a sender is set up.

use fairwave_units::{Bytes, Duration, Rate};

use crate::path::path_kind::PathKind;
use crate::wire::packet::DATA_OVERHEAD;

/// How a sender is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SenderSetup {
    /// Bytes of a stream in a packet at most.
    pub piece_bytes: u32,
    /// Bytes of IP and UDP around a datagram.
    pub lower_bytes: u32,
    /// Bytes of one send of the system at most.
    pub send_bytes: Bytes,
    /// Rate that both end nodes grant it from the first packet on.
    pub start: Rate,
    /// The other users of the path.
    pub path: PathKind,
    /// Its part of a shared one.
    pub weight: f64,
    /// Whose it is ([`Host::set_group`](crate::Host::set_group)); 0 if that does not matter.
    pub group: u32,
    /// The round-trip time, as far as the handshake showed it.
    pub rtt: Option<Duration>,
    /// A silence of its sink that lasts this long ends the session.
    pub silence: Duration,
}

impl SenderSetup {
    /// The largest packet, with all that is around it.
    pub(crate) fn full_packet(&self) -> Bytes {
        Bytes::new(u64::from(self.lower_bytes + DATA_OVERHEAD + self.piece_bytes))
    }
}
