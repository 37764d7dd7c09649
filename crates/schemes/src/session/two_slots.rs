//! A maximum over rounds, kept in two slots as in Linux.

/// The maximum of the current slot of rounds and the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TwoSlots {
    slots: [u64; 2],
    began: u64,
}

impl TwoSlots {
    pub(crate) fn max(self) -> u64 {
        self.slots[0].max(self.slots[1])
    }

    /// Adds a value of this round. A slot has so many `rounds`; the one before counts only if `keeps`.
    pub(crate) fn on_sample(&mut self, round: u64, value: u64, rounds: u64, keeps: bool) {
        if round >= self.began.saturating_add(rounds) {
            (self.slots, self.began) = ([if keeps { self.slots[1] } else { 0 }, 0], round);
        }
        self.slots[1] = self.slots[1].max(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max__is_kept_for_five_to_ten_rounds() {
        let kept = |keeps| {
            let mut slots = TwoSlots::default();
            slots.on_sample(4, 10, 5, keeps);
            let step = |round| {
                slots.on_sample(round, 1, 5, keeps);
                slots.max()
            };
            (5..=12).map(step).collect::<Vec<_>>()
        };
        assert_eq!(kept(true), [10, 10, 10, 10, 10, 1, 1, 1]);
        assert_eq!(kept(false), [1; 8]);
    }
}
