//! How a session comes to its end.

use fairwave_units::Time;

use super::Control;
use crate::handshake::Crypto;
use crate::session::closing::ClosingStep;
use crate::session::control_event::ControlEvent;
use crate::session::slots::slot;
use crate::wire::codec::{CloseReason, Frame, Frames, SessionId};
use crate::wire::packet::{MAX_FRAME_BYTES, frames};

impl<C: Crypto> Control<C> {
    /// This host ends a session.
    pub(crate) fn close(&mut self, now: Time, session: SessionId, reason: CloseReason) {
        if self.handshakes.give_up(session) {
            self.take_back(session);
            self.peers.push(ControlEvent::Closed { session, reason, by_peer: false });
        }
        self.grants.close(now, &mut self.peers, session, (reason, false));
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
            self.peers.alarms.set(slot(session), Some(now));
        }
    }

    /// Does what a session that is over has to do now: when to come again, unless it is forgotten.
    pub(super) fn step_closing(&mut self, now: Time, session: SessionId) -> Option<Time> {
        let peer = self.peers.get_mut(session)?;
        match peer.closing.as_mut()?.step(now, peer.rtt.smoothed()) {
            ClosingStep::Say(reason, again) => {
                self.peers.say(session, frames(&[Frame::Close(reason)]));
                Some(again)
            }
            ClosingStep::Wait(until) => Some(until),
            ClosingStep::Forget => {
                self.forget(session);
                None
            }
        }
    }

    /// Nothing is known of a session any more.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.grants.nodes.leave(session);
        self.grants.nodes.forget(session);
        if let Some(peer) = self.peers.remove(session) {
            self.names.give_back(session);
            // A responder may have said the same of another session.
            if let Some(reset) = peer.reset.filter(|reset| self.resets.get(&reset.id) == Some(&session)) {
                self.resets.remove(&reset.id);
            }
        }
    }
}
