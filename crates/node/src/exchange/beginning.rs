//! How a session starts where claims and grants are exchanged.

use fairwave_units::{Rate, Time};

/// The handshake's result for one direction of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beginning {
    /// The other end knows no claims and grants.
    Plain,
    /// Nothing ahead; or, at a sink, what it has promised itself.
    Bare,
    /// At a source: its sink promised a rate, by its answer to what went at `since` for the first time.
    Promised {
        /// The rate.
        rate: Rate,
        /// When the request for the session was sent first.
        since: Time,
    },
    /// At a sink: its source's claim; `parts` sessions, including this one, come at about the same time.
    Claimed {
        /// The claim.
        claim: Rate,
        /// How many sessions share what is spare.
        parts: usize,
    },
}
