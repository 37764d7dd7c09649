//! The result of an experiment.

use std::sync::Arc;

use fairwave_scenario::{Run, Scenario};
use serde::Serialize;

use crate::Experiment;
use crate::judged::Claim;
use crate::wire::WireNotes;

/// The verdicts of one experiment; its JSON form is a line of `papers run --json`.
#[derive(Clone, Debug, Serialize)]
pub struct ExperimentOutcome {
    /// "002/fig-vii-2a".
    pub id: String,
    /// One entry per claim, in the order of the data.
    pub claims: Vec<Claim>,
    /// Wall time of its runs in sequence, in seconds, without those that were made for an earlier experiment: the only
    /// number here that is not a function of data and options.
    pub wall_s: f64,
    /// Whether some draws were left out, or runs made shorter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// The experiment.
    #[serde(skip)]
    pub experiment: &'static Experiment,
    /// The runs in its picture, in the order of variants and seeds.
    #[serde(skip)]
    pub shown: Vec<Arc<Shown>>,
    /// The heights of its bars: per variant, in the scenario's order, its label and a value for each part.
    #[serde(skip)]
    pub(crate) heights: Vec<(Option<String>, Vec<f64>)>,
    /// Notes on an experiment with real programs.
    #[serde(flatten)]
    pub wire: Option<WireNotes>,
}

/// A run that a picture shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The scenario.
    pub scenario: Scenario,
    /// The result.
    pub run: Run,
}
