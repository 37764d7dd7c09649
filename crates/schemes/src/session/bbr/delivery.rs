//! Delivery of the last round trip, and its losses and marks.

use fairwave_units::Rate;

use super::super::rate_sample::RateSample;

/// The maximum delivery of one round trip, and its losses (BBR s5.5.10.3). A first loss starts a round, so that its
/// effect is seen as early as possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) rate: Rate,
    /// Bytes delivered between a packet's sending and its arrival.
    pub(crate) volume: u64,
    /// Whether the current sample ended a round.
    pub(crate) is_round_start: bool,
    round_end: u64,
    pub(crate) has_loss: bool,
    /// Ranges lost in the round.
    pub(crate) lost_ranges: u32,
}

impl Delivery {
    pub(crate) fn new() -> Self {
        Self { rate: Rate::ZERO, volume: 0, is_round_start: false, round_end: 0, has_loss: false, lost_ranges: 0 }
    }

    /// Records a loss; returns whether it is the round's first, which starts a round.
    pub(crate) fn on_loss(&mut self, delivered: u64, ranges: u32) -> bool {
        let is_first = !self.has_loss;
        if is_first {
            self.round_end = delivered;
        }
        self.has_loss = true;
        self.lost_ranges = self.lost_ranges.saturating_add(ranges);
        is_first
    }

    /// BBR s5.5.10.3, UpdateLatestDeliverySignals.
    pub(crate) fn on_sample(&mut self, sample: &RateSample) {
        self.rate = self.rate.max(sample.delivery_rate.unwrap_or(Rate::ZERO));
        self.volume = self.volume.max(sample.delivered.get());
        self.is_round_start = sample.prior_delivered.get() >= self.round_end;
        if self.is_round_start {
            self.round_end = sample.total_delivered.get();
        }
    }

    /// Finishes a sample: its values start the next round (AdvanceLatestDeliverySignals).
    pub(crate) fn advance(&mut self, sample: &RateSample) {
        if self.is_round_start {
            self.rate = sample.delivery_rate.unwrap_or(Rate::ZERO);
            self.volume = sample.delivered.get();
        }
    }

    /// Discards this round (ResetCongestionSignals).
    pub(crate) fn reset(&mut self) {
        (self.rate, self.volume) = (Rate::ZERO, 0);
        self.has_loss = false;
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::*;

    fn sample(prior: u64, total: u64, mbps: f64) -> RateSample {
        RateSample {
            prior_delivered: Bytes::new(prior),
            total_delivered: Bytes::new(total),
            delivered: Bytes::new(total - prior),
            delivery_rate: Some(Rate::mbps(mbps)),
            ..RateSample::default()
        }
    }

    #[test]
    fn on_sample__is_the_round_maximum_and_losses_start_rounds() {
        let mut delivery = Delivery::new();
        for (prior, total, mbps) in [(0, 10, 3.0), (0, 20, 5.0), (5, 30, 4.0)] {
            delivery.on_sample(&sample(prior, total, mbps));
            delivery.advance(&sample(prior, total, mbps));
        }
        assert_eq!((delivery.rate, delivery.volume), (Rate::mbps(5.0), 25));
        assert!(delivery.on_loss(30, 1) && !delivery.on_loss(35, 2));
        assert_eq!(delivery.lost_ranges, 3);
        // Without the loss this would end the round that started at 10.
        delivery.on_sample(&sample(20, 40, 1.0));
        assert!(!delivery.is_round_start);
        delivery.on_sample(&sample(30, 50, 1.0));
        assert!(delivery.is_round_start);
        delivery.advance(&sample(30, 50, 1.0));
        assert_eq!((delivery.rate, delivery.volume), (Rate::mbps(1.0), 20));
        delivery.reset();
        assert!(!delivery.has_loss);
    }
}
