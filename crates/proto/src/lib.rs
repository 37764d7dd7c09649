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

mod address;
mod alarms;
mod breaker;
mod byte_ranges;
mod closing;
pub mod codec;
mod config;
mod control;
mod ecn;
mod event;
mod features;
pub mod handshake;
mod handshakes;
mod hold;
mod host;
mod inbound;
mod lasts;
mod limits;
mod missing_numbers;
mod mtu;
mod outbound;
mod outstanding;
mod pacer;
mod packet;
mod packet_runs;
mod path;
mod path_facts;
mod path_kind;
mod pause;
mod peer;
mod queue_delay;
mod rate_meter;
mod rates;
mod receiver;
mod reordering_window;
mod replay;
mod request_queue;
mod requests;
mod round_robin;
mod rtt;
mod secure_random;
mod sender;
mod session;
mod silence;
mod sink_allowance;
mod slots;
mod slow_meter;
mod socket_share;
mod source_patience;
mod stall_detector;
mod stamps;
mod tunnel;
mod usage;
mod verdict;

pub use byte_ranges::ByteRanges;
pub use config::{HostConfig, NodeConfig};
pub use ecn::{Ecn, EcnCounts};
pub use event::Event;
pub use fairwave_node::{
    Direction, ExchangeConfig, IntervalRule, JoinError, Looked, SessionOptions, Standing, ToldGrant, ToldNode,
};
pub use features::Features;
pub use hold::Hold;
pub use host::Host;
pub use inbound::Taken;
pub use lasts::Lasts;
pub use limits::RateTerm;
pub use packet::{ControlPacket, DATA_FRONT, DATA_OVERHEAD, DataPacket, Packet, Transmit};
pub use packet_runs::PieceAt;
pub use path::PathControl;
pub use path_facts::{PathCounts, PathFacts};
pub use path_kind::{PathKind, PathWish, PathWishes};
pub use rates::SessionRates;
pub use receiver::ReceiverCounts;
pub use request_queue::{MOST_OPEN_BYTES, RequestQueue};
pub use requests::Requests;
pub use sender::SenderCounts;
pub use session::{Measured, OpenError, OpenRequest, Opened};
pub use slots::{MOST_SESSIONS, slot as slot_of};
pub use tunnel::{tunnel_address, tunnel_of};

// Only for the benches, fuzz targets and tests of this crate.
#[doc(hidden)]
pub use missing_numbers::{MOST_GAPS, MissingNumbers};
#[doc(hidden)]
pub use outstanding::Outstanding;
#[doc(hidden)]
pub use packet::MOST_FRAME_BYTES;
#[doc(hidden)]
pub use verdict::{Fate, Repairs, Settled, Settlement, Verdict};
