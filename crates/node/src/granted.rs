//! Recent grants of a session.

use std::collections::VecDeque;

use fairwave_units::{Duration, Rate, Time};

/// The grants of a session that a packet seen now may go back to, as far as the largest of them needs it: a grant that
/// a later one exceeds is forgotten.
///
/// Of more than `MAX_GRANTS` the oldest ones become one, with the larger rate and the later end.
#[derive(Clone, Debug)]
pub struct Granted {
    /// Rates fall; the last one is in force.
    grants: VecDeque<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    rate: Rate,
    /// When the next one took its place.
    until: Time,
}

/// Max number of grants that are remembered: 1 KiB a session, and at 20 ms an interval those of more than a second.
const MAX_GRANTS: usize = 64;

impl Granted {
    /// A session that starts with a rate.
    pub fn new(start: Rate) -> Self {
        Self { grants: VecDeque::from([Span { rate: start, until: Time::MAX }]) }
    }

    /// The grant in force.
    pub fn current(&self) -> Rate {
        self.grants.back().map_or(Rate::ZERO, |grant| grant.rate)
    }

    /// A new grant, in force from now on.
    pub fn grant(&mut self, now: Time, rate: Rate) {
        if let Some(last) = self.grants.back_mut() {
            last.until = now;
        }
        while self.grants.back().is_some_and(|last| last.rate <= rate) {
            self.grants.pop_back();
        }
        self.grants.push_back(Span { rate, until: Time::MAX });
        if self.grants.len() > MAX_GRANTS
            && let Some(second) = self.grants.remove(1)
            && let Some(first) = self.grants.front_mut()
        {
            first.until = second.until;
        }
    }

    /// The largest grant in force within `span` before now. Older grants are dropped.
    pub fn largest(&mut self, now: Time, span: Duration) -> Rate {
        while self.grants.front().is_some_and(|grant| now.since(grant.until) > span) {
            self.grants.pop_front();
        }
        self.grants.front().map_or(Rate::ZERO, |grant| grant.rate)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn largest__is_that_of_the_time_before() {
        let mut granted = Granted::new(Rate::mbps(10.0));
        granted.grant(ms(10), Rate::mbps(4.0));
        granted.grant(ms(20), Rate::mbps(6.0));
        let span = Duration::from_millis(30);
        let mut largest = |at| granted.largest(ms(at), span).as_mbps();
        // 10 Mb/s were in force until 10 ms.
        assert_eq!([largest(40), largest(41), largest(9000)], [10.0, 6.0, 6.0]);
        assert_eq!(granted.current(), Rate::mbps(6.0));
    }

    #[test]
    fn grant__remembers_no_more_than_its_bound() {
        let mut granted = Granted::new(Rate::mbps(1000.0));
        for at in 1..200 {
            granted.grant(ms(at), Rate::mbps(1000.0 - at as f64));
        }
        assert_eq!(granted.grants.len(), MAX_GRANTS);
        // 801 Mb/s is in force, and 63 grants before it; the oldest one has the first rate, and ends when 864 Mb/s did.
        assert_eq!(granted.largest(ms(137), Duration::ZERO), Rate::mbps(1000.0));
        assert_eq!(granted.largest(ms(138), Duration::ZERO), Rate::mbps(863.0));
    }

    proptest! {
        /// Against a list of all grants.
        #[test]
        fn largest__of_all(steps in proptest::collection::vec((0_u64..20, 0_u32..8, 0_u64..60), 1..60)) {
            let mut granted = Granted::new(Rate::ZERO);
            let (mut all, mut now) = (vec![(0, Rate::ZERO)], 0);
            for (wait, rate, span) in steps {
                now += wait;
                let rate = Rate::mbps(f64::from(rate));
                let from = now.saturating_sub(span);
                let ends = all.iter().skip(1).map(|&(start, _)| start).chain([u64::MAX]);
                let expected = all.iter().zip(ends).filter(|(_, end)| *end >= from).map(|((_, rate), _)| *rate);
                let expected = expected.fold(Rate::ZERO, Rate::max);
                prop_assert_eq!(granted.clone().largest(ms(now), Duration::from_millis(span)), expected);
                granted.grant(ms(now), rate);
                all.push((now, rate));
                prop_assert_eq!(granted.current(), rate);
            }
        }
    }
}
