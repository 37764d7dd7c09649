//! Reports of a half about a session whose capacity is divided elsewhere, and the resulting grant.

use fairwave_units::Rate;

/// State of a session at a node that several processes share: its process reports it at each look, so that the
/// allocator ([`SharedNode`](super::SharedNode)) need not know its messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// At a sink its source's claim, as far as it is trusted; at a source its demand, at most its sinks' offers. `None`
    /// if unlimited.
    pub claim: Option<Rate>,
    /// Whether it is limited by its own demand.
    pub is_application_limited: bool,
    /// At a source: its smallest grant in force, and its demand if that is known. `None` at a sink, and if unlimited.
    pub limit: Option<Rate>,
    /// The grant that was last sent; at a source its cap.
    pub granted: Rate,
    /// The maximum rate that may still arrive, including the excess over its grants; at a source its cap.
    pub reserved: Rate,
    /// At a sink: its source is silent. It would neither receive a cut nor confirm a raise.
    pub is_silent: bool,
    /// Either end runs plain GTP: its measured rate counts as its claim, and its grants exceed that by GTP's steps.
    pub is_plain: bool,
}
