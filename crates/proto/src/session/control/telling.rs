//! The rates that a sink assigns to its source.

use fairwave_node::Direction;
use fairwave_units::{Rate, Time};

use super::Control;
use crate::handshake::Crypto;
use crate::wire::codec::{Frame, SessionId};
use crate::wire::packet::frames;

impl<C: Crypto> Control<C> {
    /// Data came from a session's source.
    pub(crate) fn on_news(&mut self, now: Time, session: SessionId) {
        if let Some(peer) = self.peers.get_mut(session) {
            peer.news_at = now;
        }
    }

    /// Tells a source what it may send: the least of what this end's node grants, if there is one, and the ceiling.
    pub(super) fn feed_back(&mut self, now: Time, session: SessionId, granted: Option<Rate>) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        if let Some(expected_bps) = peer.feedback(now, granted) {
            self.say(session, frames(&[Frame::Feedback { expected_bps }]));
        }
    }

    /// If no end node limits what may be received, this repeats that nothing limits it, or only the ceiling.
    pub(super) fn lift(&mut self, now: Time, session: SessionId) {
        let receives = self.peers.get(session).is_some_and(|peer| peer.opened.receives);
        if receives && self.nodes.get(Direction::Receiving).is_none() {
            self.feed_back(now, session, None);
        }
    }
}
