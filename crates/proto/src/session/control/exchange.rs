//! Claims and grants between this host's nodes and its peers.

use fairwave_node::{Direction, Share, TickOutcome, Word};
use fairwave_units::{Duration, Time};

use super::{Control, ControlEvent};
use crate::handshake::Crypto;
use crate::wire::codec::{Frame, SessionId};
use crate::wire::packet::frames;

impl<C: Crypto> Control<C> {
    /// Whether both ends of a session exchange claims and grants of that direction.
    pub(crate) fn exchanges(&self, session: SessionId, direction: Direction) -> bool {
        self.peers.get(session).is_some_and(|peer| peer.exchanges[direction as usize])
    }

    /// A node does what its news ask for, between two control intervals.
    pub(crate) fn react(&mut self, now: Time, direction: Direction) {
        let Some((interval, outcomes)) = self.nodes.react(now, direction) else { return };
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
        let Some(exchange) = self.nodes.exchange_mut(direction) else { return };
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
        if let Some(exchange) = self.nodes.exchange_mut(Direction::Sending) {
            exchange.on_feedback(now, session, crate::wire::codec::rate(expected_bps));
        }
        true
    }

    /// The nodes tell peers what they have to.
    pub(super) fn say_words(&mut self, direction: Direction) {
        let mut words = std::mem::take(&mut self.words);
        if let Some(exchange) = self.nodes.exchange_mut(direction) {
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
