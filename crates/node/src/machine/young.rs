//! A session that has just come.

use fairwave_units::Rate;

use crate::session::SessionId;

/// A session whose measured use is not meaningful yet.
pub(super) struct Young {
    pub(super) name: SessionId,
    /// Its fair part.
    pub(super) part: Rate,
    /// Its start rate, if it started since the last tick.
    pub(super) began_with: Rate,
}
