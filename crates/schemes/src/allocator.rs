//! The interface of a node rule.

use fairwave_units::{Duration, Rate};
use thiserror::Error;

use crate::global::WEIGHTS;

/// The rule that an end node runs once per control interval, for its sending or for its receiving capacity: measured
/// rates in, expected rates out (Wu 2007, Eq. VI.1).
///
/// One implementation serves simulated nodes and real ones. A rule may keep state between intervals (a virtual queue,
/// scratch space), never a clock.
pub trait RateAllocator: Send {
    /// Allocates the capacity over the rows and writes one grant per row into `grants`, in the same order.
    ///
    /// Rows may come and go between calls. Calling it again at the same instant with the same rows gives the same
    /// grants, except that a rule with a virtual queue counts `elapsed` again.
    ///
    /// # Panics
    /// If `rows` and `grants` differ in length.
    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]);

    /// Reports the minimum queueing delay of packets in the interval that ended, an upper bound for a queue that the
    /// rule estimates from rates only. A driver that can observe it calls this before it allocates; a rule without such
    /// a queue ignores it.
    fn see_queue(&mut self, _waiting: Duration) {}

    /// Sets the terms of a group of sessions; `None` restores the default. A rule without groups ignores it.
    fn set_group(&mut self, _group: u32, _terms: Option<Terms>) {}

    /// Reports traffic outside the rule's control that uses the same capacity, and its terms; `None` if the sessions
    /// have the capacity to themselves. A driver calls this before it allocates; a rule without groups ignores it.
    fn see_other(&mut self, _other: Option<Others>) {}

    /// Whether the rule keeps only scratch space between calls, so that one object may serve many nodes.
    fn is_stateless(&self) -> bool {
        false
    }
}

/// The control interval that just ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Capacity to allocate.
    pub capacity: Rate,
    /// Time since the node's previous tick; zero at its first.
    pub elapsed: Duration,
}

/// One session in an end node's table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Mean rate over the interval that just ended: bytes sent (at a source) or offered (at a sink, in front of its
    /// queue).
    pub measured: Rate,
    /// Its terms.
    pub terms: Terms,
}

impl Row {
    /// A session of weight one in group 0, without declared demand, minimum or maximum.
    pub fn new(measured: Rate, alpha: f64, beta: f64) -> Self {
        Self { measured, terms: Terms { alpha, beta, ..Terms::default() } }
    }
}

/// Terms of a session at a node; or of a group, the sessions of one owner together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Weight relative to the other sessions or groups, above zero.
    pub weight: f64,
    /// Guaranteed rate; of a group as far as its sessions use it.
    pub minimum: Rate,
    /// Upper bound of the grants; of sessions only GTP uses it.
    pub maximum: Option<Rate>,
    /// The desired rate, if the session's application declared one. Of the rules only those of ATM use it.
    pub desired: Option<Rate>,
    /// Owner of the session; sessions of one owner share the owner's allocation. Zero: no owner. Only
    /// [`Groups`](crate::node::Groups) uses it.
    pub group: u32,
    /// Share of the gap to the target rate that is closed per interval, 0 < alpha < 1 (Wu 2007, Eq. VI.3).
    pub alpha: f64,
    /// Minimum step, as a share of alpha x target rate, 0 <= beta <= 1.
    pub beta: f64,
}

/// Terms that no rule can run with.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum TermsError {
    /// The weight is out of range.
    #[error("weight {0} must be from {least:e} to {most:e}", least = WEIGHTS.start(), most = WEIGHTS.end())]
    Weight(f64),
    /// Alpha would overshoot or stand still.
    #[error("alpha {0} must be above 0 and below 1")]
    Alpha(f64),
    /// Beta is out of its domain.
    #[error("beta {0} must be from 0 to 1")]
    Beta(f64),
}

impl Default for Terms {
    // Wu 2007, VII: alpha = 0.1, beta = 0.2.
    fn default() -> Self {
        let (minimum, maximum, desired) = (Rate::ZERO, None, None);
        Self { weight: 1.0, minimum, maximum, desired, group: 0, alpha: 0.1, beta: 0.2 }
    }
}

impl Terms {
    /// These weight, minimum and steps, with the desired rate, maximum and owner of `other`.
    #[must_use]
    pub fn with_bounds_of(&self, other: &Self) -> Self {
        Self { maximum: other.maximum, desired: other.desired, group: other.group, ..*self }
    }

    /// The smaller of the desired rate and the maximum.
    pub fn limit(&self) -> Option<Rate> {
        self.desired.into_iter().chain(self.maximum).reduce(Rate::min)
    }

    /// Whether a rule can run with them.
    pub fn check(&self) -> Result<(), TermsError> {
        let Self { weight, alpha, beta, .. } = *self;
        if !WEIGHTS.contains(&weight) {
            return Err(TermsError::Weight(weight));
        }
        if !(alpha > 0.0 && alpha < 1.0) {
            return Err(TermsError::Alpha(alpha));
        }
        if !(0.0..=1.0).contains(&beta) {
            return Err(TermsError::Beta(beta));
        }
        Ok(())
    }
}

/// Traffic that shares a node's capacity without asking for it (Wu 2007, VIII.1.B): it counts as one more group
/// ([`Terms::group`]), whose grant is not enforced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// Weight relative to groups, above zero.
    pub weight: f64,
    /// Its rate in the interval that ended, as [`OtherMeter`](crate::node::OtherMeter) measures it.
    pub measured: Rate,
}

/// A node's grant to one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grant {
    /// The rate at which the session may send until the next interval.
    pub expected: Rate,
    /// The rate towards which the node steers the session: the fair share of the remaining capacity when it was the
    /// session's turn (x_f in Wu 2007, Eq. VI.3).
    pub target: Rate,
}
