//! Converts an engine's sums into the result of a run ([`fairwave_scenario::report`]).

use fairwave_scenario::report::{self, RunParts};
use fairwave_scenario::{Course, Engine, LinkSummary, Run, SessionSummary};
use fairwave_schemes::scheme::Model;
use fairwave_units::Time;

use crate::grain::{self, Volume};
use crate::plan::FluidPlan;
use crate::queue::Queue;
use crate::record::{Recorder, distance};
use crate::track::Track;

/// Result of one session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionOutcome {
    /// Mean rate over the window.
    pub(crate) rate_bps: f64,
    /// Mean rate over the last tenth of the active time.
    pub(crate) final_bps: f64,
    pub(crate) delivered: Volume,
    /// Max-min rate at the end of the active time.
    pub(crate) max_min_bps: f64,
    /// Time at which the last byte of a finite size arrived.
    pub(crate) completed: Option<u64>,
}

/// Load of one resource within the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceLoad {
    /// Maximum load of positive duration.
    pub(crate) peak: Volume,
    /// Volume that left.
    pub(crate) carried: Volume,
    /// Integral of the queued volume, in volumes times nanoseconds.
    pub(crate) area: f64,
    /// Maximum queued volume.
    pub(crate) largest: Volume,
    /// Volume dropped at a full queue.
    pub(crate) dropped: Volume,
}

impl From<&Queue> for ResourceLoad {
    fn from(queue: &Queue) -> Self {
        Self { peak: queue.peak(), carried: queue.carried(), area: queue.area(), largest: queue.largest(), dropped: 0 }
    }
}

/// Totals of all sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FluidTotals {
    pub(crate) distance_final_bps: f64,
    /// `None` if some session is not near its max-min rate at the end, or no session ever started.
    pub(crate) converged: Option<u64>,
    pub(crate) events: u64,
    /// Claims and grants that the ends sent.
    pub(crate) messages: u64,
}

impl FluidTotals {
    /// Sets the totals at the end: the distance, and the time from which on all sessions that ever started were near
    /// their max-min rates. Both iterators have all sessions in order.
    pub(crate) fn close<'t>(
        &mut self,
        plan: &FluidPlan<'_>,
        pairs: impl Iterator<Item = (f64, f64)> + Clone,
        tracks: impl Iterator<Item = &'t Track>,
    ) {
        self.distance_final_bps = distance(pairs);
        let (mut converged, mut any) = (Some(0), false);
        for (_, track) in tracks.enumerate().filter(|(k, _)| plan.active(*k).is_some()) {
            any |= track.is_asked;
            let last_far = track.last_far();
            converged = converged.filter(|_| last_far < plan.end).map(|at: u64| at.max(last_far));
        }
        self.converged = converged.filter(|_| any);
    }
}

/// The last tenth of an active time.
pub(crate) fn last_tenth(start: u64, end: u64) -> (u64, u64) {
    let (from, to) = report::last_tenth(Time::from_nanos(start), Time::from_nanos(end));
    (from.as_nanos(), to.as_nanos())
}

/// Assembles the result. Both iterators follow the plan's order; `None` stands for an unlimited resource.
pub(crate) fn report(
    plan: &FluidPlan<'_>,
    window: (u64, u64),
    outcomes: impl Iterator<Item = SessionOutcome>,
    loads: &[ResourceLoad],
    totals: &FluidTotals,
    recorder: Recorder,
) -> Run {
    let scenario = plan.scenario;
    // The fluid model has no packets: its queues are reported in packets of the scenario's size.
    let packet = scenario.full_packet().get() as f64;
    let span = window.1 - window.0;
    let mut peak_overload = 0.0_f64;
    let mut links = Vec::new();
    for (resource, load) in plan.resources.iter().zip(loads) {
        let Some(capacity) = resource.capacity else { continue };
        if resource.place.is_node() {
            peak_overload = peak_overload.max(load.peak as f64 / resource.grains as f64);
        }
        links.push(LinkSummary {
            name: resource.place.name(scenario),
            capacity_bps: capacity.as_bps(),
            utilisation: grain::mean_bps(load.carried, span) / capacity.as_bps(),
            // Grain-nanoseconds, averaged over the window.
            mean_queue_packets: if span == 0 { 0.0 } else { load.area / span as f64 / GRAIN_NS_PER_BYTE / packet },
            max_queue_packets: grain::bytes(load.largest) / packet,
            dropped_packets: (grain::bytes(load.dropped) / packet).round() as u64,
            marked_packets: None,
        });
    }
    let course = Course {
        distance_start_bps: recorder.distance_start_bps,
        distance_final_bps: totals.distance_final_bps,
        converged_s: totals.converged.map(|at| at as f64 / 1e9),
        peak_overload,
    };
    let record = recorder.record();
    let parts = RunParts {
        model: Model::Fluid,
        window: (Time::from_nanos(window.0), Time::from_nanos(window.1)),
        sessions: outcomes.map(|outcome| outcome.outcome()).collect(),
        links,
        background: Vec::new(),
        course,
        engine: Engine { events: totals.events, messages: totals.messages, ..Engine::default() },
        rates: record.rates.then_some(recorder.rates),
        queues: record.queues.then_some(recorder.queues),
        windows: None,
        distances: recorder.distances,
        max_min: recorder.max_min,
        losses: Vec::new(),
        delays: Vec::new(),
    };
    parts.whole(scenario)
}

impl SessionOutcome {
    /// The result in the form common to all models. The fluid model has no headers and no packets.
    fn outcome(&self) -> (SessionSummary, Option<Time>) {
        let numbers = SessionSummary {
            rate_bps: self.rate_bps,
            wire_rate_bps: self.rate_bps,
            final_rate_bps: self.final_bps,
            final_wire_rate_bps: self.final_bps,
            max_min_bps: self.max_min_bps,
            delivered_bytes: grain::whole_bytes(self.delivered),
            ..SessionSummary::default()
        };
        (numbers, self.completed.map(Time::from_nanos))
    }
}

/// Grains times nanoseconds in a byte.
const GRAIN_NS_PER_BYTE: f64 = 8.0 * 1024.0 * 1e9;
