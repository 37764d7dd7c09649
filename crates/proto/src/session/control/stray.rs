//! Packets of sessions that are not known here: a stateless reset (RFC 9000 s10.3), at both of its ends.

use std::net::SocketAddr;

use fairwave_node::Direction;
use fairwave_units::Time;

use super::Control;
use crate::handshake::Crypto;
use crate::session::control_event::ControlEvent;
use crate::wire::codec::{CloseReason, Header, MIN_RESET_BYTES, PacketKind};

impl<C: Crypto> Control<C> {
    /// A packet came for a session that has no keys here, from an address and with `lower_bytes` of IP and UDP headers.
    /// It may be a reset; otherwise returns the answer, if there is one.
    pub(crate) fn handle_stray(
        &mut self,
        now: Time,
        (from, lower_bytes): (SocketAddr, u32),
        header: &Header,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        if self.peers.get(header.session).is_some() || self.handle_reset(from, header, datagram) {
            return None;
        }
        if let Some(exchange) =
            self.grants.nodes.exchange_mut(Direction::Receiving).filter(|_| header.kind == PacketKind::Data)
        {
            let bytes = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
            exchange.see_stray(now, bytes.saturating_add(lower_bytes));
        }
        // RFC 9000 s10.3.3: what answers is smaller than what it answers; so this one must not be the smallest.
        if datagram.len() <= MIN_RESET_BYTES {
            return None;
        }
        let reset = self.handshakes.reset(now, from, header.session)?;
        let chance = &mut self.peers.chance;
        reset.answer(header, datagram.len(), || chance.bits())
    }

    /// Ends the session that a datagram is a reset of: whether it is one. It comes from where that session's packets go
    /// to, and nobody but the responder and this host has known its token.
    fn handle_reset(&mut self, from: SocketAddr, header: &Header, datagram: &[u8]) -> bool {
        let Some(session) = self.resets.get(&header.session).copied() else { return false };
        let Some(peer) = self.peers.get(session) else { return false };
        if peer.opened.address != from || !peer.reset.is_some_and(|reset| reset.is_shown(datagram)) {
            return false;
        }
        let is_open = peer.closing.is_none();
        self.forget(session);
        if is_open {
            self.peers.push(ControlEvent::Closed { session, reason: CloseReason::Reset, by_peer: true });
        }
        true
    }
}
