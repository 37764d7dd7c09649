//! What a machine's daemon assigns to a host's end node, and what the host reports to it.

use fairwave_schemes::Grant;
use fairwave_schemes::node::tally::Standing;
use fairwave_units::{Duration, Rate};

use crate::capacity::Capacity;
use crate::session::SessionId;
use crate::share::unlimited;
use fairwave_schemes::Terms;

/// The machine's assignment to a host, for a direction whose capacity the machine divides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// Capacity for all sessions of the machine together, if known.
    pub capacity: Option<Rate>,
    /// Competing weight of a session that opens here: it shares as if this many sessions of weight one existed.
    pub weights: f64,
    /// Start rate for all sessions that open here together, next to those that the machine has granted something since.
    pub start: Rate,
    /// The control interval.
    pub interval: Duration,
}

/// Usage and requests of a session of an assigned node in the interval that ends about now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looked {
    /// The session.
    pub session: SessionId,
    /// Its mean rate, no more than 1.25 times what it was granted lately.
    pub measured: Rate,
    /// The session's terms at this host, with the weight by which the machine gives the sessions of a group together
    /// what one session of weight 1 has: the machine knows no groups of sessions.
    pub terms: Terms,
    /// Its smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// At a sink: for how long its packets waited at least.
    pub waiting: Option<Duration>,
    /// Current grant: at first its start rate.
    pub expected: Rate,
    /// Its reservation, at a node with claims and grants.
    pub standing: Option<Standing>,
    /// It has ended here, and data of it may still arrive: it is reported until none can.
    pub is_over: bool,
}

/// The machine's grant for a session until the next tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AssignedGrant {
    /// The session.
    pub session: SessionId,
    /// Its rate, and where that leads: at a node with claims and grants the session's offer. `None` if no node limits
    /// it.
    pub grant: Option<Grant>,
    /// Whether it used more than it was granted for so long that it is to be closed.
    pub exceeds: bool,
}

/// The state of an end node whose grants are assigned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assigned {
    pub(crate) by: Assignment,
    /// This host's own limit, which the sum of its grants does not exceed.
    pub(crate) bound: Rate,
}

impl Assigned {
    /// This host's own limit, if it is less than the machine's capacity, which the machine divides.
    pub(crate) fn own_limit(&self, capacity: &Capacity) -> Option<Rate> {
        let most = capacity.after_overflow(self.bound);
        Some(most).filter(|most| *most < self.by.capacity.unwrap_or(unlimited()))
    }
}
