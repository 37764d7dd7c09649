//! GTP without I/O: the messages between two hosts, as plain values without sockets or clocks.
//!
//! Read [`Host`] first: it is all that a driver drives, be it the network thread of a real host or a simulator. Behind
//! it are three cores, which no driver sees:
//!
//! - `Outbound` sends: what sinks asked for, when it is due, and resends what got lost;
//! - `Inbound` receives: it asks, and reports what arrived;
//! - `Control` knows the peers: it opens and closes sessions ([`handshake`]), and runs the two end nodes (`EndNode`),
//!   which share the host's capacities among its sessions.
//!
//! Packets are values ([`Packet`]); only [`codec`] handles bytes. All input is checked, and the state that is kept of
//! it is bounded. `docs/reference/wire-format.md` describes the protocol.

#![cfg_attr(test, allow(non_snake_case, clippy::single_range_in_vec_init))]

#[cfg(test)]
extern crate self as fairwave_proto;
#[cfg(test)]
#[path = "../tests/network/mod.rs"]
mod network;

pub mod handshake;
mod path;
mod receive;
mod send;
mod session;
mod wire;

pub use fairwave_node::{
    AssignedGrant, Assignment, Direction, ExchangeConfig, IntervalRule, JoinError, Looked, NodeConfig, SessionOptions,
    Standing,
};
pub use path::PathControl;
pub use path::ecn::{Ecn, EcnCounts};
pub use path::path_facts::{PathCounts, PathFacts};
pub use path::path_kind::{PathDeclaration, PathDeclarations, PathKind};
pub use receive::byte_ranges::ByteRanges;
pub use receive::inbound::Taken;
pub use receive::receiver::ReceiverCounts;
pub use receive::requests::Requests;
pub use send::limits::RateTerm;
pub use send::request_queue::{MAX_OPEN_BYTES, RequestQueue};
pub use send::sender::SenderCounts;
pub use session::config::HostConfig;
pub use session::event::Event;
pub use session::hold::Hold;
pub use session::host::Host;
pub use session::lasts::Lasts;
pub use session::opened::{Measured, OpenError, OpenRequest, Opened};
pub use session::rates::SessionRates;
pub use session::slots::{MAX_SESSIONS, slot as slot_of};
pub use wire::codec;
pub use wire::features::Features;
pub use wire::packet::{ControlPacket, DATA_FRONT, DATA_OVERHEAD, DataPacket, Packet, Transmit};
pub use wire::packet_runs::PieceAt;
pub use wire::tunnel::{tunnel_address, tunnel_of};

// Only for the benches, fuzz targets and tests of this crate.
#[doc(hidden)]
pub use receive::missing_numbers::{MAX_GAPS, MissingNumbers};
#[doc(hidden)]
pub use send::outstanding::Outstanding;
#[doc(hidden)]
pub use send::verdict::{Fate, Repairs, Settled, Settlement, Verdict};
#[doc(hidden)]
pub use wire::packet::MAX_FRAME_BYTES;
