//! What a source sent beyond its rate, and what of that may still wait.

use fairwave_units::{Bytes, Duration, Rate};

/// The queue that a source made itself by making good for times in which it was kept from sending. Ours: the draft knows
/// of no host that is busy.
///
/// A link that stood still meanwhile gains nothing by it: what comes on top waits, and goes as slowly as less is sent
/// than the path delivers, a second for each 10 ms at 1 % less. Whoever takes that for the queue of others makes way for
/// nobody, and waits for its next probe as long as beside them. What is seen of a queue counts for others beyond this.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MadeUp {
    bytes: f64,
}

/// Of what fills the path, that much may be taken for it, at the most: a queue beyond it is somebody else's.
const MOST: f64 = 0.25;

impl MadeUp {
    /// So many bytes were sent beyond the rate, which is this much of the bandwidth, and so many arrived; `bdp` bytes fill
    /// the path.
    pub(super) fn on_sample(&mut self, made_up: Bytes, acked: Bytes, gain: f64, bdp: u64) {
        let gone = acked.get() as f64 * (1.0 - gain).max(0.0);
        self.bytes = (self.bytes + made_up.get() as f64 - gone).clamp(0.0, MOST * bdp as f64);
    }

    /// A round trip showed no queue.
    pub(super) fn on_empty(&mut self) {
        self.bytes = 0.0;
    }

    /// How long it waits at most, on a path of this bandwidth.
    pub(super) fn wait(self, bandwidth: Rate) -> Duration {
        bandwidth.time_for(Bytes::new(self.bytes as u64)).unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait__goes_as_less_is_sent_than_the_path_delivers() {
        let mut made_up = MadeUp::default();
        let rate = Rate::mbps(8.0); // 1000 B a millisecond
        made_up.on_sample(Bytes::new(10_000), Bytes::ZERO, 0.99, 60_000);
        assert_eq!(made_up.wait(rate), Duration::from_millis(10));
        // Half a second at 1 % less, and nothing while more is sent than is delivered.
        made_up.on_sample(Bytes::ZERO, Bytes::new(500_000), 0.99, 60_000);
        let half = made_up.wait(rate);
        assert!(half.as_nanos().abs_diff(5_000_000) <= 1000, "{half}");
        made_up.on_sample(Bytes::ZERO, Bytes::new(500_000), 1.25, 60_000);
        assert_eq!(made_up.wait(rate), half);
        // No more than a quarter of what fills the path.
        made_up.on_sample(Bytes::new(u64::MAX), Bytes::ZERO, 0.99, 60_000);
        assert_eq!(made_up.wait(rate), Duration::from_millis(15));
        made_up.on_empty();
        assert_eq!(made_up.wait(rate), Duration::ZERO);
        assert_eq!(made_up.wait(Rate::ZERO), Duration::ZERO);
    }
}
