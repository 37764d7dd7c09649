//! How much there may be of a machine's members and rows.

use thiserror::Error;

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineLimits {
    /// Members of one user.
    pub members_a_user: usize,
    /// Rows of one user.
    pub rows_a_user: usize,
    /// Rows of all.
    pub rows: usize,
}

/// Why a member or a row is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its user has as many as it may.
    #[error("the user already has {0} processes at the daemon, the maximum")]
    Members(usize),
    /// Its user has as many rows as it may, or all have.
    #[error("the daemon has reached its maximum number of sessions")]
    Rows,
    /// No rule can run with its options.
    #[error("weight, alpha or beta of a session is out of range")]
    Options,
}

impl Default for MachineLimits {
    fn default() -> Self {
        Self { members_a_user: 64, rows_a_user: 4096, rows: 65_536 }
    }
}

impl MachineLimits {
    pub(super) fn admit_member(&self, of_user: usize) -> Result<(), Refusal> {
        if of_user < self.members_a_user { Ok(()) } else { Err(Refusal::Members(of_user)) }
    }

    /// These limits, with at most this many rows for one user.
    #[must_use]
    pub(super) fn with_rows(self, most: Option<usize>) -> Self {
        Self { rows_a_user: most.unwrap_or(self.rows_a_user).min(self.rows_a_user), ..self }
    }

    pub(super) fn admit_row(&self, of_user: usize, of_all: usize) -> Result<(), Refusal> {
        if of_user < self.rows_a_user && of_all < self.rows { Ok(()) } else { Err(Refusal::Rows) }
    }
}
