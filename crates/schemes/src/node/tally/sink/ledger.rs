//! The grants of a remote resource to one session, and the rate that may still arrive under them.

use fairwave_units::{Duration, Time};

use crate::node::tally::lease::Lease;
use crate::node::tally::message::MAX_NUMBER;
use crate::node::tally::options::TallyOptions;
use crate::node::tally::stamp::Stamp;

/// More pending grants than an honest source ever has: the oldest are merged, at the larger rate.
const MAX_ENTRIES: usize = 256;

/// The numbered grants of one session, starting with the last one that its source confirmed.
///
/// *Reserved* is the largest of them: arriving data were sent under one of them, whichever messages were lost. It falls
/// when the source confirms a later one.
///
/// A source that never confirms holds its reserved rate for two leases, and for four if cuts follow each other: by then
/// an honest one has received a later grant, or has stopped because it received none.
///
/// In equilibrium the ledger holds only the last grant, which is confirmed.
#[derive(Clone, Debug)]
pub(super) struct GrantLedger {
    granted_bps: f64,
    /// Earlier grants that may still be in force; `None`: none since the last control interval.
    under_way: Option<Box<UnderWay>>,
    last: u32,
    /// Whether the last grant is confirmed, and whether the source requested an answer.
    flags: u8,
    /// The lease of the last grant, and the longest of those that may be in force: in four bits each.
    leases: u8,
    /// The round-trip time in ms, rounded up, at most 65 s, from which the retransmission period follows.
    rtt_ms: u16,
}

/// Flag: the last grant is confirmed.
const CONFIRMED: u8 = 1;
/// Flag: the source requested an answer.
const OWES_ANSWER: u8 = 2;

/// Grants before the last one.
#[derive(Clone, Debug)]
struct UnderWay {
    /// Their rates, in the order of their numbers, which are consecutive and end just below the last one. Usually there
    /// is one, which needs no allocation.
    first_bps: Option<f64>,
    more_bps: Vec<f64>,
    /// The largest of them.
    most_bps: f64,
    /// The maximum reserved since the last control interval.
    recent_bps: f64,
    /// A number, and the time when it was the last one: older grants expire two leases later.
    mark: (u32, Stamp),
}

impl GrantLedger {
    pub(super) fn new() -> Self {
        Self { granted_bps: 0.0, under_way: None, last: 0, flags: CONFIRMED, leases: 0, rtt_ms: 0 }
    }

    /// Whether the source requested an answer.
    pub(super) fn owes_answer(&self) -> bool {
        self.flags & OWES_ANSWER != 0
    }

    pub(super) fn set_owes_answer(&mut self, owes: bool) {
        self.set(OWES_ANSWER, owes);
    }

    fn set(&mut self, flag: u8, is_set: bool) {
        self.flags = self.flags & !flag | if is_set { flag } else { 0 };
    }

    /// The lease of the last grant.
    pub(super) fn sent_lease(&self) -> Lease {
        Lease::doubled(self.leases & 0xf)
    }

    /// The longest lease that may be in force.
    pub(super) fn lease(&self) -> Lease {
        Lease::doubled(self.leases >> 4)
    }

    /// The lease of the next grant, if the node wants lease `wanted`: one step further than the last, once that is
    /// confirmed.
    pub(super) fn next_lease(&self, wanted: Lease) -> Lease {
        if self.is_confirmed() { self.sent_lease().towards(wanted) } else { self.sent_lease() }
    }

    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt_ms = u16::try_from(rtt.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
    }

    /// Retransmission period of the last grant; `None` if it is confirmed.
    pub(super) fn retry(&self, options: &TallyOptions) -> Option<Duration> {
        (!self.is_confirmed()).then(|| options.retry(Duration::from_millis(u64::from(self.rtt_ms))))
    }

    /// The grant that was last sent.
    pub(super) fn granted_bps(&self) -> f64 {
        self.granted_bps
    }

    /// The maximum rate that may still arrive.
    pub(super) fn reserved_bps(&self) -> f64 {
        self.under_way.as_ref().map_or(self.granted_bps, |older| older.most_bps.max(self.granted_bps))
    }

    /// The maximum reserved at any moment since the last control interval.
    pub(super) fn recent_bps(&self) -> f64 {
        self.under_way.as_ref().map_or(self.granted_bps, |older| older.recent_bps.max(self.granted_bps))
    }

    /// The smallest rate that may be in force.
    pub(super) fn least_bps(&self) -> f64 {
        let older = self.under_way.iter().flat_map(|older| older.rates());
        older.fold(self.granted_bps, f64::min)
    }

    /// Number of the last grant.
    pub(super) fn last(&self) -> u64 {
        u64::from(self.last)
    }

    /// Whether the source confirmed the last grant.
    pub(super) fn is_confirmed(&self) -> bool {
        self.flags & CONFIRMED != 0
    }

