//! Settings of a simulator for a run.

use fairwave_units::Time;

use crate::{Scenario, SessionSpec, TraceEvent};

/// Samples to record in addition to the summary.
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
    /// Samples to record in addition to the summary.
    pub record: Record,
    /// Window of the summary's means, instead of the default ([`MeanWindow`]).
    pub window: Option<(Time, Time)>,
    /// Called with the elapsed simulated time, which never decreases: a few hundred times in a run, and often enough
    /// that a stop requested from it takes effect soon, however many events an instant has.
    pub progress: Option<&'a mut dyn FnMut(Time)>,
    /// Called for all events of packets, in order of time (packet model).
    pub trace: Option<&'a mut dyn FnMut(&TraceEvent<'_>)>,
}

/// The window of a run's means: one for sessions, links, background traffic and totals, so that rates of sessions may
/// be summed and compared with the load of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanWindow {
    /// Start of the window.
    pub from: Time,
    /// Latest end of the window.
    pub to: Time,
    /// Whether it ends with the last session that ends, if that is earlier.
    pub closes_early: bool,
}

impl MeanWindow {
    /// The requested part, limited to the run. Otherwise the second half of the run, after the start has settled. If
    /// every session has an end of its own, by size or stop, there is no steady state and no part of the run is better
    /// than another: then the whole run, until the last of them has ended.
    pub fn of(scenario: &Scenario, asked: Option<(Time, Time)>) -> Self {
        let end = scenario.end();
        if let Some((from, to)) = asked {
            let to = to.min(end);
            return Self { from: from.min(to), to, closes_early: false };
        }
        let has_end = |session: &SessionSpec| session.size.is_some() || session.stop.is_some_and(|stop| stop < end);
        let started = || scenario.sessions.iter().filter(|session| session.start < end);
        if started().next().is_some() && started().all(has_end) {
            return Self { from: Time::ZERO, to: end, closes_early: true };
        }
        Self { from: Time::from_nanos(end.as_nanos() / 2), to: end, closes_early: false }
    }
}
