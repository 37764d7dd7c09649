//! The rates of one session over time.

use std::collections::VecDeque;

use crate::grain::{Grains, Volume, volume};

/// Rates, each with the instant from which it applies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail(VecDeque<(u64, Grains)>);

impl Trail {
    /// Records a new rate.
    pub(crate) fn push(&mut self, at: u64, rate: Grains) {
        self.0.push_back((at, rate));
    }

    /// Drops rates from before `from`, which will not be needed.
    pub(crate) fn forget_before(&mut self, from: u64) {
        while self.0.get(1).is_some_and(|(at, _)| *at <= from) {
            self.0.pop_front();
        }
    }

    /// Volume between two instants.
    pub(crate) fn volume(&self, from: u64, to: u64) -> Volume {
        let ends = self.0.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
        self.0
            .iter()
            .zip(ends)
            .map(|((start, rate), end)| {
                let (start, end) = (*start.max(&from), end.min(to));
                if end > start { volume(*rate, end - start) } else { 0 }
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume__clips_to_the_span() {
        let mut trail = Trail::default();
        for (at, rate) in [(10, 5), (20, 7), (20, 8), (30, 0)] {
            trail.push(at, rate);
        }
        assert_eq!(trail.volume(0, 100), 5 * 10 + 8 * 10);
        assert_eq!(trail.volume(15, 25), 5 * 5 + 8 * 5);
        trail.forget_before(22);
        assert_eq!(trail.volume(22, 25), 8 * 3);
        assert_eq!(trail.volume(0, 25), 8 * 5);
    }
}
