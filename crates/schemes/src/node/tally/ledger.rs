//! What a remote resource granted one session, and what may still come of it.

use std::collections::VecDeque;

use fairwave_units::Time;

use super::options::TallyOptions;

/// More grants under way than an honest source ever has: the oldest are taken together, at the larger rate.
const MOST_ENTRIES: usize = 256;

/// The numbered grants of one session, from the last one on that its source confirmed.
///
/// *Reserved* is the largest of them: data that arrive were sent under one of them, whichever messages were lost. It
/// falls when the source confirms a later one.
///
/// A source that never confirms holds what was reserved for two leases and no longer: by then an honest one has heard
/// a later grant, or has stopped because it heard none.
#[derive(Clone, Debug)]
pub(super) struct GrantLedger {
    entries: VecDeque<(u64, f64)>,
    granted_bps: f64,
    reserved_bps: f64,
    last: u64,
    confirmed: u64,
    /// A number, and when it was the last one: what is older goes two leases later.
    mark: (u64, Time),
}

impl GrantLedger {
    pub(super) fn new(now: Time) -> Self {
        let (entries, mark) = (VecDeque::new(), (0, now));
        Self { entries, granted_bps: 0.0, reserved_bps: 0.0, last: 0, confirmed: 0, mark }
    }

    /// The grant that was last told.
    pub(super) fn granted_bps(&self) -> f64 {
        self.granted_bps
    }

    /// The most that may still come.
    pub(super) fn reserved_bps(&self) -> f64 {
        self.reserved_bps
    }

    /// The least that may be in force.
    pub(super) fn least_bps(&self) -> f64 {
        self.entries.iter().fold(self.granted_bps, |least, (_, bps)| least.min(*bps))
    }

    /// Number of the last grant.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether the source confirmed the last grant.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed >= self.last
    }

    /// A new grant; its number.
    pub(super) fn push(&mut self, bps: f64) -> u64 {
        self.last += 1;
        self.granted_bps = bps;
        self.entries.push_back((self.last, bps));
        if self.entries.len() > MOST_ENTRIES
            && let Some((_, oldest)) = self.entries.pop_front()
            && let Some((_, next)) = self.entries.front_mut()
        {
            *next = next.max(oldest);
        }
        self.reserved_bps = self.reserved_bps.max(bps);
        self.last
    }

    /// The source says that this number is in force: what is older is over. A number that was never given is no
    /// confirmation.
    pub(super) fn confirm(&mut self, number: u64) {
        if number > self.confirmed && number <= self.last {
            self.confirmed = number;
            self.drop_below(number);
        }
    }

    /// A source that has a number which this node never gave, as the node forgot: its numbers go on above it. Nothing
    /// is in force, as the lease ran out before the node could forget.
    pub(super) fn go_on_above(&mut self, number: u64) {
        self.adopt(number, 0.0);
    }

    /// What is in force at a source that knew this node before it was restarted.
    pub(super) fn adopt(&mut self, number: u64, bps: f64) {
        self.entries.clear();
        self.entries.push_back((number, bps));
        self.confirmed = number;
        self.last = number.saturating_add(1000).min(u64::MAX / 2);
        (self.granted_bps, self.reserved_bps) = (bps, bps);
    }

    /// The session was not heard of for two leases: nothing of it comes any more. The numbers go on.
    pub(super) fn free(&mut self) {
        self.entries.clear();
        (self.granted_bps, self.reserved_bps) = (0.0, 0.0);
    }

    /// Drops what two leases have ended. Calling it often is harmless.
    pub(super) fn expire(&mut self, now: Time, options: &TallyOptions) {
        let (number, since) = self.mark;
        if now.since(since) >= options.two_leases() {
            self.drop_below(number);
            self.mark = (self.last, now);
        }
    }

    fn drop_below(&mut self, number: u64) {
        while self.entries.front().is_some_and(|(first, _)| *first < number) {
            self.entries.pop_front();
        }
        self.reserved_bps = self.entries.iter().fold(self.granted_bps, |most, (_, bps)| most.max(*bps));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_units::Duration;

    #[test]
    fn reserved_bps__is_the_largest_from_the_confirmed_one_on() {
        let mut ledger = GrantLedger::new(Time::ZERO);
        for (bps, number) in [(50.0, 1), (90.0, 2), (20.0, 3), (40.0, 4)] {
            assert_eq!(ledger.push(bps), number);
        }
        assert_eq!((ledger.reserved_bps(), ledger.least_bps()), (90.0, 20.0));
        ledger.confirm(3);
        assert_eq!((ledger.reserved_bps(), ledger.least_bps()), (40.0, 20.0));
        // Late and unknown confirmations say nothing.
        ledger.confirm(1);
        ledger.confirm(7);
        assert_eq!((ledger.reserved_bps(), ledger.is_confirmed()), (40.0, false));
        ledger.confirm(4);
        assert_eq!((ledger.least_bps(), ledger.is_confirmed()), (40.0, true));
    }

    #[test]
    fn free__keeps_no_old_grant() {
        let mut ledger = GrantLedger::new(Time::ZERO);
        ledger.push(80.0);
        ledger.push(30.0);
        ledger.free();
        assert_eq!((ledger.reserved_bps(), ledger.granted_bps()), (0.0, 0.0));
        // The source heard the second grant before its lease ran out: that confirms, and brings nothing back.
        ledger.confirm(2);
        assert_eq!(ledger.reserved_bps(), 0.0);
        assert_eq!(ledger.push(10.0), 3);
    }

    #[test]
    fn expire__a_source_that_never_confirms_holds_it_no_longer_than_four_leases() {
        let (options, second) = (TallyOptions::default(), Time::from_secs);
        let mut ledger = GrantLedger::new(Time::ZERO);
        ledger.push(100.0);
        ledger.push(50.0);
        // The mark is taken at 8 s, two leases on; 8 s later what is older than it is over.
        for (now, reserved) in [(1, 100.0), (8, 100.0), (15, 100.0), (16, 50.0)] {
            ledger.expire(second(now), &options);
            assert_eq!(ledger.reserved_bps(), reserved, "at {now} s");
        }
        assert_eq!(options.two_leases(), Duration::from_secs(8));
    }

    #[test]
    fn push__keeps_a_bounded_list_and_all_that_is_reserved() {
        let mut ledger = GrantLedger::new(Time::ZERO);
        ledger.push(100.0);
        for step in 0..10_000 {
            ledger.push(f64::from(step % 7));
        }
        assert_eq!((ledger.entries.len(), ledger.reserved_bps()), (MOST_ENTRIES, 100.0));
    }

    #[test]
    fn adopt__numbers_go_on_above_what_is_in_force() {
        let mut ledger = GrantLedger::new(Time::ZERO);
        ledger.adopt(17, 30.0);
        assert_eq!((ledger.reserved_bps(), ledger.granted_bps(), ledger.push(10.0)), (30.0, 30.0, 1018));
        ledger.confirm(1018);
        assert_eq!(ledger.reserved_bps(), 10.0);
    }
}
