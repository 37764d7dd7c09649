//! Aggregated arrivals.

use fairwave_units::{Rate, Time};

/// Arrivals in a burst beyond what the bandwidth explains (BBR s5.5.9): links and hosts aggregate packets and their
/// acknowledgements, and reports cover many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aggregation {
    since: Time,
    acked: u64,
}

impl Aggregation {
    pub(crate) fn new(now: Time) -> Self {
        Self { since: now, acked: 0 }
    }

    /// The flow starts after a pause.
    pub(crate) fn begin(&mut self, now: Time) {
        self.since = now;
        self.acked = 0;
    }

    /// Adds arrivals; returns their excess in bytes, at most `most`.
    pub(crate) fn on_sample(&mut self, now: Time, acked: u64, bandwidth: Rate, most: u64) -> u64 {
        let mut expected = expected_bytes(bandwidth, now, self.since);
        if self.acked <= expected {
            self.begin(now);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(acked);
        (self.acked - expected).min(most)
    }
}

/// Bytes that the bandwidth would have delivered since `since`.
fn expected_bytes(bandwidth: Rate, now: Time, since: Time) -> u64 {
    // The cast saturates.
    (bandwidth.as_bps() / 8.0 * now.since(since).as_secs_f64()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_sample__is_the_excess_over_the_bandwidth() {
        let mut lumps = Aggregation::new(Time::ZERO);
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let rate = Rate::mbps(8.0); // 1000 B a millisecond
        // 10 000 B every 10 ms: all of a burst exceeds what the start of its interval explains.
        for lump in 1..=4 {
            assert_eq!(lumps.on_sample(ms(lump * 10), 10_000, rate, u64::MAX), 10_000);
        }
        // At most the window.
        assert_eq!(lumps.on_sample(ms(41), 90_000, rate, 30_000), 30_000);
        // Smooth arrivals.
        for tick in 1..=12 {
            assert_eq!(lumps.on_sample(ms(1000 + tick), 1000, rate, u64::MAX), 1000);
        }
    }
}
