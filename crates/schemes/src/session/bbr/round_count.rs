//! Round trips, counted by packets.

use super::super::rate_sample::RateSample;

/// Counts round trips: each ends when a packet arrives that was sent after the round started (BBR s5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundCount {
    pub(crate) count: u64,
    /// Whether the current sample started a round.
    pub(crate) is_start: bool,
    /// A packet that was sent when this many bytes had been delivered ends the round.
    end: u64,
}

impl RoundCount {
    /// Processes a sample with arrivals; returns whether it started a round.
    pub(crate) fn on_sample(&mut self, sample: &RateSample) -> bool {
        self.is_start = sample.prior_delivered.get() >= self.end;
        if self.is_start {
            self.begin(sample.total_delivered.get());
            self.count += 1;
        }
        self.is_start
    }

    /// Restarts the round, with the packets sent from now on.
    pub(crate) fn begin(&mut self, delivered: u64) {
        self.end = delivered;
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::*;

    fn sample(prior: u64, total: u64) -> RateSample {
        RateSample { prior_delivered: Bytes::new(prior), total_delivered: Bytes::new(total), ..RateSample::default() }
    }

    #[test]
    fn on_sample__a_round_ends_with_a_packet_sent_in_it() {
        let mut rounds = RoundCount::default();
        assert!(rounds.on_sample(&sample(0, 10)));
        // Sent before 10 bytes were delivered, and finally one that was sent then.
        assert_eq!([rounds.on_sample(&sample(0, 20)), rounds.on_sample(&sample(9, 30))], [false, false]);
        assert!(rounds.on_sample(&sample(10, 40)));
        assert_eq!(rounds.count, 2);
        // Restarted at 70.
        rounds.begin(70);
        assert!(!rounds.on_sample(&sample(40, 80)));
        assert!(rounds.on_sample(&sample(70, 90)));
    }
}
