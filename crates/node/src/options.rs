//! A session's options for a host's end nodes.

use fairwave_units::Rate;

/// Options that may differ between the sessions of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionOptions {
    /// Its share relative to others.
    pub weight: f64,
    /// Share of the gap to the target rate that is closed per interval.
    pub alpha: f64,
    /// Least step, as a share of alpha x target rate.
    pub beta: f64,
    /// Guaranteed rate, which rules keep to that know of such rates.
    pub minimum: Rate,
}

impl Default for SessionOptions {
    // Wu 2007, VII: alpha = 0.1, beta = 0.2.
    fn default() -> Self {
        Self { weight: 1.0, alpha: 0.1, beta: 0.2, minimum: Rate::ZERO }
    }
}
