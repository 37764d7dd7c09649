//! The global max-min allocation of a scenario.

use fairwave_units::{Rate, Time};

use crate::{Scenario, ScenarioError};

/// The max-min fair rates of a scenario's sessions at one instant (Wu 2007, Algorithm 1).
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// Rate of each session, in the scenario's order; zero where it is not active.
    pub rates: Vec<Rate>,
    /// What limited each session; `None` where it is not active.
    pub limited_by: Vec<Option<LimitedBy>>,
}

/// What limits a session; ties in this order, links along the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// Its own demand.
    Demand,
    /// The sending capacity of a node, by index.
    Source(u32),
    /// A link, by index.
    Link(u32),
    /// The receiving capacity of a node, by index.
    Sink(u32),
}

/// Allocates all sessions as if active, or those active at an instant with their demands then. A demand schedule
/// counts with its largest demand where no instant is given.
pub fn allocate(scenario: &Scenario, at: Option<Time>) -> Result<Allocation, ScenarioError> {
    let _ = at;
    Err(ScenarioError { file: scenario.name.clone(), line: None, message: String::new(), hint: None })
}
