//! The largest delivery rate of two probing cycles.

use fairwave_units::Rate;

/// A maximum over the probing cycle that runs and the one before (BBR s5.5.3, s5.5.6): two slots are all that takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bandwidth {
    slots: [Rate; 2],
}

impl Bandwidth {
    pub(super) fn new() -> Self {
        Self { slots: [Rate::ZERO; 2] }
    }

    /// The largest of both cycles; zero before the first sample.
    pub(super) fn max(&self) -> Rate {
        self.slots[0].max(self.slots[1])
    }

    /// BBR s5.5.5: a sample that something else limited counts only where it is larger than what is known.
    pub(super) fn on_sample(&mut self, rate: Rate, is_app_limited: bool) {
        if rate >= self.max() || !is_app_limited {
            self.slots[1] = self.slots[1].max(rate);
        }
    }

    /// A cycle is over. One without a sample leaves what is known as it is, as in Linux: nothing shows that it is too
    /// much.
    pub(super) fn advance(&mut self) {
        if self.slots[1] > Rate::ZERO {
            self.slots = [self.slots[1], Rate::ZERO];
        }
    }
}
