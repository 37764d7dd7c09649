//! Notes on a run with real programs in addition to the verdicts.

use serde::Serialize;

/// Notes on an experiment with real programs; in JSON these keys are next to its claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WireNotes {
    /// Factor of every rate and every size.
    pub scale: f64,
    /// The reason why there is no verdict at all, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Claims without a verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<NotJudged>,
    /// Reasons reported by the ends of sessions below their share: "s1-d1: the sending process".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Lateness of the emulated network, run by run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lateness: Vec<String>,
}

/// A claim without a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// The claim in words.
    pub what: String,
    /// The reason.
    pub reason: String,
}
