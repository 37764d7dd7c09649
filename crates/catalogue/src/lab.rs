//! The simulators side by side: a scenario runs in the one that was asked for, or in the one that runs its schemes.

use fairwave_fluid::FluidError;
use fairwave_scenario::{Run, Scenario, Settings};
use fairwave_schemes::scheme::Model;
use fairwave_sim::SimError;
use thiserror::Error;

/// The models that this version runs.
pub const MODELS: &[Model] = &[Model::Fluid, Model::Packet];

/// Why a scenario does not run in a model. The text says what to do on a line of its own, "hint: ...".
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LabError {
    /// In the fluid model.
    #[error(transparent)]
    Fluid(Box<FluidError>),
    /// Packet by packet.
    #[error(transparent)]
    Packet(Box<SimError>),
}

/// The model that a scenario runs in where none was asked for: packets if all its schemes run packet by packet and it asks
/// for nothing that fluids alone have, else the fluid one.
pub fn usual_model(scenario: &Scenario) -> Model {
    let runs = scenario.sessions.iter().all(|session| scenario.scheme_of(session).scheme.runs_in(Model::Packet));
    if runs && !fairwave_sim::is_fluid_only(scenario) { Model::Packet } else { Model::Fluid }
}

/// Runs a scenario to its end, in `model` or else in its usual one. The outcome is a function of the arguments, to the
/// last bit.
pub fn simulate(scenario: &Scenario, model: Option<Model>, settings: Settings<'_>) -> Result<Run, LabError> {
    match model.unwrap_or_else(|| usual_model(scenario)) {
        Model::Fluid => fairwave_fluid::simulate(scenario, settings).map_err(|error| LabError::Fluid(Box::new(error))),
        Model::Packet => fairwave_sim::simulate(scenario, settings).map_err(|error| LabError::Packet(Box::new(error))),
    }
}
