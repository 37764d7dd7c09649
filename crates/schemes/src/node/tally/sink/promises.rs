//! Promises to newcomers that have not sent a message yet.

use std::collections::VecDeque;

use fairwave_units::Time;

/// Maximum newcomers with a promise at a time.
const MAX_NEWCOMERS: usize = 64;
/// Minimum share of the capacity that is promised to newcomers after earlier ones were never heard of.
const MIN_TRUST: f64 = 1.0 / 64.0;

/// Promises to newcomers that have not sent a message yet.
///
/// They come out of capacity that is neither reserved nor wanted, so that the sum of the reserved rates stays within
/// the budget. A newcomer may never send: then its promise is idle until it expires. All promises together are
/// therefore limited to a share of the capacity, which is halved for each newcomer that never sent, and doubled for
/// each that did.
#[derive(Clone, Debug)]
pub(super) struct Promises {
    /// Capacity that was neither reserved nor wanted at the last tick, minus later promises.
    spare_bps: f64,
    /// Promises and their ends.
    newcomers: VecDeque<Newcomer>,
    /// Share of the capacity that may be promised.
    trust: f64,
}

#[derive(Clone, Copy, Debug)]
struct Newcomer {
    session: u64,
    bps: f64,
    until: Time,
}

impl Promises {
    pub(super) fn new(spare_bps: f64) -> Self {
        Self { spare_bps, newcomers: VecDeque::new(), trust: 1.0 }
    }

    /// Updates the spare capacity at a tick, when the reserved and wanted rates are known.
    pub(super) fn set_spare(&mut self, bps: f64) {
        self.spare_bps = bps.max(0.0);
    }

    /// Subtracts capacity that was taken away or is now held.
    pub(super) fn take_off(&mut self, bps: f64) {
        self.spare_bps = (self.spare_bps - bps).max(0.0);
    }

    /// Returns the reserved rate of a session that has gone.
    pub(super) fn give_back(&mut self, session: u64, bps: f64) {
        self.newcomers.retain(|newcomer| newcomer.session != session);
        self.spare_bps += bps;
    }

    /// A session was heard: whether it is a newcomer with a promise.
    pub(super) fn on_heard(&mut self, session: u64) -> bool {
        let Some(place) = self.newcomers.iter().position(|newcomer| newcomer.session == session) else { return false };
        self.newcomers.remove(place);
        self.trust = (self.trust * 2.0).min(1.0);
        true
    }

    /// End of the first promise; `None` if there is none.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.newcomers.front().map(|newcomer| newcomer.until)
    }

    /// A newcomer that was never heard, if its promise has expired.
    pub(super) fn pop_over(&mut self, now: Time) -> Option<u64> {
        self.newcomers.front().filter(|newcomer| newcomer.until <= now)?;
        let over = self.newcomers.pop_front()?;
        self.trust = (self.trust / 2.0).max(MIN_TRUST);
        Some(over.session)
    }

    /// Promises a newcomer `bps` out of the spare capacity.
    pub(super) fn push(&mut self, session: u64, bps: f64, until: Time) {
        self.newcomers.push_back(Newcomer { session, bps, until });
    }

    /// Capacity that is neither reserved nor wanted.
    pub(super) fn spare_bps(&self) -> f64 {
        self.spare_bps
    }

    /// Maximum promise to a newcomer out of a capacity.
    pub(super) fn most_bps(&self, capacity_bps: f64) -> f64 {
        if self.newcomers.len() >= MAX_NEWCOMERS {
            return 0.0;
        }
        let promised: f64 = self.newcomers.iter().map(|newcomer| newcomer.bps).sum();
        self.spare_bps.min(self.trust * capacity_bps - promised).max(0.0)
    }
}
