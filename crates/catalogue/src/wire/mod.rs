//! Experiments with real programs: the testbed, and the packet model for comparison at the same scale.
//!
//! The catalogue has no testbed. A caller that has one (the command line) passes a [`Testbed`], and the experiments run
//! on it one after the other, with the machine to themselves. Runs that the testbed considers unreliable get no
//! verdict: the reason is in the notes of the experiment ([`WireNotes`]).

mod judge;
mod notes;
mod picture;
mod run;
mod scaled_back;
#[cfg(test)]
mod tests;
mod variant;

use fairwave_scenario::{Run, Scenario, Settings};

pub use notes::{NotJudged, WireNotes};
pub(crate) use picture::picture_beside;
pub use run::run_on_testbed;

/// Runs a scenario with real programs; the error is the reason why that is not possible.
pub type Testbed<'a> = &'a dyn Fn(&Scenario, Settings<'_>) -> Result<OnTestbed, String>;

/// Result of a run with real programs.
#[derive(Clone, Debug)]
pub enum OnTestbed {
    /// A run.
    Ran(Box<RanOnTestbed>),
    /// No reliable run: "machine busy", "no user namespaces".
    Skipped {
        /// The reason.
        reason: String,
    },
}

/// A run with real programs, and its reliability.
#[derive(Clone, Debug)]
pub struct RanOnTestbed {
    /// The measurements.
    pub run: Run,
    /// Whether times may be judged; the error is the reason.
    pub times: Result<(), String>,
    /// Reasons reported by the ends of sessions below their share.
    pub why: Vec<String>,
    /// Lateness of the emulated network, in words.
    pub lateness: String,
}
