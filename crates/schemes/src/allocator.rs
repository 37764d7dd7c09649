//! The interface of a node rule.

use fairwave_units::{Duration, Rate};

/// What one end node runs once per control interval, for its sending or for its receiving capacity: measured rates
/// in, expected rates out (Wu 2007, Eq. VI.1).
///
/// The same object serves a simulated node and a real one. A rule may keep state between intervals (a virtual queue,
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

    /// In the interval that ended, packets waited for so long at the least: a queue that the rule reckons from rates
    /// alone is no longer than that. A driver that can see it says so before it allocates; a rule without such a
    /// queue takes no notice.
    fn see_queue(&mut self, _waiting: Duration) {}

    /// What the sessions of a group are to have together; none is the usual. A rule that knows no groups takes no
    /// notice.
    fn set_group(&mut self, _group: u32, _terms: Option<GroupTerms>) {}

    /// What traffic that no grant holds uses of the same capacity, and what it is to have; none where the capacity is
    /// the sessions' own. A driver says so before it allocates; a rule that knows no groups takes no notice.
    fn see_other(&mut self, _other: Option<Others>) {}

    /// Whether it remembers nothing between calls but scratch space, so that one object may serve many nodes.
    fn is_stateless(&self) -> bool {
        false
    }
}

/// The control interval that just ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// What the rule may allocate.
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
    /// The desired rate, where the session declared one. Only the ATM rules look at it.
    pub desired: Option<Rate>,
    /// Guaranteed rate.
    pub minimum: Rate,
    /// The rate that it is never granted more than, whatever is left; only GTP looks at it.
    pub maximum: Option<Rate>,
    /// Whose it is, where sessions of one owner share what the owner gets: only
    /// [`Groups`](crate::node::Groups) looks at it.
    pub group: u32,
    /// Share relative to the other sessions, above zero.
    pub weight: f64,
    /// Share of the gap to the target rate that is closed per interval, 0 < alpha < 1 (Wu 2007, Eq. VI.3).
    pub alpha: f64,
    /// Least step, as a share of alpha x target rate, 0 <= beta <= 1.
    pub beta: f64,
}

impl Row {
    /// A session of weight one without declared demand, minimum and maximum, in group 0.
    pub fn new(measured: Rate, alpha: f64, beta: f64) -> Self {
        Self { measured, desired: None, minimum: Rate::ZERO, maximum: None, group: 0, weight: 1.0, alpha, beta }
    }
}

/// What an owner of sessions is to have, where sessions of one owner share what the owner gets ([`Row::group`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupTerms {
    /// Its share relative to other groups, above zero.
    pub weight: f64,
    /// What its sessions have together at the least, as far as they use it.
    pub minimum: Rate,
    /// What they have together at the most.
    pub maximum: Option<Rate>,
}

impl Default for GroupTerms {
    fn default() -> Self {
        Self { weight: 1.0, minimum: Rate::ZERO, maximum: None }
    }
}

/// Traffic that shares a node's capacity and asks nobody (Wu 2007, VIII.1.B): it counts as one more group
/// ([`Row::group`]), whose grant is enforced by nobody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// Its share relative to groups, above zero.
    pub weight: f64,
    /// What it used in the interval that ended, as [`OtherMeter`](crate::node::OtherMeter) measures it.
    pub measured: Rate,
}

/// What a node grants one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grant {
    /// The rate that the session may send at until the next interval.
    pub expected: Rate,
    /// The rate that the node steers the session towards: the fair share of what was left when it was the session's
    /// turn (x_f in Wu 2007, Eq. VI.3).
    pub target: Rate,
}
