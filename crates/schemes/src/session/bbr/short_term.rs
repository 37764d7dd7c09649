//! The bounds of a model until its next probe.

use fairwave_units::Rate;

/// Safe values by the losses and marks since the last probe (BBR s5.5.10.3); `None` without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ShortTerm {
    pub(crate) rate: Option<Rate>,
    /// Maximum bytes in flight.
    pub(crate) in_flight: Option<u64>,
}

impl ShortTerm {
    /// Initialises missing bounds with the values in use (InitLowerBounds).
    pub(crate) fn begin(&mut self, bandwidth: Rate, window: u64) {
        self.rate.get_or_insert(bandwidth);
        self.in_flight.get_or_insert(window);
    }

    /// A round trip with loss: the bounds become its delivery, at least `beta` times the old ones (LossLowerBounds).
    pub(crate) fn on_loss(&mut self, rate: Rate, volume: u64, beta: f64) {
        self.rate = self.rate.map(|bound| rate.max(bound * beta));
        self.in_flight = self.in_flight.map(|bound| volume.max((bound as f64 * beta) as u64));
    }

    /// A round trip with marks: reduces the bytes in flight by this share.
    pub(crate) fn on_marks(&mut self, share: f64) {
        self.in_flight = self.in_flight.map(|bound| (bound as f64 * (1.0 - share)) as u64);
    }

    /// Widens the bounds to at least `before` (BBR s5.5.11.2).
    pub(crate) fn widen(&mut self, before: Self) {
        self.rate = self.rate.zip(before.rate).map(|(rate, before)| rate.max(before));
        self.in_flight = self.in_flight.zip(before.in_flight).map(|(bytes, before)| bytes.max(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_loss__is_the_delivery_at_least_seven_tenths() {
        let mut bounds = ShortTerm::default();
        bounds.on_loss(Rate::mbps(1.0), 10, 0.7);
        assert_eq!(bounds, ShortTerm::default());
        bounds.begin(Rate::mbps(10.0), 1000);
        bounds.on_loss(Rate::mbps(9.0), 950, 0.7);
        assert_eq!((bounds.rate, bounds.in_flight), (Some(Rate::mbps(9.0)), Some(950)));
        bounds.begin(Rate::mbps(99.0), 9999);
        bounds.on_loss(Rate::mbps(1.0), 100, 0.7);
        assert!((bounds.rate.unwrap().as_mbps() - 6.3).abs() < 1e-9);
        assert_eq!(bounds.in_flight, Some(665));
        bounds.on_marks(0.2);
        assert_eq!(bounds.in_flight, Some(532));
    }

    #[test]
    fn widen__to_earlier_bounds_if_wider() {
        let bounds = |mbps, bytes| ShortTerm { rate: Some(Rate::mbps(mbps)), in_flight: Some(bytes) };
        let mut now = bounds(5.0, 700);
        now.widen(bounds(8.0, 600));
        assert_eq!(now, bounds(8.0, 700));
        now.widen(ShortTerm::default());
        assert_eq!(now, ShortTerm::default());
    }
}
