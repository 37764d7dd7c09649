//! Round trips, counted by packets.

use super::super::rate_sample::RateSample;

/// Counts round trips: each ends when a packet arrives that was sent after the round started (BBR s5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RoundCount {
    pub(in super::super) count: u64,
    /// Whether the current sample started a round.
    pub(in super::super) is_start: bool,
    /// A packet that was sent when this many bytes had been delivered ends the round.
    end: u64,
}

impl RoundCount {
    /// Processes a sample with arrivals; returns whether it started a round.
    pub(in super::super) fn on_sample(&mut self, sample: &RateSample) -> bool {
        self.is_start = sample.prior_delivered.get() >= self.end;
        if self.is_start {
            self.begin(sample.total_delivered.get());
            self.count += 1;
        }
        self.is_start
    }

    /// Restarts the round, with the packets sent from now on.
    pub(in super::super) fn begin(&mut self, delivered: u64) {
        self.end = delivered;
    }
}
