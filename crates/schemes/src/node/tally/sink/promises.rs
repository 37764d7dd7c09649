//! What newcomers were promised that were not heard yet.

use std::collections::VecDeque;

use fairwave_units::Time;

/// More newcomers than that at a time are promised nothing.
const MOST_NEWCOMERS: usize = 64;
/// The least share of the capacity that is promised to newcomers whose predecessors were never heard of.
const LEAST_TRUST: f64 = 1.0 / 64.0;

/// What newcomers were promised that have said nothing yet.
///
/// It comes out of what nobody holds and nobody wants, so that the sum of what is reserved stays within the budget. A
/// newcomer may never come: then its promise is idle until it is over. So all of them together have no more than a share
/// of the capacity, which is halved for each that never came, and doubled for each that did.
#[derive(Clone, Debug)]
pub(super) struct Promises {
    /// What nobody held and nobody wanted at the last tick, less what was promised since.
    spare_bps: f64,
    /// Who was promised how much, and until when.
    newcomers: VecDeque<Newcomer>,
    /// The share of the capacity.
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

    /// At a tick, when all that is reserved and wanted is known.
    pub(super) fn set_spare(&mut self, bps: f64) {
        self.spare_bps = bps.max(0.0);
    }

    /// The capacity fell by so much, or somebody holds it now.
    pub(super) fn take_off(&mut self, bps: f64) {
        self.spare_bps = (self.spare_bps - bps).max(0.0);
    }

    /// A session is gone that had so much reserved.
    pub(super) fn give_back(&mut self, session: u64, bps: f64) {
        self.newcomers.retain(|newcomer| newcomer.session != session);
        self.spare_bps += bps;
    }

    /// A session was heard: whether it is a newcomer that was promised something.
    pub(super) fn on_heard(&mut self, session: u64) -> bool {
        let Some(place) = self.newcomers.iter().position(|newcomer| newcomer.session == session) else { return false };
        self.newcomers.remove(place);
        self.trust = (self.trust * 2.0).min(1.0);
        true
    }

    /// When the first promise is over; `None` if there is none.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.newcomers.front().map(|newcomer| newcomer.until)
    }

    /// A newcomer that was never heard, if its promise is over.
    pub(super) fn pop_over(&mut self, now: Time) -> Option<u64> {
        self.newcomers.front().filter(|newcomer| newcomer.until <= now)?;
        let over = self.newcomers.pop_front()?;
        self.trust = (self.trust / 2.0).max(LEAST_TRUST);
        Some(over.session)
    }

    /// A newcomer is promised so much, out of what is spare.
    pub(super) fn push(&mut self, session: u64, bps: f64, until: Time) {
        self.newcomers.push_back(Newcomer { session, bps, until });
    }

    /// What nobody holds and nobody wants.
    pub(super) fn spare_bps(&self) -> f64 {
        self.spare_bps
    }

    /// What a newcomer may be promised of a capacity.
    pub(super) fn most_bps(&self, capacity_bps: f64) -> f64 {
        if self.newcomers.len() >= MOST_NEWCOMERS {
            return 0.0;
        }
        let promised: f64 = self.newcomers.iter().map(|newcomer| newcomer.bps).sum();
        self.spare_bps.min(self.trust * capacity_bps - promised).max(0.0)
    }
}
