//! How a host is set up.

use fairwave_node::NodeConfig;
use fairwave_units::Bytes;

use crate::path::PathControl;
use crate::path::path_kind::PathKind;
use crate::session::lasts::Lasts;

/// How a host is set up.
pub struct HostConfig<R> {
    /// Bytes of IP and UDP around a datagram over IPv4, which count in all rates: 28 on a real network. Those over
    /// IPv6 have 20 more.
    pub lower_bytes: u32,
    /// Bytes of a stream in a data packet at most.
    pub piece_bytes: u32,
    /// Bytes of one send of the system at most (GSO), which is the largest burst: one packet's worth where packets
    /// go one by one.
    pub send_bytes: Bytes,
    /// Capacity of its sessions together for sending; `None` if unknown: then only the path governs.
    pub sending: Option<NodeConfig>,
    /// Capacity of its sessions together for receiving.
    pub receiving: Option<NodeConfig>,
    /// Whether sessions start with a fair share of both ends instead of none.
    pub fair_start: bool,
    /// Bytes that a session may have asked for and not received, at most.
    pub room: Bytes,
    /// Bytes of datagrams that came and were not read, which the system holds for all sessions together; `None` where
    /// they are read as they come.
    pub buffer: Option<Bytes>,
    /// Seeds all that is left to chance, and that nobody may foretell: names of sessions, skipped numbers, probes.
    pub seed: [u8; 32],
    /// The assumed kind of its paths: a session's is dedicated if both ends declare it so and know their capacities.
    pub path: PathKind,
    /// By what it goes on paths that others use.
    pub path_control: PathControl,
    /// Whether to look for larger datagrams than every path takes (RFC 8899): data start with 1200 bytes a datagram,
    /// and go up to `piece_bytes` as the path shows that it takes them. Else they are as large as that at once.
    pub probes_mtu: bool,
    /// Whether data go without secrecy: both ends must ask for it, or neither.
    pub is_plain: bool,
    /// When sessions are over.
    pub lasts: Lasts,
    /// How it answers others' handshakes.
    pub crypto: R,
}
