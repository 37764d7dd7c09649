//! A process whose daemon is gone.

use fairwave_units::{Rate, Time};

/// Max rate of a process that has lost the machine that assigned its grants: the sum of the last ones, and a tenth less
/// each minute. So all orphans together have at most one capacity, whichever of them end.
///
/// A process that starts in that time has no such sum: only its path's rate bounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orphan {
    since: Time,
    sum: Rate,
}

/// The share of it left after a minute: processes that start without a daemon find room after some minutes.
const LEFT_A_MINUTE: f64 = 0.9;

impl Orphan {
    /// The daemon was last heard at `since`; grants of one direction and card were `sum` together then.
    pub fn new(since: Time, sum: Rate) -> Self {
        Self { since, sum }
    }

    /// The capacity of the process's own node now.
    pub fn capacity(&self, now: Time) -> Rate {
        self.sum * libm::pow(LEFT_A_MINUTE, now.since(self.since).as_secs_f64() / 60.0)
    }
}
