//! How a session starts where claims and grants are exchanged.

use fairwave_units::{Rate, Time};

/// What the handshake said of one direction of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Beginning {
    /// The other end knows no claims and grants.
    Plain,
    /// Nothing ahead; or, at a sink, what it has promised itself.
    Bare,
    /// At a source: its sink promised a rate, by its answer to what went at `since` for the first time.
    Promised { rate: Rate, since: Time },
    /// At a sink: what its source claims; so many sessions come at about the same time, with this one.
    Claimed { claim: Rate, parts: usize },
}
