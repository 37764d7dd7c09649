//! The limits on a session's rate, and which of them is in effect.

use fairwave_units::Rate;

/// The terms of a session's rate, whose least it is (Wu 2007, Eq. VI.4, and the path).
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// By [`RateTerm`].
    rates: [Rate; 4],
}

/// A term of a session's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateTerm {
    /// Grant of the source's end node.
    Source,
    /// Grant of the sink's end node, as last received.
    Sink,
    /// Rate that the application desires.
    Demand,
    /// Rate that the path takes.
    Path,
}

const ALL: [RateTerm; 4] = [RateTerm::Source, RateTerm::Sink, RateTerm::Demand, RateTerm::Path];

impl Limits {
    /// Nothing is granted yet, and nothing else limits.
    pub(crate) fn new() -> Self {
        let none = Rate::nearest_bps(f64::MAX);
        Self { rates: [Rate::ZERO, Rate::ZERO, none, none] }
    }

    pub(crate) fn set(&mut self, limit: RateTerm, rate: Rate) {
        self.rates[limit as usize] = rate;
    }

    pub(crate) fn get(&self, limit: RateTerm) -> Rate {
        self.rates[limit as usize]
    }

    /// The least of all terms.
    pub(crate) fn rate(&self) -> Rate {
        self.rates.into_iter().fold(self.rates[0], Rate::min)
    }

    /// The term that is the least now; of equal ones the first.
    pub(crate) fn binding(&self) -> RateTerm {
        ALL.into_iter()
            .reduce(|least, limit| if self.get(limit) < self.get(least) { limit } else { least })
            .unwrap_or(ALL[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding__is_the_least_term_and_of_equal_ones_the_first() {
        let mut limits = Limits::new();
        limits.set(RateTerm::Source, Rate::mbps(100.0));
        limits.set(RateTerm::Sink, Rate::mbps(50.0));
        assert_eq!((limits.rate(), limits.binding()), (Rate::mbps(50.0), RateTerm::Sink));
        limits.set(RateTerm::Demand, Rate::mbps(20.0));
        limits.set(RateTerm::Path, Rate::mbps(20.0));
        assert_eq!((limits.rate(), limits.binding()), (Rate::mbps(20.0), RateTerm::Demand));
    }
}
