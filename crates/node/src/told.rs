//! The messages between a host and its driver about an end node that the sessions of several processes share.

use fairwave_schemes::node::tally::Standing;
use fairwave_units::{Duration, Rate};

use crate::options::SessionOptions;
use crate::session::SessionId;

/// The machine's assignment to a host, for a direction whose node is the machine's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldNode {
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
    /// The session's options as given to this host.
    pub options: SessionOptions,
    /// Max rate that its application wants to use or receive; `None` if unlimited.
    pub desired: Option<Rate>,
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

/// The machine node's grant for a session until the next tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldGrant {
    /// The session.
    pub session: SessionId,
    /// The rate that it may use; `None` if no node limits it.
    pub expected: Option<Rate>,
    /// The rate that grants approach; at a node with claims and grants the session's offer.
    pub target: Rate,
    /// Whether it used more than it was granted for so long that it is to be closed.
    pub exceeds: bool,
}

/// State of a node whose grants are assigned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub by: ToldNode,
    /// This host's own limit, which the sum of its grants does not exceed.
    pub bound: Rate,
}
