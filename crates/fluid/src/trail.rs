//! The rates of one session over time.

use std::collections::VecDeque;

use crate::grain::{Grains, Volume, volume};

/// Rates, each with the instant from which it applies, and the volume until then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail(VecDeque<(u64, Grains, Volume)>);

impl Trail {
    /// Records a new rate. Instants must not decrease.
    pub(crate) fn push(&mut self, at: u64, rate: Grains) {
        let sum = self.by(at);
        match self.0.back_mut() {
            Some(last) if last.0 == at => last.1 = rate,
            _ => self.0.push_back((at, rate, sum)),
        }
    }

    /// Drops rates from before `from`, which will not be needed.
    pub(crate) fn forget_before(&mut self, from: u64) {
        while self.0.get(1).is_some_and(|(at, ..)| *at <= from) {
            self.0.pop_front();
        }
    }

    /// Volume until an instant; that of the first rate if the instant is before it.
    fn by(&self, at: u64) -> Volume {
        let later = self.0.partition_point(|(from, ..)| *from <= at);
        match later.checked_sub(1).and_then(|place| self.0.get(place)) {
            Some((from, rate, sum)) => sum + volume(*rate, at - from),
            None => self.0.front().map_or(0, |(.., sum)| *sum),
        }
    }

    /// Volume between two instants.
    pub(crate) fn volume(&self, from: u64, to: u64) -> Volume {
        self.by(to) - self.by(from)
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
        assert_eq!([trail.volume(0, 5), trail.volume(0, 10)], [0; 2]);
        trail.forget_before(22);
        assert_eq!(trail.volume(22, 25), 8 * 3);
        assert_eq!(trail.volume(0, 25), 8 * 5);
    }
}
