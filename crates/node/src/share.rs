//! A session's share of a node's capacity.

use fairwave_schemes::Grant;
use fairwave_units::Rate;

/// A session's part of a node's capacity until the next tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Its rate, and where that leads.
    pub grant: Grant,
    /// The most that may come by what was granted recently, if that is known; else the rate.
    pub allowed: Rate,
    /// At a source whose sink gives grants: the one in force.
    pub remote: Option<Rate>,
    /// Whether the session is to be closed, because it exceeds its grants.
    pub exceeds: bool,
}

impl Share {
    pub(crate) fn of_grant(grant: Grant) -> Self {
        Self { grant, allowed: grant.expected, ..Self::default() }
    }
}

/// The rate of a session that no node limits.
pub(crate) fn unlimited() -> Rate {
    Rate::nearest_bps(f64::MAX)
}

/// By the rows of a node; `None` if a row's grant is unchanged.
pub(crate) type Shares = Vec<Option<Share>>;
