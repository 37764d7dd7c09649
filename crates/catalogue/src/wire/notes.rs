//! What is told of a run with real programs beside the verdicts.

use serde::Serialize;

/// Of an experiment with real programs; in JSON these keys stand beside its claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WireNotes {
    /// Every rate and every size was times this.
    pub scale: f64,
    /// Why there is no verdict at all, if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Claims without a verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<NotJudged>,
    /// Why sessions had less than their share, as their ends say it: "s1-d1: the sending process".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// How late the emulated network was, run by run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lateness: Vec<String>,
}

/// A claim that got no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// What is claimed.
    pub what: String,
    /// Why nobody can tell.
    pub reason: String,
}
