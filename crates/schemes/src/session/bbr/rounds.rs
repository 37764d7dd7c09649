//! Round trips, told by packets.

use super::super::rate_sample::RateSample;

/// Counts round trips: each ends when a packet arrives that was sent after the round began (BBR s5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundCount {
    pub(super) count: u64,
    /// Whether the sample that is being worked on began a round.
    pub(super) is_start: bool,
    /// A packet that was sent when so much had been delivered ends the round.
    end: u64,
}

impl RoundCount {
    /// A sample with arrivals came; whether it began a round.
    pub(super) fn on_sample(&mut self, sample: &RateSample) -> bool {
        self.is_start = sample.prior_delivered.get() >= self.end;
        if self.is_start {
            self.begin(sample.total_delivered.get());
            self.count += 1;
        }
        self.is_start
    }

    /// The round begins anew, with what is sent from now on.
    pub(super) fn begin(&mut self, delivered: u64) {
        self.end = delivered;
    }
}
