//! Messages of a node, and what both of its halves know of a session.

use fairwave_schemes::node::tally::{ClaimMessage, GrantMessage, SessionTerms};

use crate::flow_table::Flow;

/// A message from a node to the other end of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// From a source.
    Claim(ClaimMessage),
    /// From a sink.
    Grant(GrantMessage),
}

/// A session's terms.
pub(super) fn terms(flow: &Flow) -> SessionTerms {
    SessionTerms { weight: flow.terms.weight, minimum: flow.terms.minimum, rtt: flow.rtt }
}
