//! The rates that a sink assigns to its source.

use fairwave_node::Direction;
use fairwave_units::{Duration, Rate, Time};

use super::Control;
use crate::handshake::Crypto;
use crate::wire::codec::{Frame, NO_LIMIT_BPS, SessionId};
use crate::wire::packet::frames;

/// A rate that changes by less, as a share of the assigned one, waits for the next repetition.
const WORTH_TELLING: f64 = 0.001;
/// Interval of repeating an unchanged rate, since earlier messages may have been lost.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// The interval for a source that has been idle for [`IDLE_AFTER`]. A source that hears nothing for a second asks
/// ([`KEEP_ALIVE`](crate::send::silence::KEEP_ALIVE)); without an end node it may take 200 ms more until it gets a rate.
const IDLE_TELL_EVERY: Duration = Duration::from_millis(600);
/// A source is idle if no data has come from it for this long. A path that was cut for less is used again as soon as
/// the source is assigned its rate.
const IDLE_AFTER: Duration = Duration::from_secs(10);

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
        let bps = granted.into_iter().chain(peer.ceiling).map(Rate::as_bps).reduce(f64::min);
        let bps = bps.unwrap_or(NO_LIMIT_BPS as f64);
        let every = if now.since(peer.news_at) < IDLE_AFTER { TELL_EVERY } else { IDLE_TELL_EVERY };
        let is_worth_it =
            peer.told.is_none_or(|(told, at)| (bps - told).abs() > WORTH_TELLING * told || now.since(at) >= every);
        if is_worth_it {
            peer.told = Some((bps, now));
            self.say(session, frames(&[Frame::Feedback { expected_bps: (bps as u64).min(NO_LIMIT_BPS) }]));
        }
    }

    /// If no end node limits what may be received, this repeats that nothing limits it, or only the ceiling.
    pub(super) fn lift(&mut self, now: Time, session: SessionId) {
        let receives = self.peers.get(session).is_some_and(|peer| peer.opened.receives);
        if receives && self.node(Direction::Receiving).is_none() {
            self.feed_back(now, session, None);
        }
    }
}
