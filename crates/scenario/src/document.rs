//! A scenario file's text, before a variant and a seed are chosen.

use fairwave_units::Duration;

use crate::{Scenario, ScenarioError};

/// A scenario file that is well-formed TOML; what it means is checked when a [`Case`] of it is built.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
}

/// What the caller changes about a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The scenario's scheme.
    pub scheme: Option<String>,
    /// The first run's seed.
    pub seed: Option<u64>,
    /// Length of the run.
    pub duration: Option<Duration>,
    /// Keys by path and their values as TOML text ("session.a.demand", "25 Mb/s"): quotes around strings optional.
    pub set: Vec<(String, String)>,
    /// One variant alone.
    pub variant: Option<String>,
}

/// One run of a file: a variant and a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the variant; `None` where the file has none.
    pub variant: Option<String>,
    /// The seed of this run.
    pub seed: u64,
    selection: Selection,
}

impl Document {
    /// Reads a file's bytes; `file` is its name in messages.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ScenarioError> {
        let _ = bytes;
        Ok(Self { file: file.to_owned() })
    }

    /// The runs of this file: every variant (or the chosen one) times `runs` seeds, in order.
    pub fn cases(&self, selection: &Selection) -> Result<Vec<Case>, ScenarioError> {
        let _ = (selection, &self.file);
        Ok(Vec::new())
    }

    /// Builds the scenario of one case, with notes for people (options that a change of scheme dropped).
    pub fn build(&self, case: &Case) -> Result<(Scenario, Vec<String>), ScenarioError> {
        let _ = &case.selection;
        Err(ScenarioError { file: self.file.clone(), line: None, message: String::new(), hint: None })
    }
}