    /// Adds a grant with a lease, and returns its number. At the maximum number, which no honest end reaches, the rate
    /// is zero.
    pub(super) fn push(&mut self, now: Time, bps: f64, lease: Lease) -> u64 {
        if self.last() >= MAX_NUMBER {
            return self.last();
        }
        let (before_bps, number) = (self.granted_bps, self.last + 1);
        let reserved_bps = self.reserved_bps();
        if self.last > 0 {
            let older = self.under_way.get_or_insert_with(|| Box::new(UnderWay::new(now, number)));
            older.push(before_bps, reserved_bps.max(bps));
        }
        (self.granted_bps, self.last) = (bps, number);
        self.set(CONFIRMED, false);
        self.leases = self.lease().max(lease).doublings() << 4 | lease.doublings();
        self.last()
    }

    /// The source reports that this number is in force: older grants are over. A number that was never given confirms
    /// nothing.
    pub(super) fn confirm(&mut self, number: u64) {
        if number <= self.last() {
            self.drop_below(number as u32);
            if number == self.last() {
                self.set(CONFIRMED, true);
                self.leases = self.leases & 0xf | self.leases << 4;
            }
        }
    }

    /// Takes over the grant in force at a source that knew this node before its restart.
    pub(super) fn adopt(&mut self, number: u64, bps: f64) {
        self.last = number.saturating_add(1000).min(MAX_NUMBER) as u32;
        (self.granted_bps, self.under_way) = (bps, None);
        self.set(CONFIRMED, false);
    }

    /// Nothing was heard of the session for two leases, so no more data can arrive. The numbers continue.
    pub(super) fn free(&mut self) {
        (self.granted_bps, self.under_way) = (0.0, None);
    }

    /// Drops grants that two leases have ended. Calling it often is harmless.
    pub(super) fn expire(&mut self, now: Time, options: &TallyOptions) {
        let two_leases = self.lease().twice(options);
        let Some(older) = &mut self.under_way else { return };
        let (number, since) = older.mark;
        if since.age(now) >= two_leases {
            older.mark = (self.last, Stamp::of(now));
            self.drop_below(number);
        }
    }

    /// Ends a control interval: earlier reserved rates do not count any more.
    pub(super) fn end_interval(&mut self) {
        let reserved_bps = self.reserved_bps();
        if let Some(older) = &mut self.under_way {
            older.recent_bps = reserved_bps;
            if older.first_bps.is_none() {
                self.under_way = None;
            }
        }
    }

    fn drop_below(&mut self, number: u32) {
        let last = self.last;
        if let Some(older) = &mut self.under_way {
            older.keep_last(last.saturating_sub(number) as usize);
        }
    }
}

impl UnderWay {
    /// The state before the grant with this number.
    fn new(now: Time, number: u32) -> Self {
        let mark = (number, Stamp::of(now));
        Self { first_bps: None, more_bps: Vec::new(), most_bps: 0.0, recent_bps: 0.0, mark }
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        self.first_bps.into_iter().chain(self.more_bps.iter().copied())
    }

    fn push(&mut self, bps: f64, reserved_bps: f64) {
        match self.first_bps {
            None => self.first_bps = Some(bps),
            Some(_) => self.more_bps.push(bps),
        }
        // The last grant counts as well, and so does the first.
        if self.more_bps.len() + 2 > MAX_ENTRIES {
            let next_bps = self.more_bps.remove(0);
            self.first_bps = self.first_bps.map(|oldest| oldest.max(next_bps));
        }
        self.most_bps = self.most_bps.max(bps);
        self.recent_bps = self.recent_bps.max(reserved_bps);
    }

