//! One thing that was looked at, and how it is.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What, in a word or two.
    pub name: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What mends it, to the letter.
    pub fix: Option<String>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Transfers work, and could be faster or fairer.
    Warn,
    /// Transfers fail.
    Fail,
}

impl Check {
    /// What is as it should be.
    pub fn ok(name: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, seen: seen.into(), fix: None }
    }

    /// What works and could be better, with what mends it.
    pub fn warn(name: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, fix: Some(fix.into()), ..Self::ok(name, seen) }
    }

    /// What makes transfers fail, with what mends it.
    pub fn fail(name: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, fix: Some(fix.into()), ..Self::ok(name, seen) }
    }
}
