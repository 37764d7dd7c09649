//! Experiments with real programs: the testbed, and the packet model beside it at the same scale.
//!
//! The catalogue has no testbed of its own. Who has one (the command line) hands over a [`Testbed`], and the experiments
//! run on it one after the other, alone on the machine. What the testbed refuses to vouch for gets no verdict: it is
//! told beside the claims, with the reason ([`WireNotes`]).

mod judge;
mod notes;
mod picture;
mod run;
mod scaled_back;
#[cfg(test)]
mod tests;

use fairwave_scenario::{Run, Scenario, Settings};

pub use notes::{NotJudged, WireNotes};
pub(crate) use picture::picture_beside;
pub use run::run_on_testbed;

/// Runs a scenario with real programs; the error says why that is not possible.
pub type Testbed<'a> = &'a dyn Fn(&Scenario, Settings<'_>) -> Result<OnTestbed, String>;

/// What a run with real programs gave.
#[derive(Clone, Debug)]
pub enum OnTestbed {
    /// A run.
    Ran(Box<RanOnTestbed>),
    /// None that says anything: "machine busy", "no user namespaces".
    Skipped {
        /// Why.
        reason: String,
    },
}

/// A run with real programs, and how far it is to be trusted.
#[derive(Clone, Debug)]
pub struct RanOnTestbed {
    /// What was measured.
    pub run: Run,
    /// Whether times may be judged; the error says why not.
    pub times: Result<(), String>,
    /// Why sessions have less than their share, as their ends say it.
    pub why: Vec<String>,
    /// How late the emulated network was, in words.
    pub lateness: String,
}
