//! Delivery of the last round trip, and its losses and marks.

use fairwave_units::Rate;

use super::super::rate_sample::RateSample;

/// The maximum delivery of one round trip, and its losses (BBR s5.5.10.3). A first loss starts a round, so that its
/// effect is seen as early as possible.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Delivery {
    pub(in super::super) rate: Rate,
    /// Bytes delivered between a packet's sending and its arrival.
    pub(in super::super) volume: u64,
    /// Whether the current sample ended a round.
    pub(in super::super) is_round_start: bool,
    round_end: u64,
    pub(in super::super) has_loss: bool,
    /// Ranges lost in the round.
    pub(in super::super) lost_ranges: u32,
}

impl Delivery {
    pub(in super::super) fn new() -> Self {
        Self { rate: Rate::ZERO, volume: 0, is_round_start: false, round_end: 0, has_loss: false, lost_ranges: 0 }
    }

    /// Records a loss; returns whether it is the round's first, which starts a round.
    pub(in super::super) fn on_loss(&mut self, delivered: u64, ranges: u32) -> bool {
        let is_first = !self.has_loss;
        if is_first {
            self.round_end = delivered;
        }
        self.has_loss = true;
        self.lost_ranges = self.lost_ranges.saturating_add(ranges);
        is_first
    }

    /// BBR s5.5.10.3, UpdateLatestDeliverySignals.
    pub(in super::super) fn on_sample(&mut self, sample: &RateSample) {
        self.rate = self.rate.max(sample.delivery_rate.unwrap_or(Rate::ZERO));
        self.volume = self.volume.max(sample.delivered.get());
        self.is_round_start = sample.prior_delivered.get() >= self.round_end;
        if self.is_round_start {
            self.round_end = sample.total_delivered.get();
        }
    }

    /// Finishes a sample: its values start the next round (AdvanceLatestDeliverySignals).
    pub(in super::super) fn advance(&mut self, sample: &RateSample) {
        if self.is_round_start {
            self.rate = sample.delivery_rate.unwrap_or(Rate::ZERO);
            self.volume = sample.delivered.get();
        }
    }

    /// Discards this round (ResetCongestionSignals).
    pub(in super::super) fn reset(&mut self) {
        (self.rate, self.volume) = (Rate::ZERO, 0);
        self.has_loss = false;
    }
}
