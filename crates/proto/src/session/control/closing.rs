//! How a session comes to its end.

use fairwave_units::Time;

use super::{Control, ControlEvent};
use crate::handshake::Crypto;
use crate::session::closing::{ClosingSession, ClosingStep};
use crate::session::slots::slot;
use crate::wire::codec::{CloseReason, Frame, Frames, SessionId};
use crate::wire::packet::{MAX_FRAME_BYTES, frames};

impl<C: Crypto> Control<C> {
    /// The peer of an open session closes it.
    pub(super) fn on_close(&mut self, now: Time, session: SessionId, reason: CloseReason) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        // A second frame of the same packet adds nothing.
        if peer.closing.is_some() {
            return;
        }
        peer.closing = Some(ClosingSession::by_peer(now, reason, peer.rtt.smoothed()));
        self.nodes.leave(session);
        // It sends nothing after that word: what was reserved for it is free.
        self.nodes.forget(session);
        self.alarms.set(slot(session), Some(now));
        self.events.push_back(ControlEvent::Closed { session, reason, by_peer: true });
    }

    /// A packet came of a session that is over here. Its peer may say the same: it knows, or it wants to be answered.
    pub(super) fn on_late_packet(&mut self, now: Time, session: SessionId, bytes: &[u8]) {
        let frames = bytes.get(..MAX_FRAME_BYTES).unwrap_or(bytes);
        let says_so = Frames::new(frames).map_while(Result::ok).any(|frame| matches!(frame, Frame::Close(_)));
        let closing = self.peers.get_mut(session).and_then(|peer| peer.closing.as_mut());
        let Some(closing) = closing.filter(|_| says_so) else { return };
        if closing.on_close() {
            self.forget(session);
        } else {
            self.alarms.set(slot(session), Some(now));
        }
    }

    /// Does what a session that is over has to do now: when to come again, unless it is forgotten.
    pub(super) fn step_closing(&mut self, now: Time, session: SessionId) -> Option<Time> {
        let peer = self.peers.get_mut(session)?;
        match peer.closing.as_mut()?.step(now, peer.rtt.smoothed()) {
            ClosingStep::Say(reason, again) => {
                self.say(session, frames(&[Frame::Close(reason)]));
                Some(again)
            }
            ClosingStep::Wait(until) => Some(until),
            ClosingStep::Forget => {
                self.forget(session);
                None
            }
        }
    }

    /// Whether this host has closed a session whose peer may not know it.
    pub(crate) fn is_telling_ends(&self) -> bool {
        self.peers.iter().any(|(_, peer)| peer.closing.is_some_and(|closing| closing.is_telling()))
    }
}
