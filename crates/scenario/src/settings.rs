//! How a simulator is asked to run a scenario.

use fairwave_units::Time;

use crate::TraceEvent;

/// What to record besides the summary.
#[expect(clippy::struct_excessive_bools, reason = "each says whether one table is kept; they combine freely")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Rates per sample and session ([`crate::Run::rates`]).
    pub rates: bool,
    /// Queues per sample and link ([`crate::Run::queues`]).
    pub queues: bool,
    /// Windows per sample and session ([`crate::Run::windows`]); packet model.
    pub windows: bool,
    /// Distance to max-min per sample ([`crate::Run::distances_bps`]).
    pub distances: bool,
}

/// How to run a scenario.
#[derive(Default)]
pub struct Settings<'a> {
    /// What to record besides the summary.
    pub record: Record,
    /// Window of the summary's means, in place of the second half of the active time.
    pub window: Option<(Time, Time)>,
    /// Called with the simulated time that has passed, which never goes back: a few hundred times in a run, and as often
    /// as it takes that a stop asked for from there is never long in coming, however many events an instant has.
    pub progress: Option<&'a mut dyn FnMut(Time)>,
    /// Called with all that happens to packets, in order of time (packet model).
    pub trace: Option<&'a mut dyn FnMut(&TraceEvent<'_>)>,
}
