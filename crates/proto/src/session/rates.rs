//! An end's knowledge of a session's rates.

use fairwave_schemes::Grant;
use fairwave_units::Rate;

/// The rates of a session at one of its ends, as that end knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionRates {
    /// Rate that its end node measured in the last control interval.
    pub measured: Rate,
    /// Grant of its end node: the source's node at the source, the sink's node at the sink.
    pub expected: Rate,
    /// Rate to which the end node leads it.
    pub target: Rate,
    /// At the source: the sink's grant, as far as heard.
    pub sink_expected: Option<Rate>,
}

impl SessionRates {
    pub(crate) fn set_grant(&mut self, grant: Grant) {
        (self.expected, self.target) = (grant.expected, grant.target);
    }
}
