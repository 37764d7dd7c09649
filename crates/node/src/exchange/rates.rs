//! The rates of a session, as its end knows them.

use fairwave_units::Rate;

/// An end's knowledge of a session's rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeRates {
    /// The node's grant: a source's own cap, or the sink's last report.
    pub expected: Rate,
    /// Rate that the node could give the session if it took all that it can.
    pub offer: Rate,
    /// The most that may be sent by what the node has said, as far as it knows: at a sink all that is reserved.
    pub allowed: Rate,
    /// At a source: the sink's grant in force.
    pub remote: Option<Rate>,
}
