//! The bounds of a model until its next probe.

use fairwave_units::Rate;

/// Safe values by the losses and marks since the last probe (BBR s5.5.10.3); `None` without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct ShortTerm {
    pub(in super::super) rate: Option<Rate>,
    /// Maximum bytes in flight.
    pub(in super::super) in_flight: Option<u64>,
}

impl ShortTerm {
    /// Initialises missing bounds with the values in use (InitLowerBounds).
    pub(in super::super) fn begin(&mut self, bandwidth: Rate, window: u64) {
        self.rate.get_or_insert(bandwidth);
        self.in_flight.get_or_insert(window);
    }

    /// A round trip with loss: the bounds become its delivery, at least `beta` times the old ones (LossLowerBounds).
    pub(in super::super) fn on_loss(&mut self, rate: Rate, volume: u64, beta: f64) {
        self.rate = self.rate.map(|bound| rate.max(bound * beta));
        self.in_flight = self.in_flight.map(|bound| volume.max((bound as f64 * beta) as u64));
    }

    /// A round trip with marks: reduces the bytes in flight by this share.
    pub(in super::super) fn on_marks(&mut self, share: f64) {
        self.in_flight = self.in_flight.map(|bound| (bound as f64 * (1.0 - share)) as u64);
    }

    /// Widens the bounds to at least `before` (BBR s5.5.11.2).
    pub(in super::super) fn widen(&mut self, before: Self) {
        self.rate = self.rate.zip(before.rate).map(|(rate, before)| rate.max(before));
        self.in_flight = self.in_flight.zip(before.in_flight).map(|(bytes, before)| bytes.max(before));
    }
}
