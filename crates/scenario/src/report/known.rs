//! The rates of sessions as their end nodes know them.

use crate::RateSamples;

/// The rates of a session as its two end nodes know them, in bit/s; NaN where there is none.
#[derive(Clone, Copy, Debug)]
pub struct KnownRates {
    /// What its source expects it to get.
    pub source_expected: f64,
    /// What its sink expects it to get, as known to the source.
    pub sink_expected: f64,
    /// What its source aims at: the lesser of both ends' targets.
    pub target: f64,
    /// What the last node rule on the way measured at its last tick.
    pub measured: f64,
}

impl KnownRates {
    /// Of a session whose scheme has no such rates.
    pub const NONE: Self =
        Self { source_expected: f64::NAN, sink_expected: f64::NAN, target: f64::NAN, measured: f64::NAN };
}

impl RateSamples {
    /// Adds what the ends of one session know at the end of a sample, behind the sessions before it.
    pub fn push_known(&mut self, known: &KnownRates) {
        self.source_expected_bps.push(known.source_expected);
        self.sink_expected_bps.push(known.sink_expected);
        self.target_bps.push(known.target);
        self.measured_bps.push(known.measured);
    }
}
