//! The rates that a sink reports to its source.

use fairwave_units::{Duration, Rate, Time};

use super::Peer;
use crate::wire::codec::NO_LIMIT_BPS;

/// A rate that changes by less, as a share of the assigned one, waits for the next repetition.
const MIN_CHANGE: f64 = 0.001;
/// Interval of repeating an unchanged rate, since earlier messages may have been lost.
const REPEAT: Duration = Duration::from_millis(200);
/// The interval for a source that has been idle for [`IDLE_AFTER`]. A source that hears nothing for a second asks
/// ([`KEEP_ALIVE`](crate::send::silence::KEEP_ALIVE)); without an end node it may take 200 ms more until it gets a rate.
const IDLE_REPEAT: Duration = Duration::from_millis(600);
/// A source is idle if no data has come from it for this long. A path that was cut for less is used again as soon as
/// the source is assigned its rate.
const IDLE_AFTER: Duration = Duration::from_secs(10);

impl<K> Peer<K> {
    /// What to tell a source now, in bit/s: the least of what this end's node grants, if there is one, and the ceiling.
    /// `None` if that was reported recently.
    pub(crate) fn feedback(&mut self, now: Time, granted: Option<Rate>) -> Option<u64> {
        let bps = granted.into_iter().chain(self.ceiling).map(Rate::as_bps).reduce(f64::min);
        let bps = bps.unwrap_or(NO_LIMIT_BPS as f64);
        let every = if now.since(self.news_at) < IDLE_AFTER { REPEAT } else { IDLE_REPEAT };
        let is_due = self
            .reported
            .is_none_or(|(reported, at)| (bps - reported).abs() > MIN_CHANGE * reported || now.since(at) >= every);
        is_due.then(|| {
            self.reported = Some((bps, now));
            (bps as u64).min(NO_LIMIT_BPS)
        })
    }
}
