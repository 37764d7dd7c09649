//! A process whose daemon is gone.

use fairwave_units::{Rate, Time};

/// What a process may use that was told its grants, and is told nothing any more: the sum of the last ones, and a tenth
/// less each minute. So all that are on their own have no more than one capacity together, whoever of them ends.
///
/// Who starts meanwhile has no such sum: its path's rate alone bounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orphan {
    since: Time,
    sum: Rate,
}

/// What is left of it after a minute.
const LEFT_A_MINUTE: f64 = 0.9;

impl Orphan {
    /// The daemon was last heard at `since`; grants of one direction and card were `sum` together then.
    pub fn new(since: Time, sum: Rate) -> Self {
        Self { since, sum }
    }

    /// The capacity of the process's own node now.
    pub fn capacity(&self, now: Time) -> Rate {
        self.sum * LEFT_A_MINUTE.powf(now.since(self.since).as_secs_f64() / 60.0)
    }
}
