//! The maximum delivery rate of two probing cycles.

use fairwave_units::Rate;

/// A maximum over the current and the previous probing cycle (BBR s5.5.3, s5.5.6), for which two slots suffice.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bandwidth {
    slots: [Rate; 2],
}

impl Bandwidth {
    pub(in super::super) fn new() -> Self {
        Self { slots: [Rate::ZERO; 2] }
    }

    /// The maximum of both cycles; zero before the first sample.
    pub(in super::super) fn max(&self) -> Rate {
        self.slots[0].max(self.slots[1])
    }

    /// BBR s5.5.5: a sample with another limit than the path counts only if it is larger than the maximum.
    pub(in super::super) fn on_sample(&mut self, rate: Rate, is_app_limited: bool) {
        if rate >= self.max() || !is_app_limited {
            self.slots[1] = self.slots[1].max(rate);
        }
    }

    /// Gives up a part of it to other flows.
    pub(in super::super) fn cut_to(&mut self, rate: Rate) {
        self.slots = self.slots.map(|slot| slot.min(rate));
    }

    /// The larger of both, to undo a cut without cause.
    pub(in super::super) fn joined(self, other: Self) -> Self {
        Self { slots: [self.slots[0].max(other.slots[0]), self.slots[1].max(other.slots[1])] }
    }

    /// Ends a cycle. One without a sample changes nothing, as in Linux: there is no sign that the estimate is too high.
    pub(in super::super) fn advance(&mut self) {
        if self.slots[1] > Rate::ZERO {
            self.slots = [self.slots[1], Rate::ZERO];
        }
    }
}
