//! A host's facts about its sessions.

use std::net::SocketAddr;

use fairwave_node::Direction;
use fairwave_units::{Duration, Rate, Time};

use super::Host;
use crate::handshake::Crypto;
use crate::path::mtu::Mtu;
use crate::path::path_facts::PathFacts;
use crate::receive::receiver::ReceiverCounts;
use crate::send::limits::RateTerm;
use crate::send::sender::SenderCounts;
use crate::session::hold::Hold;
use crate::session::rates::SessionRates;
use crate::wire::codec::SessionId;

impl<C: Crypto> Host<C> {
    /// The rates of a session at its source, if this is it.
    pub fn source_rates(&self, session: SessionId) -> Option<SessionRates> {
        let rates = self.control.peers.get(session)?.rates[Direction::Sending as usize];
        let sink_expected = self.outbound.limit(session, RateTerm::Sink)?;
        Some(SessionRates { sink_expected: Some(sink_expected), ..rates })
    }

    /// The rates of a session at its sink, if this is it.
    pub fn sink_rates(&self, session: SessionId) -> Option<SessionRates> {
        self.inbound.counts(session)?;
        self.control.peers.get(session).map(|peer| peer.rates[Direction::Receiving as usize])
    }

    /// A term of a session's rate at its source, if this is it.
    pub fn limit(&self, session: SessionId, limit: RateTerm) -> Option<Rate> {
        self.outbound.limit(session, limit)
    }

    /// The limit of a session for most of the last second, as known at one end of a direction: at its source, or at its
    /// sink if that limits it.
    pub fn held_by(&mut self, now: Time, session: SessionId, direction: Direction) -> Option<Hold> {
        match direction {
            Direction::Sending => self.outbound.held_by(now, session),
            Direction::Receiving => self.inbound.held_by(session),
        }
    }

    /// Facts about the path of a session's outgoing or incoming data. Rates and recent shares are accurate if this is
    /// called at least once a second.
    pub fn path_facts(&mut self, now: Time, session: SessionId, direction: Direction) -> Option<PathFacts> {
        match direction {
            Direction::Sending => self.outbound.path_facts(now, session),
            Direction::Receiving => {
                let rtt = &self.control.peers.get(session)?.rtt;
                let (least_rtt, smoothed_rtt, latest_rtt) = (rtt.least(), rtt.known(), rtt.latest());
                let facts = self.inbound.path_facts(now, session)?;
                Some(PathFacts { least_rtt, smoothed_rtt, latest_rtt, ..facts })
            }
        }
    }

    /// Max rate of the application of a session's sink, if this end is the sink and has a max.
    pub fn ceiling(&self, session: SessionId) -> Option<Rate> {
        self.inbound.ceiling(session)
    }

    /// Counters of a session as a source.
    pub fn sent(&self, session: SessionId) -> Option<SenderCounts> {
        self.outbound.counts(session)
    }

    /// Counters of a session as a sink.
    pub fn received(&self, session: SessionId) -> Option<ReceiverCounts> {
        self.inbound.counts(session)
    }

    /// Packets of a session that were sent here and whose fate is not settled.
    pub fn sent_under_way(&self, session: SessionId) -> usize {
        self.outbound.under_way(session)
    }

    /// Packets of a session whose fate its source has not settled, as far as its sink, this end, knows.
    pub fn received_under_way(&self, session: SessionId) -> u64 {
        self.inbound.under_way(session)
    }

    /// The round-trip time of a session, if there was a sample.
    pub fn rtt(&self, session: SessionId) -> Option<Duration> {
        self.control.peers.get(session).and_then(|peer| peer.rtt.known())
    }

    /// Whether data packets of a session set out with ECT(0) from here.
    pub fn takes_marks(&self, session: SessionId) -> bool {
        self.outbound.takes_marks(session)
    }

    /// The largest datagram that a session's path takes as far as is known, where data take it from here.
    pub fn datagram_bytes(&self, session: SessionId) -> Option<u32> {
        self.control.peers.get(session).and_then(|peer| peer.mtu.as_ref()).map(Mtu::size)
    }

    /// The address of a session's peer.
    pub fn address(&self, session: SessionId) -> Option<SocketAddr> {
        self.control.peers.get(session).map(|peer| peer.opened.address)
    }

    /// For how long a session's peer has said nothing.
    pub fn silent_for(&self, now: Time, session: SessionId) -> Option<Duration> {
        self.control.peers.get(session).map(|peer| now.since(peer.heard))
    }

    /// For how long a session's peer has owed an answer, and has been silent. Peers that owe no answer may be silent.
    pub fn unanswered_for(&self, now: Time, session: SessionId) -> Option<Duration> {
        self.control.peers.get(session).map(|peer| peer.unanswered_for(now))
    }

    /// For how long a session's peer has answered no request, though it may be heard: this host's messages do not
    /// arrive there. `None` until a few requests have gone without an answer, since each of them may be lost.
    pub fn unheard_for(&self, now: Time, session: SessionId) -> Option<Duration> {
        self.control.peers.get(session).map(|peer| peer.unheard_for(now))
    }

    /// All that may still come by what this host has granted, where it receives by claims and grants.
    pub fn reserved(&self) -> Option<Rate> {
        self.control.grants.nodes.get(Direction::Receiving).and_then(|node| node.divider.exchange()?.reserved())
    }

    /// Whether both ends of a session exchange claims and grants of that direction.
    pub fn exchanges(&self, session: SessionId, direction: Direction) -> bool {
        self.control.peers.exchanges(session, direction)
    }

    /// Sessions that share the capacity of a direction, where that is known.
    pub fn sessions(&self, direction: Direction) -> Option<usize> {
        self.control.grants.nodes.get(direction).map(|node| node.table.len())
    }
}
