//! How experiments are run, and why that may fail.

use fairwave_scenario::ScenarioError;
use thiserror::Error;

use crate::lab::LabError;
use crate::samples::MeasureError;
use crate::select::UnknownExperiment;

/// Options of running an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Fewer draws for experiments with many, and shorter runs for those with long ones.
    pub quick: bool,
}

/// Error of running an experiment. None of these comes from the shipped data, which tests run as a whole.
#[derive(Debug, Error)]
pub enum RunError {
    /// Unknown id.
    #[error(transparent)]
    Unknown(#[from] UnknownExperiment),
    /// Its scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator.
    #[error("{scenario}: {error}")]
    Lab {
        /// Name of the scenario.
        scenario: String,
        /// The simulator's error.
        error: LabError,
    },
    /// It needs real programs, and the caller has no testbed.
    #[error("{id} requires real programs\nhint: run `fairwave papers run {id}`")]
    Testbed {
        /// The experiment.
        id: String,
    },
    /// A claim that does not fit the runs.
    #[error("{id}: claim \"{what}\": {error}")]
    Measure {
        /// The experiment.
        id: String,
        /// The claim.
        what: String,
        /// The problem.
        error: MeasureError,
    },
    /// A variant that the scenario does not have.
    #[error("{id}: claim \"{what}\": no variant \"{variant}\" in the scenario")]
    Variant {
        /// The experiment.
        id: String,
        /// The claim.
        what: String,
        /// The variant.
        variant: String,
    },
}
