//! How a session starts where claims and grants are exchanged.

use fairwave_units::{Rate, Time};

/// The handshake's result for one direction of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Beginning {
    /// The other end knows no claims and grants.
    Plain,
    /// Nothing ahead; or, at a sink, what it has promised itself.
    Bare,
    /// At a source: its sink promised a rate, by its answer to what went at `since` for the first time.
    Promised { rate: Rate, since: Time },
    /// At a sink: its source's claim; `parts` sessions, including this one, come at about the same time.
    Claimed { claim: Rate, parts: usize },
}
