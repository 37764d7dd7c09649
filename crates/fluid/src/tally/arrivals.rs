//! Arrivals of one session at its sink.

use crate::grain::{Grains, Volume, volume};

/// Rates, each with the instant from which it applies, and the volume that had arrived until then.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals(Vec<(u64, Grains, Volume)>);

impl Arrivals {
    /// Records a new rate of arrivals. Instants must not decrease.
    pub(super) fn push(&mut self, at: u64, rate: Grains) {
        let sum = self.by(at);
        match self.0.last_mut() {
            Some(last) if last.0 == at => last.1 = rate,
            _ => self.0.push((at, rate, sum)),
        }
    }

    /// Volume that arrived until an instant.
    pub(super) fn by(&self, at: u64) -> Volume {
        let later = self.0.partition_point(|(from, ..)| *from <= at);
        let last = later.checked_sub(1).and_then(|place| self.0.get(place));
        last.map_or(0, |(from, rate, sum)| sum + volume(*rate, at - from))
    }

    /// Volume that arrived between two instants.
    pub(super) fn between(&self, from: u64, to: u64) -> Volume {
        self.by(to) - self.by(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between__clips_to_the_span() {
        let mut arrivals = Arrivals::default();
        for (at, rate) in [(10, 5), (20, 7), (20, 8), (30, 0)] {
            arrivals.push(at, rate);
        }
        assert_eq!(arrivals.by(5), 0);
        assert_eq!(arrivals.by(100), 5 * 10 + 8 * 10);
        assert_eq!(arrivals.between(15, 25), 5 * 5 + 8 * 5);
        assert_eq!(arrivals.between(0, 10), 0);
    }
}
