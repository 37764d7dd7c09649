//! Errors of the testbed.

use std::io;

use fairwave_scenario::ScenarioError;
use thiserror::Error;

/// The reason why a scenario has no run in the testbed.
#[derive(Debug, Error)]
pub enum Error {
    /// The scenario needs a feature that the testbed does not have.
    #[error("{message}\nhint: {hint}")]
    Unfit {
        /// The feature.
        message: String,
        /// An alternative.
        hint: String,
    },
    /// The system allows no namespaces; the text has the remedy.
    #[error("{0}")]
    Closed(String),
    /// The program at a node ended, or did not answer.
    #[error("the process of node \"{node}\" {what}")]
    End {
        /// The node.
        node: String,
        /// The problem.
        what: String,
    },
    /// Another operation failed in the system.
    #[error("testbed: {0}")]
    System(#[from] io::Error),
    /// The measurements are not a run of the scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The caller interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An unsupported feature, and an alternative.
    pub(crate) fn unfit(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unfit { message: message.into(), hint: hint.into() }
    }

    /// Whether the call is wrong, not the machine or the run.
    pub fn is_of_the_call(&self) -> bool {
        matches!(self, Self::Unfit { .. } | Self::Scenario(_))
    }
}
