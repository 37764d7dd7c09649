//! What a host and its driver say to each other about an end node that the sessions of several processes share.

use fairwave_schemes::node::tally::Standing;
use fairwave_units::{Duration, Rate};

use crate::codec::SessionId;
use crate::options::SessionOptions;

/// What a host is told of a direction whose node is not its own, but the machine's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldNode {
    /// What all sessions of the machine may use together, if that is known.
    pub capacity: Option<Rate>,
    /// What a session that opens here shares it with: as if so many sessions of weight one were there.
    pub weights: f64,
    /// What sessions that open here may start with together, beside those that the machine has granted something since.
    pub start: Rate,
    /// The control interval.
    pub interval: Duration,
}

/// What a session of a told node did in the interval that ends about now, and asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looked {
    /// The session.
    pub session: SessionId,
    /// Its mean rate, no more than 1.25 times what it was granted lately.
    pub measured: Rate,
    /// What this host was told of it.
    pub options: SessionOptions,
    /// What its application wants to use, or takes, at most; none if all there is.
    pub desired: Option<Rate>,
    /// Its smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// At a sink: for how long its packets waited at least.
    pub waiting: Option<Duration>,
    /// What it is granted at present: at first what it started with.
    pub expected: Rate,
    /// Where it stands, at a node that shares by claims and grants.
    pub standing: Option<Standing>,
    /// It is over here, and something of it may still come: it is said until nothing can.
    pub is_over: bool,
}

/// What the machine's node grants a session until the next tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldGrant {
    /// The session.
    pub session: SessionId,
    /// What it may use; none where no node holds it.
    pub expected: Option<Rate>,
    /// Where that leads; at a node that shares by claims and grants what the session is offered.
    pub target: Rate,
    /// Whether it used more than it was granted for so long that it is to be closed.
    pub exceeds: bool,
}

/// What a node knows that is told its grants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) by: ToldNode,
    /// This host's own limit, which the sum of its grants does not exceed.
    pub(crate) bound: Rate,
}
