//! What came of a claim.

use serde::{Deserialize, Serialize};

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not hold, and what is printed is proved wrong by checks that hold and could fail.
    Refuted,
    /// It does not hold, for a reason that is written down.
    #[serde(rename = "known miss")]
    KnownMiss,
    /// It does not hold, and nothing is known about it; or it was thought refuted, and the proof does not hold.
    Miss,
}

impl Verdict {
    /// The word in JSON, in the report and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Refuted => "refuted",
            Self::KnownMiss => "known miss",
            Self::Miss => "miss",
        }
    }
}
