//! Why a scenario gives no run here.

use std::io;

use fairwave_scenario::ScenarioError;
use thiserror::Error;

/// Why a scenario gives no run in the testbed.
#[derive(Debug, Error)]
pub enum Error {
    /// The scenario asks for what the testbed does not have.
    #[error("{message}\nhint: {hint}")]
    Unfit {
        /// What it asks for.
        message: String,
        /// What would do instead.
        hint: String,
    },
    /// The system allows no namespaces; the text names what would.
    #[error("{0}")]
    Closed(String),
    /// The program at a node ended, or did not answer.
    #[error("the process of node \"{node}\" {what}")]
    End {
        /// The node.
        node: String,
        /// What it did, or did not.
        what: String,
    },
    /// The system refused something else.
    #[error("testbed: {0}")]
    System(#[from] io::Error),
    /// What was measured is no run of the scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The caller wanted it to end.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// What the scenario asks for, and what would do instead.
    pub(crate) fn unfit(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unfit { message: message.into(), hint: hint.into() }
    }

    /// Whether the call is wrong, and not the machine or the run.
    pub fn is_of_the_call(&self) -> bool {
        matches!(self, Self::Unfit { .. } | Self::Scenario(_))
    }
}
