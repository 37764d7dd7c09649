//! All simulators: a scenario runs in the requested one, or in the one that runs its schemes.

use std::fmt;

use fairwave_fluid::FluidError;
use fairwave_scenario::{Run, Scenario, Settings};
use fairwave_schemes::scheme::Model;
use fairwave_sim::SimError;

/// The models that simulators run.
pub const MODELS: &[Model] = &[Model::Fluid, Model::Packet];

/// Error of a scenario in a model.
#[derive(Clone, Debug, PartialEq)]
pub enum LabError {
    /// In the fluid model.
    Fluid(Box<FluidError>),
    /// Packet by packet.
    Packet(Box<SimError>),
    /// On the testbed, which is not a simulator but runs real processes.
    Testbed,
}

impl LabError {
    /// The problem.
    pub fn message(&self) -> String {
        match self {
            Self::Fluid(error) => error.to_string(),
            Self::Packet(error) => error.to_string(),
            Self::Testbed => "the testbed is not a simulator".to_owned(),
        }
    }

    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Fluid(error) => error.hint(),
            Self::Packet(error) => error.hint(),
            Self::Testbed => Some("`fairwave testbed run` runs scenarios there".to_owned()),
        }
    }
}

impl fmt::Display for LabError {
    /// The problem, and the remedy on a separate line: `hint: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        self.hint().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for LabError {}

/// The default model of a scenario: the packet model if all its schemes run in it and the scenario uses no feature of
/// only the fluid model, otherwise the fluid model.
pub fn usual_model(scenario: &Scenario) -> Model {
    let runs = scenario.sessions.iter().all(|session| scenario.scheme_of(session).scheme.runs_in(Model::Packet));
    if runs && !fairwave_sim::is_fluid_only(scenario) { Model::Packet } else { Model::Fluid }
}

/// Runs a scenario to its end, in `model` or else in its default one. The result is a function of the arguments, to the
/// last bit.
pub fn simulate(scenario: &Scenario, model: Option<Model>, settings: Settings<'_>) -> Result<Run, LabError> {
    match model.unwrap_or_else(|| usual_model(scenario)) {
        Model::Fluid => fairwave_fluid::simulate(scenario, settings).map_err(|error| LabError::Fluid(Box::new(error))),
        Model::Packet => fairwave_sim::simulate(scenario, settings).map_err(|error| LabError::Packet(Box::new(error))),
        Model::Testbed => Err(LabError::Testbed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_scenario::{Document, Selection};

    #[test]
    fn simulate__errors_have_message_and_hint() {
        let text = crate::scenario_text("five-to-one").unwrap();
        let document = Document::parse("five-to-one", text.as_bytes()).unwrap();
        let selection = Selection { scheme: Some("cubic".into()), ..Selection::default() };
        let case = document.cases(&selection).unwrap().remove(0);
        let scenario = document.build(&case).unwrap().0;
        let error = simulate(&scenario, Some(Model::Fluid), Settings::default()).unwrap_err();
        let (message, hint) = (error.message(), error.hint().unwrap());
        assert!(message.ends_with("does not run in the fluid model"), "{message}");
        assert!(hint.starts_with("the fluid model runs gtp, "), "{hint}");
        assert_eq!(error.to_string(), format!("{message}\nhint: {hint}"));
    }
}
