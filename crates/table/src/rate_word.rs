//! Rates as words: bit/s as f64.

use fairwave_units::Rate;

use crate::error::RowError;

/// No rate is infinite.
pub(crate) fn wide(rate: Option<Rate>) -> u64 {
    rate.map_or(f64::INFINITY, Rate::as_bps).to_bits()
}

/// A rate that somebody wrote, if it can be one; else its name is rubbish.
pub(crate) fn rate(bps: f64, name: &'static str) -> Result<Rate, RowError> {
    Rate::from_bps(bps).map_err(|_| RowError::Rubbish(name))
}

/// Decodes a rate; infinite means `None`.
pub(crate) fn limit(bps: f64, name: &'static str) -> Result<Option<Rate>, RowError> {
    if bps == f64::INFINITY { Ok(None) } else { rate(bps, name).map(Some) }
}
