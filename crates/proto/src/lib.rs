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
//!
//! Two hosts, with nothing between them and no encryption; one requests 5000 bytes of the other:
//!
//! ```
//! use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
//! use fairwave_proto::{
//!     Ecn, Event, Host, HostConfig, Lasts, OpenRequest, Packet, PathControl, PathKind, Terms, codec::TicketId,
//! };
//! use fairwave_units::{Bytes, Time};
//!
//! let (ticket, secret) = (TicketId(1), 4711);
//! let mut hosts: [Host<Insecure>; 2] = [1, 2].map(|seed| {
//!     Host::new(Time::ZERO, HostConfig {
//!         lower_bytes: 28,
//!         piece_bytes: 1200,
//!         send_bytes: Bytes::new(1),
//!         sending: None,
//!         receiving: None,
//!         fair_start: false,
//!         room: Bytes::new(1 << 20),
//!         buffer: None,
//!         seed: [seed; 32],
//!         path: PathKind::default(),
//!         path_control: PathControl::default(),
//!         probes_mtu: false,
//!         is_plain: false,
//!         lasts: Lasts::default(),
//!         crypto: InsecureResponder::new(u64::from(seed), [(ticket, secret)]),
//!     })
//! });
//! let address = "192.0.2.1:8642".parse()?;
//! let options = Terms::default();
//! let request = OpenRequest { sends: false, receives: true, greeting: b"", options };
//! hosts[1].connect(Time::ZERO, address, InsecureInitiator::new(ticket, secret, 1), &request)?;
//!
//! let (mut now, mut bytes) = (Time::ZERO, 0);
//! while bytes < 5000 {
//!     for at in [0, 1] {
//!         while let Some(event) = hosts[at].poll_event() {
//!             match event {
//!                 Event::Open(opened) if opened.receives => hosts[at].want(now, opened.session, 0, 0..5000),
//!                 Event::Requested { session, stream, range } => hosts[at].serve(now, session, stream, range),
//!                 _ => {}
//!             }
//!         }
//!         while let Some(transmit) = hosts[at].poll_transmit(now) {
//!             let other = &mut hosts[1 - at];
//!             match transmit.packet {
//!                 Packet::Handshake(datagram) => {
//!                     other.handle_handshake(now, address, &datagram, &mut |_| Ok(options));
//!                 }
//!                 Packet::Control(packet) => {
//!                     other.handle_control(now, address, &packet);
//!                 }
//!                 Packet::Data(packet) => bytes += other.handle_data(now, address, Ecn::NotCapable, &packet).bytes,
//!             }
//!         }
//!     }
//!     now = hosts.iter().filter_map(Host::poll_timeout).min().ok_or("nothing to wait for")?.max(now);
//!     hosts.iter_mut().for_each(|host| host.handle_timeout(now));
//! }
//! assert_eq!(bytes, 5000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
    AssignedGrant, Assignment, Direction, ExchangeConfig, IntervalRule, Looked, NodeConfig, Standing, Terms, TermsError,
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
