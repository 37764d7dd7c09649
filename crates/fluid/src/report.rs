//! From what an engine added up to the result of a run.

use fairwave_scenario::{
    Course, Engine, LinkSummary, Metrics, Run, SchemeOptions, SessionSummary, Summary, Window, by_scheme,
};
use fairwave_units::Time;

use crate::grain::{self, Volume};
use crate::plan::FluidPlan;
use crate::queue::Queue;
use crate::record::Recorder;

/// What one session did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionOutcome {
    /// Mean rate over the window.
    pub(crate) rate_bps: f64,
    /// Mean rate over the last tenth of the active time.
    pub(crate) final_bps: f64,
    pub(crate) delivered: Volume,
    /// Max-min rate at the end of the active time.
    pub(crate) max_min_bps: f64,
    /// When the last byte of a finite size arrived.
    pub(crate) completed: Option<u64>,
}

/// What one resource carried within the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceLoad {
    /// Largest load that lasted for more than no time.
    pub(crate) peak: Volume,
    /// What left.
    pub(crate) carried: Volume,
    /// Integral of what waited, in volumes times nanoseconds.
    pub(crate) area: f64,
    /// The most that waited.
    pub(crate) largest: Volume,
    /// What found no room.
    pub(crate) dropped: Volume,
}

impl From<&Queue> for ResourceLoad {
    fn from(queue: &Queue) -> Self {
        Self { peak: queue.peak(), carried: queue.carried(), area: queue.area(), largest: queue.largest(), dropped: 0 }
    }
}

/// What all sessions did together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FluidTotals {
    pub(crate) distance_start_bps: f64,
    pub(crate) distance_final_bps: f64,
    /// `None` if some session is not near its max-min rate at the end, or none ever started.
    pub(crate) converged: Option<u64>,
    pub(crate) events: u64,
    /// Claims and grants that ends told each other.
    pub(crate) messages: u64,
}

/// The last tenth of an active time.
pub(crate) fn last_tenth(start: u64, end: u64) -> (u64, u64) {
    (end - (end - start) / 10, end)
}

/// Puts the result together. Both iterators follow the plan's order; `None` stands for an unlimited resource.
pub(crate) fn report(
    plan: &FluidPlan<'_>,
    window: (u64, u64),
    outcomes: impl Iterator<Item = SessionOutcome>,
    loads: &[ResourceLoad],
    totals: &FluidTotals,
    recorder: Recorder,
) -> Run {
    let scenario = plan.scenario;
    let sessions: Vec<_> = scenario
        .sessions
        .iter()
        .zip(outcomes)
        .map(|(session, outcome)| SessionSummary {
            name: session.name.clone(),
            from: scenario.nodes[session.from as usize].name.clone(),
            to: scenario.nodes[session.to as usize].name.clone(),
            scheme: scenario.scheme_of(session).scheme.name,
            rtt_s: session.rtt.as_secs_f64(),
            rate_bps: outcome.rate_bps,
            wire_rate_bps: outcome.rate_bps,
            final_rate_bps: outcome.final_bps,
            final_wire_rate_bps: outcome.final_bps,
            max_min_bps: outcome.max_min_bps,
            delivered_bytes: grain::whole_bytes(outcome.delivered)
                .min(session.size.map_or(u64::MAX, fairwave_units::Bytes::get)),
            sent_packets: 0,
            lost_packets: 0,
            retransmitted_packets: 0,
            timeouts: 0,
            completed_s: outcome.completed.map(|at| at as f64 / 1e9),
        })
        .collect();
    // The fluid itself has no packets: its queues are told in those of the scenario.
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
        });
    }
    let course = Course {
        distance_start_bps: totals.distance_start_bps,
        distance_final_bps: totals.distance_final_bps,
        converged_s: totals.converged.map(|at| at as f64 / 1e9),
        peak_overload,
    };
    let metrics = Metrics::of(&sessions, course);
    let record = recorder.record();
    Run {
        summary: Summary {
            version: env!("CARGO_PKG_VERSION"),
            scenario: scenario.name.clone(),
            scheme: scenario.scheme.scheme.name.to_owned(),
            options: SchemeOptions::of(&scenario.scheme),
            model: "fluid",
            seed: scenario.seed,
            duration_s: scenario.duration.as_secs_f64(),
            variant: scenario.variant.clone(),
            window: Window::new(Time::from_nanos(window.0), Time::from_nanos(window.1)),
            schemes: by_scheme(scenario, &sessions),
            sessions,
            links,
            background: Vec::new(),
            metrics,
            engine: Engine { events: totals.events, messages: totals.messages, ..Engine::default() },
        },
        rates: record.rates.then_some(recorder.rates),
        queues: record.queues.then_some(recorder.queues),
        windows: None,
        distances_bps: recorder.distances_bps,
        max_min_norms_bps: recorder.norms_bps,
        max_min: recorder.max_min,
        losses: Vec::new(),
    }
}

/// Grains times nanoseconds in a byte.
const GRAIN_NS_PER_BYTE: f64 = 8.0 * 1024.0 * 1e9;
