//! A run of one variant of an experiment with real programs.

use fairwave_scenario::Scenario;
use fairwave_units::Duration;

use crate::outcome::Shown;
use crate::wire::OnTestbed;

/// A run of one variant of an experiment.
#[derive(Clone)]
pub(super) struct VariantOutcome {
    pub(super) variant: Option<String>,
    pub(super) on_testbed: OnTestbed,
    /// Scenario at its scale.
    pub(super) scenario: Scenario,
    /// The packet model's run at the same scale.
    pub(super) beside: Option<Shown>,
}

impl VariantOutcome {
    /// Width of its samples.
    pub(super) fn sample(&self) -> Duration {
        self.scenario.sample
    }
}
