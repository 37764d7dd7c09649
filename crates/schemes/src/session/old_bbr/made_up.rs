//! Bytes that a source sent beyond its rate to catch up, and the part that may still be queued.

use fairwave_units::{Bytes, Duration, Rate};

/// The queue that a source made itself by catching up after times in which it could not send. Ours: the draft does not
/// consider busy hosts.
///
/// The link delivers no more because of it: the excess is queued, and drains slowly, as the send rate is only 1 % below
/// the delivery rate: a second for each 10 ms. A model that attributes this queue to other flows yields to no one, and
/// waits as long for its next probe as if there were others. Only a queue beyond this counts as that of others.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct MadeUp {
    bytes: f64,
}

/// Maximum share of the bandwidth-delay product that counts as its own: a queue beyond it belongs to others.
const MAX_SHARE: f64 = 0.25;

impl MadeUp {
    /// Adds `made_up` bytes sent beyond the rate, and drains by the `acked` bytes that arrived while the rate is `gain`
    /// times the bandwidth; the bandwidth-delay product is `bdp` bytes.
    pub(in super::super) fn on_sample(&mut self, made_up: Bytes, acked: Bytes, gain: f64, bdp: u64) {
        let gone = acked.get() as f64 * (1.0 - gain).max(0.0);
        self.bytes = (self.bytes + made_up.get() as f64 - gone).clamp(0.0, MAX_SHARE * bdp as f64);
    }

    /// A round trip showed no queue.
    pub(in super::super) fn on_empty(&mut self) {
        self.bytes = 0.0;
    }

    /// Maximum queueing delay of it on a path of this bandwidth.
    pub(in super::super) fn wait(self, bandwidth: Rate) -> Duration {
        bandwidth.time_for(Bytes::new(self.bytes as u64)).unwrap_or(Duration::ZERO)
    }
}
