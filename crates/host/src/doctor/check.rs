//! One thing that was looked at, and how it is.

use serde::Serialize;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The subject, in a word or two.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The observation.
    pub seen: String,
    /// The exact command that fixes it.
    pub fix: Option<String>,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No problem found.
    Ok,
    /// Transfers work, and could be faster or fairer.
    Warn,
    /// Transfers fail.
    Fail,
}

impl Check {
    /// A check that passed.
    pub fn ok(name: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, seen: seen.into(), fix: None }
    }

    /// A check that could be better, with its fix.
    pub fn warn(name: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, fix: Some(fix.into()), ..Self::ok(name, seen) }
    }

    /// A check whose result makes transfers fail, with its fix.
    pub fn fail(name: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, fix: Some(fix.into()), ..Self::ok(name, seen) }
    }
}
