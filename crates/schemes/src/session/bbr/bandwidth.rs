//! The maximum delivery rate of two probing cycles.

use fairwave_units::Rate;

/// A maximum over the current and the previous probing cycle (BBR s5.5.3, s5.5.6), for which two slots suffice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth {
    slots: [Rate; 2],
}

impl Bandwidth {
    pub(crate) fn new() -> Self {
        Self { slots: [Rate::ZERO; 2] }
    }

    /// The maximum of both cycles; zero before the first sample.
    pub(crate) fn max(&self) -> Rate {
        self.slots[0].max(self.slots[1])
    }

    /// BBR s5.5.5: a sample with another limit than the path counts only if it is larger than the maximum.
    pub(crate) fn on_sample(&mut self, rate: Rate, is_app_limited: bool) {
        if rate >= self.max() || !is_app_limited {
            self.slots[1] = self.slots[1].max(rate);
        }
    }

    /// Gives up a part of it to other flows.
    pub(crate) fn cut_to(&mut self, rate: Rate) {
        self.slots = self.slots.map(|slot| slot.min(rate));
    }

    /// The larger of both, to undo a cut without cause.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self { slots: [self.slots[0].max(other.slots[0]), self.slots[1].max(other.slots[1])] }
    }

    /// Ends a cycle. One without a sample changes nothing, as in Linux: there is no sign that the estimate is too high.
    pub(crate) fn advance(&mut self) {
        if self.slots[1] > Rate::ZERO {
            self.slots = [self.slots[1], Rate::ZERO];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(mbps: f64) -> Rate {
        Rate::mbps(mbps)
    }

    #[test]
    fn max__is_of_this_cycle_and_the_one_before() {
        let mut bandwidth = Bandwidth::new();
        bandwidth.on_sample(mbps(10.0), false);
        bandwidth.advance();
        bandwidth.on_sample(mbps(5.0), false);
        assert_eq!(bandwidth.max(), mbps(10.0));
        bandwidth.advance();
        assert_eq!(bandwidth.max(), mbps(5.0));
        // A cycle without a sample drops nothing.
        bandwidth.advance();
        bandwidth.advance();
        assert_eq!(bandwidth.max(), mbps(5.0));
    }

    #[test]
    fn on_sample__limited_ones_raise_and_never_fill_a_cycle() {
        let mut bandwidth = Bandwidth::new();
        bandwidth.on_sample(mbps(10.0), false);
        bandwidth.advance();
        bandwidth.on_sample(mbps(2.0), true);
        bandwidth.advance();
        assert_eq!(bandwidth.max(), mbps(10.0));
        bandwidth.on_sample(mbps(11.0), true);
        assert_eq!(bandwidth.max(), mbps(11.0));
    }
}
