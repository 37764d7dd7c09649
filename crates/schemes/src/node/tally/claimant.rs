//! Sessions whose rates a capacity is divided among.

/// One session in a `Fill`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claimant {
    /// The session's maximum use as far as everything else allows, in bit/s; infinity if unlimited.
    pub claim_bps: f64,
    /// Weight relative to the other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum_bps: f64,
}

/// One session in [`caps()`](super::caps()).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capped {
    /// Its limit elsewhere in bit/s: its smallest remote grant, and its demand if that is known.
    pub limit_bps: f64,
    /// Weight relative to the other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum_bps: f64,
    /// Whether it gets spare capacity ahead of its limit.
    pub grows: bool,
}
