//! Claims and grants that are sent with the handshake.

use fairwave_node::{Beginning, Direction, Flow, Terms};
use fairwave_units::{Duration, Rate, Time};

use super::Control;
use crate::handshake::{Crypto, Established, HandshakeTerms, PendingVisit};
use crate::path::path_kind::PathKind;
use crate::wire::codec::{Ahead, SessionId};
use crate::wire::features::Features;

impl<C: Crypto> Control<C> {
    /// The claim and the promise that this host sends ahead of a session that a peer requests. A sink's promise is
    /// reserved from now on.
    pub(super) fn ahead(
        &mut self,
        now: Time,
        asked: &PendingVisit<C>,
        terms: &HandshakeTerms,
        options: Terms,
    ) -> Ahead {
        if !(asked.prologue.is_dedicated && terms.declared.kind() == PathKind::Dedicated) {
            return Ahead::default();
        }
        let flow = Flow::new(terms.session, options, Duration::ZERO);
        let Features { claims, grants } = asked.features();
        self.grants.nodes.ahead(now, &flow, asked.receives && grants, asked.sends && claims)
    }

    /// The session will not open: frees its name, and returns what was promised to it.
    pub(super) fn take_back(&mut self, session: SessionId) {
        self.names.give_back(session);
        self.grants.nodes.forget(session);
    }

    /// How a session starts in one direction, by what the handshake said.
    pub(super) fn beginning(&self, established: &Established<C::Keys>, direction: Direction) -> Beginning {
        let Features { claims, grants } = established.features;
        let rate = |bps: u64| Some(Rate::nearest_bps(bps as f64)).filter(|_| bps > 0);
        let Ahead { claim_bps, promise_bps } = established.ahead;
        match (direction, established.asked_at) {
            (Direction::Sending, _) if !grants => Beginning::Plain,
            (Direction::Receiving, _) if !claims => Beginning::Plain,
            (Direction::Sending, Some(since)) => {
                rate(promise_bps).map_or(Beginning::Bare, |rate| Beginning::Promised { rate, since })
            }
            // All that is spare goes to those that come at the same time.
            (Direction::Receiving, Some(_)) => rate(claim_bps)
                .map_or(Beginning::Bare, |claim| Beginning::Claimed { claim, parts: self.handshakes.attempts() + 1 }),
            // A responder's source has its first grant with the packet that opens the session; its sink has promised.
            (_, None) => Beginning::Bare,
        }
    }
}
