//! A session that has just come.

use fairwave_units::Rate;

use crate::codec::SessionId;

/// A session whose use is no measure yet.
pub(super) struct Young {
    pub(super) name: SessionId,
    /// Its fair part.
    pub(super) part: Rate,
    /// What it started with, if that was since the last tick.
    pub(super) began_with: Rate,
}
