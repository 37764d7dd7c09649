//! Bytes that a source sent beyond its rate to catch up, and the part that may still be queued.

use fairwave_units::{Bytes, Duration, Rate};

/// The queue that a source made itself by catching up after times in which it could not send. The draft does not
/// consider busy hosts.
///
/// The link delivers no more because of it: the excess is queued, and drains slowly, as the send rate is only 1 % below
/// the delivery rate: a second for each 10 ms. A model that attributes this queue to other flows yields to no one, and
/// waits as long for its next probe as if there were others. Only a queue beyond this counts as that of others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CatchUp {
    bytes: f64,
}

/// Maximum share of the bandwidth-delay product that counts as its own: a queue beyond it belongs to others.
const MAX_SHARE: f64 = 0.25;

impl CatchUp {
    /// Adds `made_up` bytes sent beyond the rate, and drains by the `acked` bytes that arrived while the rate is `gain`
    /// times the bandwidth; the bandwidth-delay product is `bdp` bytes.
    pub(super) fn on_sample(&mut self, made_up: Bytes, acked: Bytes, gain: f64, bdp: u64) {
        let gone = acked.get() as f64 * (1.0 - gain).max(0.0);
        self.bytes = (self.bytes + made_up.get() as f64 - gone).clamp(0.0, MAX_SHARE * bdp as f64);
    }

    /// A round trip showed no queue.
    pub(super) fn on_empty(&mut self) {
        self.bytes = 0.0;
    }

    /// Maximum queueing delay of it on a path of this bandwidth.
    pub(super) fn wait(self, bandwidth: Rate) -> Duration {
        bandwidth.time_for(Bytes::new(self.bytes as u64)).unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait__drains_at_the_difference_of_rates() {
        let mut catch_up = CatchUp::default();
        let rate = Rate::mbps(8.0); // 1000 B a millisecond
        catch_up.on_sample(Bytes::new(10_000), Bytes::ZERO, 0.99, 60_000);
        assert_eq!(catch_up.wait(rate), Duration::from_millis(10));
        // Half a second at 1 % less, and nothing while more is sent than is delivered.
        catch_up.on_sample(Bytes::ZERO, Bytes::new(500_000), 0.99, 60_000);
        let half = catch_up.wait(rate);
        assert!(half.as_nanos().abs_diff(5_000_000) <= 1000, "{half}");
        catch_up.on_sample(Bytes::ZERO, Bytes::new(500_000), 1.25, 60_000);
        assert_eq!(catch_up.wait(rate), half);
        // At most a quarter of the bandwidth-delay product.
        catch_up.on_sample(Bytes::new(u64::MAX), Bytes::ZERO, 0.99, 60_000);
        assert_eq!(catch_up.wait(rate), Duration::from_millis(15));
        catch_up.on_empty();
        assert_eq!(catch_up.wait(rate), Duration::ZERO);
        assert_eq!(catch_up.wait(Rate::ZERO), Duration::ZERO);
    }
}
