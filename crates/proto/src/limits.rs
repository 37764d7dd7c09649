//! What a session may send at, and which of the terms it is that holds it.

use fairwave_units::{Duration, Rate, Time};

/// The terms of a session's rate, whose least it is (Wu 2007, Eq. VI.4, and the path).
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// By [`RateTerm`].
    rates: [Rate; 4],
    /// How long each held, in the last whole span and in this one.
    before: [u64; 4],
    now: [u64; 4],
    from: Time,
    at: Time,
}

/// A term of a session's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateTerm {
    /// What the source's end node grants.
    Source,
    /// What the sink's end node grants, as far as heard.
    Sink,
    /// What the application desires.
    Demand,
    /// What the path takes.
    Path,
}

const ALL: [RateTerm; 4] = [RateTerm::Source, RateTerm::Sink, RateTerm::Demand, RateTerm::Path];
const SPAN: Duration = Duration::from_millis(500);

impl Limits {
    /// Nothing is granted yet, and nothing else limits.
    pub(crate) fn new(now: Time) -> Self {
        let none = Rate::nearest_bps(f64::MAX);
        Self { rates: [Rate::ZERO, Rate::ZERO, none, none], before: [0; 4], now: [0; 4], from: now, at: now }
    }

    pub(crate) fn set(&mut self, now: Time, limit: RateTerm, rate: Rate) {
        self.count(now);
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

    /// The term that was the least for most of the last second or half of one.
    pub(crate) fn limited_by(&mut self, now: Time) -> RateTerm {
        self.count(now);
        let held = |limit: RateTerm| self.before[limit as usize] + self.now[limit as usize];
        ALL.into_iter().reduce(|most, limit| if held(limit) > held(most) { limit } else { most }).unwrap_or(ALL[0])
    }

    fn count(&mut self, now: Time) {
        self.now[self.binding() as usize] += now.since(self.at).as_nanos();
        self.at = self.at.max(now);
        if now.since(self.from) >= SPAN {
            (self.before, self.now, self.from) = (self.now, [0; 4], now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_by__is_what_held_for_most_of_the_last_second() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut limits = Limits::new(Time::ZERO);
        limits.set(at(0), RateTerm::Source, Rate::mbps(100.0));
        limits.set(at(0), RateTerm::Sink, Rate::mbps(50.0));
        assert_eq!((limits.rate(), limits.binding()), (Rate::mbps(50.0), RateTerm::Sink));
        limits.set(at(300), RateTerm::Demand, Rate::mbps(20.0));
        assert_eq!(limits.limited_by(at(500)), RateTerm::Sink);
        assert_eq!(limits.limited_by(at(700)), RateTerm::Demand);
        limits.set(at(710), RateTerm::Demand, Rate::mbps(70.0));
        assert_eq!(limits.limited_by(at(999)), RateTerm::Sink);
        assert_eq!(limits.limited_by(at(2000)), RateTerm::Sink);
    }
}
