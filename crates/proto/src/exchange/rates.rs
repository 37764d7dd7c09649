//! The rates of a session, as its end knows them.

use fairwave_units::Rate;

/// What an end knows of the rates of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExchangeRates {
    /// What the node grants: a source's own cap, or what a sink told last.
    pub(crate) expected: Rate,
    /// What the node could give the session if that took all it can.
    pub(crate) offer: Rate,
    /// The most that may be sent by what the node has said, as far as it knows: at a sink all that is reserved.
    pub(crate) allowed: Rate,
    /// At a source: the sink's grant in force.
    pub(crate) remote: Option<Rate>,
}
