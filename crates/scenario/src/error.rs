//! Errors in scenario files: the problem, its place, and the remedy.

use std::fmt;

/// A mistake in a scenario file or in the caller's changes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or the option of the call ("--set").
    pub file: String,
    /// Line, counted from one, if the mistake is in a file.
    pub line: Option<usize>,
    /// The item, the key, the value and the limit.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl fmt::Display for ScenarioError {
    /// `scenarios/a.toml:12: link "l1": capacity "0 Mb/s" must be above zero`, and `hint: ...` on a separate line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}
