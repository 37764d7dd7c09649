//! The rates of sessions that their end nodes know.

use crate::RateSamples;

/// The rates of a session that its two end nodes know, in bit/s; NaN if there is none.
#[derive(Clone, Copy, Debug)]
pub struct KnownRates {
    /// The source's expected rate.
    pub source_expected: f64,
    /// The sink's expected rate, as known to the source.
    pub sink_expected: f64,
    /// The source's target: the smaller of both ends' targets.
    pub target: f64,
    /// Measured rate of the last node rule on the path at its last tick.
    pub measured: f64,
}

impl KnownRates {
    /// For a session whose scheme has no such rates.
    pub const NONE: Self =
        Self { source_expected: f64::NAN, sink_expected: f64::NAN, target: f64::NAN, measured: f64::NAN };
}

impl RateSamples {
    /// Adds the rates known to the ends of one session at the end of a sample, after those of the sessions before it.
    pub fn push_known(&mut self, known: &KnownRates) {
        self.source_expected_bps.push(known.source_expected);
        self.sink_expected_bps.push(known.sink_expected);
        self.target_bps.push(known.target);
        self.measured_bps.push(known.measured);
    }
}
