//! Verdicts of claims.

use serde::{Deserialize, Serialize};

/// Verdict of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not hold, and the printed value is proved wrong by checks that hold and could fail.
    Refuted,
    /// It does not hold, for a documented reason.
    #[serde(rename = "known miss")]
    KnownMiss,
    /// It does not hold, for an unknown reason; or the proof against it does not hold.
    Miss,
}

impl Verdict {
    /// Its name in JSON, in the report and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Refuted => "refuted",
            Self::KnownMiss => "known miss",
            Self::Miss => "miss",
        }
    }
}
