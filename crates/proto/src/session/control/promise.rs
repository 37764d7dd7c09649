//! The offer of this host in the handshake of a session.

use fairwave_node::{Direction, Flow, Terms};
use fairwave_units::{Duration, Time};

use super::ControlSetup;
use crate::handshake::{Crypto, HandshakeTerms, PendingVisit};
use crate::path::path_kind::{PathDeclaration, PathKind};
use crate::session::end_nodes::EndNodes;
use crate::wire::codec::{Ahead, SessionId};
use crate::wire::features::Features;

impl ControlSetup {
    /// This end's terms for a session.
    pub(super) fn terms(
        &self,
        nodes: &mut EndNodes,
        session: SessionId,
        (sends, receives): (bool, bool),
        options: Terms,
    ) -> HandshakeTerms {
        let mut end = |flows: bool, direction: Direction| {
            flows.then(|| nodes.promise_start(direction, session, options.weight, self.fair_start)).flatten()
        };
        let (send_end, receive_end) = (end(sends, Direction::Sending), end(receives, Direction::Receiving));
        let knows = |flows: bool, direction| !flows || nodes.knows_capacity(direction);
        let knows_all = knows(sends, Direction::Sending) && knows(receives, Direction::Receiving);
        HandshakeTerms {
            session,
            declared: match self.path {
                PathKind::Shared => PathDeclaration::Shared,
                PathKind::Dedicated if knows_all => PathDeclaration::Dedicated,
                PathKind::Dedicated => PathDeclaration::WithoutCapacity,
            },
            is_plain: self.is_plain,
            weight: options.weight,
            send_end,
            receive_end,
            largest_packet: self.largest_packet,
            features: nodes.features(),
            ahead: Ahead::default(),
        }
    }
}

/// The claim and the promise that this host sends ahead of a session that a peer requests. A sink's promise is
/// reserved from now on.
pub(super) fn ahead<C: Crypto>(
    nodes: &mut EndNodes,
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
    nodes.ahead(now, &flow, asked.receives && grants, asked.sends && claims)
}
