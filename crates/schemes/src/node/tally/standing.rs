//! What a half says of a session whose capacity is divided elsewhere, and what it is told.

use fairwave_units::Rate;

/// Where a session stands at a node that several processes share: what its process says of it at each look, so that
/// whoever divides the capacity ([`SharedNode`](super::SharedNode)) need not know its messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// At a sink what its source claims, as far as that is believed; at a source its demand, and no more than its sinks
    /// offer. `None` for no limit.
    pub claim: Option<Rate>,
    /// Whether its own demand is what limits it.
    pub is_application_limited: bool,
    /// At a source: its least grant in force, and its demand if that is known. `None` at a sink, and for no limit.
    pub limit: Option<Rate>,
    /// The grant that was told last; at a source its cap.
    pub granted: Rate,
    /// The most that may still come of it, with what comes beyond that; at a source its cap.
    pub reserved: Rate,
    /// At a sink: its source is not heard. A cut would not be heard either, and a raise not be confirmed.
    pub is_silent: bool,
    /// Its other end, or this one, runs plain GTP for it: what it is measured to use is taken for its claim, and it goes
    /// beyond that by GTP's steps.
    pub is_plain: bool,
}

/// What a half is told of a session until the next tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StandingGrant {
    /// The session.
    pub session: u64,
    /// The grant, or the cap.
    pub rate: Rate,
    /// What the node could give the session if that took all it can.
    pub offer: Rate,
}
