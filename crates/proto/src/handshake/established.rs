//! The outcome of a handshake.

use std::net::SocketAddr;

use fairwave_node::{Beginning, Direction};
use fairwave_schemes::node::fair_start;
use fairwave_units::{Duration, Rate, Time};

use crate::path::path_kind::{PathDeclaration, PathDeclarations, PathKind};
use crate::wire::codec::{Ahead, Reset, SessionId, TicketId};
use crate::wire::features::Features;

/// One end's terms for a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandshakeTerms {
    /// Its name for the session, which packets towards it bear. No other session at this host has it.
    pub session: SessionId,
    /// Its declaration about the path: the session's is dedicated if both ends declare it and know their capacities.
    pub declared: PathDeclaration,
    /// Data without secrecy: both ends must ask for it, or neither.
    pub is_plain: bool,
    /// The session's weight at this end.
    pub weight: f64,
    /// Its sending capacity and the sum of weights there, with the newcomer's: for the rate to start with
    /// (`EndNode::fair_start_end`).
    pub send_end: Option<(Rate, f64)>,
    /// Its receiving capacity and the sum of weights there.
    pub receive_end: Option<(Rate, f64)>,
    /// The largest datagram that it takes, in bytes.
    pub largest_packet: u32,
    /// Its features.
    pub features: Features,
    /// The responder's first claim and first grant.
    pub ahead: Ahead,
}

/// A session, as one end knows it when it starts.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub struct Established<K> {
    /// This end's name for it.
    pub local: SessionId,
    /// The other end's name for it, which packets towards there bear.
    pub peer: SessionId,
    /// Whether this end opened it.
    pub is_initiator: bool,
    /// The peer's address if a responder knows it; an initiator knows where it sent its hello.
    pub address: Option<SocketAddr>,
    /// The ticket that it was opened with.
    pub ticket: TicketId,
    /// Whether this end sends data.
    pub sends: bool,
    /// Whether this end receives data.
    pub receives: bool,
    /// Dedicated if both ends declare it.
    pub path: PathKind,
    /// Their declarations.
    pub declared: PathDeclarations,
    /// Data without secrecy.
    pub is_plain: bool,
    /// The rate to start with of what this end sends; `None` on a shared path, and where no end knows its capacity.
    pub start_send: Option<Rate>,
    /// The rate to start with of what this end receives.
    pub start_receive: Option<Rate>,
    /// The largest datagram that both ends take, in bytes.
    pub largest_packet: u32,
    /// The round trip, if a packet that was not repeated was answered.
    pub rtt: Option<Duration>,
    /// The other end's features.
    pub features: Features,
    /// At an initiator: what the responder said ahead of claims and grants, on a dedicated path.
    pub ahead: Ahead,
    /// At an initiator: when the hello that was answered went for the first time.
    pub asked_at: Option<Time>,
    /// At an initiator: what the responder will say with that it does not know the session any more.
    pub reset: Option<Reset>,
    /// Keys that seal its packets.
    pub keys: K,
}

/// A datagram of this size goes through wherever a session does.
const MIN_LARGEST: u64 = 1200;
/// And no datagram is larger.
const MAX_LARGEST: u64 = 65_507;

impl HandshakeTerms {
    /// This end's part of its capacities, for what it sends and for what it receives.
    pub(super) fn shares(&self) -> [Option<Rate>; 2] {
        [self.send_end, self.receive_end].map(|end| fair_start(self.weight, end))
    }

    /// The largest datagram that both ends take.
    pub(super) fn largest(&self, other: u64) -> u32 {
        other.min(u64::from(self.largest_packet)).clamp(MIN_LARGEST, MAX_LARGEST) as u32
    }
}

impl<K> Established<K> {
    /// How a session starts in one direction, by what the handshake said: `parts` sessions open at the same time.
    pub(crate) fn beginning(&self, direction: Direction, parts: usize) -> Beginning {
        let Features { claims, grants } = self.features;
        let rate = |bps: u64| Some(Rate::nearest_bps(bps as f64)).filter(|_| bps > 0);
        let Ahead { claim_bps, promise_bps } = self.ahead;
        match (direction, self.asked_at) {
            (Direction::Sending, _) if !grants => Beginning::Plain,
            (Direction::Receiving, _) if !claims => Beginning::Plain,
            (Direction::Sending, Some(since)) => {
                rate(promise_bps).map_or(Beginning::Bare, |rate| Beginning::Promised { rate, since })
            }
            // All that is spare goes to those that come at the same time.
            (Direction::Receiving, Some(_)) => {
                rate(claim_bps).map_or(Beginning::Bare, |claim| Beginning::Claimed { claim, parts })
            }
            // A responder's source has its first grant with the packet that opens the session; its sink has promised.
            (_, None) => Beginning::Bare,
        }
    }
}

/// The smaller of the shares that are known, in whole bit/s, as it travels.
pub(super) fn start(here: Option<Rate>, there_bps: Option<u64>) -> Option<Rate> {
    let there = there_bps.map(|bps| Rate::nearest_bps(bps as f64));
    let least = [here, there].into_iter().flatten().reduce(Rate::min)?;
    Some(Rate::nearest_bps(to_bps(least) as f64))
}

/// As it travels.
pub(super) fn to_bps(rate: Rate) -> u64 {
    rate.as_bps() as u64
}
