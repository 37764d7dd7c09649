//! The list of node rules.

use super::{abr, gtp, sperc, tally};
use crate::scheme::entry::Scheme;

/// The rules of end nodes, in the order of lists. A new one is a file here, its `mod` line and its place in this
/// list: all users find it by its capabilities.
pub(crate) const RULES: &[Scheme] = &[gtp::ADOPTED, gtp::PRINTED, abr::CHARNY, abr::HOU, tally::SCHEME, sperc::SCHEME];
