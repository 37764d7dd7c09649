//! The schedule of ticks: a calendar queue (Brown 1988) with exactly one entry per ticker.

use crate::plan::NONE;

/// Ticks that a day of the calendar holds on average.
const PER_DAY: f64 = 8.0;

/// Maximum days of a year; tickers due later than within a year are visited once a year.
const MAX_DAYS: usize = 1 << 17;

/// The next tick of each ticker, ordered by time and then by ticker.
pub(crate) struct Calendar {
    /// Length of a day.
    width: u64,
    /// Days of a year (a power of two) minus one.
    mask: u64,
    /// The first ticker of each day of the year.
    days: Vec<u32>,
    /// The ticker that follows each ticker on its day.
    following: Vec<u32>,
    /// The next tick of each ticker.
    times: Vec<u64>,
    /// Today, counted from the start of the run.
    today: u64,
    /// The rest of today, the latest first.
    rest: Vec<(u64, u32)>,
    /// Entries on later days.
    later: usize,
    /// Whether today was requested.
    is_seen: bool,
}

impl Calendar {
    /// An empty calendar for tickers with approximately these intervals.
    pub(crate) fn new(intervals: impl Iterator<Item = u64> + Clone) -> Self {
        let tickers = intervals.clone().count();
        let per_ns: f64 = intervals.clone().map(|interval| 1.0 / interval.max(1) as f64).sum();
        let width = if per_ns > 0.0 { (PER_DAY / per_ns).clamp(1.0, 1e15) as u64 } else { 1 };
        let longest = intervals.max().unwrap_or(1);
        let days = ((longest / width).saturating_add(2) as usize).clamp(16, MAX_DAYS).next_power_of_two();
        Self {
            width,
            mask: days as u64 - 1,
            days: vec![NONE; days],
            following: vec![NONE; tickers],
            times: vec![u64::MAX; tickers],
            today: 0,
            rest: Vec::new(),
            later: 0,
            is_seen: false,
        }
    }

    /// Schedules a ticker's next tick; it must have none yet, and the instant must not have passed.
    pub(crate) fn push(&mut self, ticker: u32, at: u64) {
        let day = at / self.width;
        self.times[ticker as usize] = at;
        if day <= self.today {
            // The latest is first, so that the next one is last.
            let place = self.rest.partition_point(|entry| *entry > (at, ticker));
            self.rest.insert(place, (at, ticker));
        } else {
            let first = &mut self.days[(day & self.mask) as usize];
            self.following[ticker as usize] = *first;
            *first = ticker;
            self.later += 1;
        }
    }

    /// The next tick.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<(u64, u32)> {
        if self.rest.is_empty() {
            self.turn();
        }
        self.rest.last().copied()
    }

    /// Takes out the next tick.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.rest.pop();
    }

    /// The tickers of a day that has just started, the latest first; empty on further calls on one day.
    #[inline]
    pub(crate) fn new_day(&mut self) -> &[(u64, u32)] {
        if std::mem::replace(&mut self.is_seen, true) { &[] } else { &self.rest }
    }

    /// Advances to the next day with a tick.
    fn turn(&mut self) {
        let mut idle_days = 0;
        self.is_seen = false;
        while self.rest.is_empty() && self.later > 0 {
            self.today += 1;
            idle_days += 1;
            if idle_days > self.mask {
                // No tick within a year: go to the day before the earliest.
                self.today = (self.earliest() / self.width).max(1) - 1;
                idle_days = 0;
                continue;
            }
            let slot = (self.today & self.mask) as usize;
            let mut ticker = std::mem::replace(&mut self.days[slot], NONE);
            while ticker != NONE {
                let following = self.following[ticker as usize];
                let at = self.times[ticker as usize];
                if at / self.width == self.today {
                    self.rest.push((at, ticker));
                    self.later -= 1;
                } else {
                    self.following[ticker as usize] = self.days[slot];
                    self.days[slot] = ticker;
                }
                ticker = following;
            }
            self.rest.sort_unstable_by(|one, other| other.cmp(one));
        }
    }

    fn earliest(&self) -> u64 {
        let mut earliest = u64::MAX;
        for first in &self.days {
            let mut ticker = *first;
            while ticker != NONE {
                earliest = earliest.min(self.times[ticker as usize]);
                ticker = self.following[ticker as usize];
            }
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn calendar__is_a_sorted_set(
            intervals in prop::collection::vec(prop_oneof![1_u64..50, 1_000..2_000_u64, 1_000_000..1_000_001_u64], 1..40),
            steps in prop::collection::vec(0_u64..3, 300),
        ) {
            let mut calendar = Calendar::new(intervals.iter().copied());
            let mut oracle = BTreeSet::new();
            for (ticker, interval) in intervals.iter().enumerate() {
                calendar.push(ticker as u32, interval / 2);
                oracle.insert((interval / 2, ticker as u32));
            }
            for step in steps {
                let next = calendar.peek();
                prop_assert_eq!(next, oracle.first().copied());
                let Some((at, ticker)) = next else { break };
                calendar.pop();
                oracle.remove(&(at, ticker));
                // Some tick again immediately, some after their interval, some much later, and one never again.
                let again = at + [0, 1, 10_000][step as usize] * intervals[ticker as usize];
                if at < 50_000_000 {
                    calendar.push(ticker, again);
                    oracle.insert((again, ticker));
                }
            }
        }
    }
}
