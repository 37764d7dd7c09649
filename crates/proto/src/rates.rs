//! What an end of a session knows of its rates.

use fairwave_units::Rate;

/// The rates of a session at one of its ends, as that end knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionRates {
    /// What its end node measured in the last control interval.
    pub measured: Rate,
    /// What its end node grants it: the source's own at the source, the sink's own at the sink.
    pub expected: Rate,
    /// Where the end node leads it.
    pub target: Rate,
    /// At the source: the sink's grant, as far as heard.
    pub sink_expected: Option<Rate>,
}