    fn keep_last(&mut self, count: usize) {
        let there = self.rates().count();
        let over = there.saturating_sub(count);
        if over > 0 {
            self.first_bps = (over < there).then(|| self.more_bps[over - 1]);
            self.more_bps.drain(..over.min(self.more_bps.len()));
            self.most_bps = self.rates().fold(0.0, f64::max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short() -> Lease {
        Lease::default()
    }

    #[test]
    fn reserved_bps__is_the_largest_from_the_confirmed_one_on() {
        let mut ledger = GrantLedger::new();
        for (bps, number) in [(50.0, 1), (90.0, 2), (20.0, 3), (40.0, 4)] {
            assert_eq!(ledger.push(Time::ZERO, bps, short()), number);
        }
        assert_eq!((ledger.reserved_bps(), ledger.least_bps()), (90.0, 20.0));
        ledger.confirm(3);
        assert_eq!((ledger.reserved_bps(), ledger.least_bps()), (40.0, 20.0));
        // Late and unknown confirmations change nothing.
        ledger.confirm(1);
        ledger.confirm(7);
        assert_eq!((ledger.reserved_bps(), ledger.is_confirmed()), (40.0, false));
        ledger.confirm(4);
        assert_eq!((ledger.least_bps(), ledger.is_confirmed()), (40.0, true));
    }

    #[test]
    fn free__keeps_no_old_grant() {
        let mut ledger = GrantLedger::new();
        ledger.push(Time::ZERO, 80.0, short());
        ledger.push(Time::ZERO, 30.0, short());
        ledger.free();
        assert_eq!((ledger.reserved_bps(), ledger.granted_bps()), (0.0, 0.0));
        // The source received the second grant before its lease expired: that confirms it, and restores nothing.
        ledger.confirm(2);
        assert_eq!(ledger.reserved_bps(), 0.0);
        assert_eq!(ledger.push(Time::ZERO, 10.0, short()), 3);
    }

    #[test]
    fn expire__unconfirmed_grants_end_after_four_leases() {
        let (options, second) = (TallyOptions::default(), Time::from_secs);
        let mut ledger = GrantLedger::new();
        ledger.push(Time::ZERO, 100.0, short());
        ledger.push(Time::ZERO, 50.0, short());
        // The mark is the second grant's number: 8 s later, two leases, older grants are over.
        ledger.expire(second(7), &options);
        assert_eq!(ledger.reserved_bps(), 100.0);
        ledger.push(second(7), 20.0, short());
        // Grants in between are older than the next mark, which is taken at 8 s.
        for (now, reserved) in [(8, 50.0), (15, 50.0), (16, 20.0)] {
            ledger.expire(second(now), &options);
            assert_eq!(ledger.reserved_bps(), reserved, "at {now} s");
        }
        assert_eq!(Lease::default().twice(&options), Duration::from_secs(8));
    }

    #[test]
    fn push__keeps_a_bounded_list_and_all_that_is_reserved() {
        let mut ledger = GrantLedger::new();
        ledger.push(Time::ZERO, 100.0, short());
        for step in 0..10_000 {
            ledger.push(Time::ZERO, f64::from(step % 7), short());
        }
        let older = ledger.under_way.as_ref().map_or(0, |older| older.rates().count());
        assert_eq!((older + 1, ledger.reserved_bps()), (MAX_ENTRIES, 100.0));
    }

    #[test]
    fn adopt__numbers_continue_above_the_grant_in_force() {
        let mut ledger = GrantLedger::new();
        ledger.adopt(17, 30.0);
        assert_eq!(
            (ledger.reserved_bps(), ledger.granted_bps(), ledger.push(Time::ZERO, 10.0, short())),
            (30.0, 30.0, 1018)
        );
        ledger.confirm(1018);
        assert_eq!(ledger.reserved_bps(), 10.0);
    }

    #[test]
    fn recent_bps__is_the_interval_maximum_and_frees_memory() {
        let mut ledger = GrantLedger::new();
        ledger.push(Time::ZERO, 80.0, short());
        ledger.push(Time::ZERO, 30.0, short());
        ledger.confirm(2);
        assert_eq!((ledger.reserved_bps(), ledger.recent_bps()), (30.0, 80.0));
        ledger.end_interval();
        assert_eq!((ledger.recent_bps(), ledger.under_way.is_none()), (30.0, true));
    }

    /// A number that is larger than any that an honest end reaches.
    #[test]
    fn push__at_the_maximum_number_grants_nothing() {
        let mut ledger = GrantLedger::new();
        ledger.adopt(u64::MAX, 30.0);
        assert_eq!(ledger.push(Time::ZERO, 90.0, short()), MAX_NUMBER);
        assert_eq!((ledger.granted_bps(), ledger.reserved_bps()), (30.0, 30.0));
    }

    /// The longest of the leases that may be in force counts, until the last one is confirmed; and none is more than
    /// twice its predecessor.
    #[test]
    fn lease__is_the_longest_that_may_be_in_force() {
        let mut ledger = GrantLedger::new();
        let long = Lease::doubled(4);
        let mut leases = Vec::new();
        for number in 1..=4_u64 {
            let lease = ledger.next_lease(long);
            ledger.push(Time::ZERO, 10.0, lease);
            // A second grant before the confirmation has the same lease.
            assert_eq!(ledger.next_lease(long), lease);
            leases.push(lease.doublings());
            ledger.confirm(number);
        }
        assert_eq!((leases, ledger.lease()), (vec![1, 2, 3, 4], long));
        let shorter = ledger.next_lease(Lease::default());
        ledger.push(Time::ZERO, 10.0, shorter);
        assert_eq!((ledger.sent_lease(), ledger.lease()), (Lease::doubled(3), long));
        // An older number does not confirm it.
        ledger.confirm(4);
        assert_eq!(ledger.lease(), long);
        ledger.confirm(5);
        assert_eq!((ledger.sent_lease(), ledger.lease()), (Lease::doubled(3), Lease::doubled(3)));
    }
}
