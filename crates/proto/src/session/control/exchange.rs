//! Claims and grants between this host's nodes and its peers.

use fairwave_node::{Direction, EndNode, Exchange, Share, TickOutcome, Word};
use fairwave_units::{Duration, Time};

use super::{Control, ControlEvent};
use crate::handshake::Crypto;
use crate::send::usage::Usage;
use crate::wire::codec::{Frame, SessionId};
use crate::wire::features::Features;
use crate::wire::packet::frames;

impl<C: Crypto> Control<C> {
    /// This host's features, for its peers.
    pub(super) fn features(&self) -> Features {
        let exchanges = |direction| self.exchange(direction).is_some();
        Features { claims: exchanges(Direction::Sending), grants: exchanges(Direction::Receiving) }
    }

    /// Whether both ends of a session exchange claims and grants of that direction.
    pub(crate) fn exchanges(&self, session: SessionId, direction: Direction) -> bool {
        self.peers.get(session).is_some_and(|peer| peer.exchanges[direction as usize])
    }

    /// Whether the node of a direction needs its sessions' use.
    pub(crate) fn asks_for_use(&self, direction: Direction) -> bool {
        self.exchange(direction).is_some()
    }

    /// What shares the capacity of a direction by claims and grants.
    pub(super) fn exchange(&self, direction: Direction) -> Option<&Exchange> {
        self.node(direction).and_then(|node| node.divider.exchange())
    }

    pub(super) fn exchange_mut(&mut self, direction: Direction) -> Option<&mut Exchange> {
        self.node_mut(direction).and_then(|node| node.divider.exchange_mut())
    }

    /// Passes the use of a node's sessions in the interval that ends now.
    pub(crate) fn see_used(&mut self, direction: Direction, used: &[(SessionId, Usage)]) {
        if let Some(exchange) = self.exchange_mut(direction) {
            for (session, Usage { bytes, waits }) in used {
                exchange.see_used(*session, *bytes, *waits);
            }
        }
    }

    /// The node that had news a moment ago.
    pub(crate) fn due_for_news(&self, now: Time) -> Option<Direction> {
        let react_at = |direction: Direction| self.node(direction).and_then(EndNode::react_at);
        let is_due = |direction: &Direction| react_at(*direction).is_some_and(|at| at <= now);
        super::BOTH.into_iter().find(is_due)
    }

    /// A node does what its news ask for, between two control intervals.
    pub(crate) fn react(&mut self, now: Time, direction: Direction) {
        let Some(node) = self.node_mut(direction) else { return };
        let outcomes = node.react(now).to_vec();
        let interval = node.beat.interval();
        self.say_words(direction);
        for outcome in outcomes {
            if let Some(peer) = self.peers.get_mut(outcome.session) {
                peer.rates[direction as usize].set_grant(outcome.share.grant);
                self.push_grant(direction, interval, &outcome);
            }
        }
    }

    /// Passes a node's grant for a session to the other cores.
    pub(super) fn push_grant(&mut self, direction: Direction, interval: Duration, outcome: &TickOutcome) {
        let TickOutcome { session, share: Share { allowed: rate, remote, .. }, .. } = *outcome;
        self.events.push_back(ControlEvent::Grant { session, direction, rate, interval });
        if let Some(rate) = remote {
            self.events.push_back(ControlEvent::SinkGrant { session, rate });
        }
    }

    /// A grant or a claim came from a peer that exchanges them; what others say of them is skipped.
    pub(super) fn on_word(&mut self, now: Time, session: SessionId, frame: &Frame<'_>) {
        let direction = if matches!(frame, Frame::Grant(_)) { Direction::Sending } else { Direction::Receiving };
        let is_open = self.peers.get(session).is_some_and(|peer| peer.closing.is_none());
        if !is_open || !self.exchanges(session, direction) {
            return;
        }
        let Some(exchange) = self.exchange_mut(direction) else { return };
        match frame {
            Frame::Grant(grant) => {
                exchange.on_grant(now, session, grant);
                let remote = exchange.share(session).and_then(|share| share.remote);
                self.say_words(direction);
                self.events.extend(remote.map(|rate| ControlEvent::SinkGrant { session, rate }));
            }
            Frame::Claim(claim) => exchange.on_claim(now, session, claim),
            _ => {}
        }
    }

    /// A sink reports its expected rate: returns whether it is that of a sink without grants. A source whose node
    /// shares by claims handles it as a grant.
    pub(crate) fn on_feedback(&mut self, now: Time, session: SessionId, expected_bps: u64) -> bool {
        if self.exchanges(session, Direction::Sending) {
            return false;
        }
        if let Some(exchange) = self.exchange_mut(Direction::Sending) {
            exchange.on_feedback(now, session, crate::wire::codec::rate(expected_bps));
        }
        true
    }

    /// The nodes tell peers what they have to.
    pub(super) fn say_words(&mut self, direction: Direction) {
        let mut words = std::mem::take(&mut self.words);
        if let Some(exchange) = self.exchange_mut(direction) {
            exchange.take_words(&mut words);
        }
        for (session, word) in words.drain(..) {
            if self.peers.get(session).is_some_and(|peer| peer.closing.is_none()) {
                let frame = match word {
                    Word::Claim(claim) => Frame::Claim(claim),
                    Word::Grant(grant) => Frame::Grant(grant),
                };
                self.say(session, frames(&[frame]));
            }
        }
        self.words = words;
    }
}
