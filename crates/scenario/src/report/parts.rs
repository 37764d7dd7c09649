//! A run assembled from its parts.

use fairwave_schemes::scheme::Model;
use fairwave_units::{Bytes, Time};

use crate::completions;
use crate::report::DistanceLog;
use crate::{
    BackgroundSummary, Course, DelayHistogram, DelaySummary, Engine, LinkSummary, LossEvent, MaxMinStep, Metrics,
    QueueSamples, RateSamples, Run, Scenario, SchemeOptions, SessionSummary, Summary, Window, WindowSamples, by_scheme,
};

/// The last tenth of an active time, over which `final_rate_bps` is averaged.
pub fn last_tenth(start: Time, end: Time) -> (Time, Time) {
    (Time::from_nanos(end.as_nanos() - end.since(start).as_nanos() / 10), end)
}

/// All parts of a run.
#[derive(Clone, Debug)]
pub struct RunParts {
    /// The model that ran it.
    pub model: Model,
    /// Window of the means.
    pub window: (Time, Time),
    /// One entry per session, in the scenario's order: its numbers, without the data from its scenario, and the time at
    /// which the last byte of its size was delivered.
    pub sessions: Vec<(SessionSummary, Option<Time>)>,
    /// Finite links and the used directions of end nodes.
    pub links: Vec<LinkSummary>,
    /// One entry per table of background traffic.
    pub background: Vec<BackgroundSummary>,
    /// Distances, convergence and load.
    pub course: Course,
    /// Statistics of the engine.
    pub engine: Engine,
    /// Rates, if they were recorded.
    pub rates: Option<RateSamples>,
    /// Queues, if they were recorded.
    pub queues: Option<QueueSamples>,
    /// Windows, if they were recorded.
    pub windows: Option<WindowSamples>,
    /// Distances, empty if they were not recorded.
    pub distances: DistanceLog,
    /// The max-min vector over time, empty if rates were not recorded.
    pub max_min: Vec<MaxMinStep>,
    /// Loss events, in order of time.
    pub losses: Vec<LossEvent>,
    /// Delays of packets beyond propagation, one entry per session; empty if the model has no packets.
    pub delays: Vec<DelayHistogram>,
}

impl RunParts {
    /// The run of this scenario.
    pub fn whole(self, scenario: &Scenario) -> Run {
        let outcomes = scenario.sessions.iter().zip(self.sessions).enumerate();
        let sessions: Vec<_> = outcomes
            .map(|(at, (_, outcome))| summary(scenario, self.model, at, outcome, self.delays.get(at)))
            .collect();
        Run {
            summary: Summary {
                version: env!("CARGO_PKG_VERSION"),
                scenario: scenario.name.clone(),
                scheme: scenario.scheme.scheme.name.to_owned(),
                options: SchemeOptions::of(&scenario.scheme),
                model: self.model.name(),
                seed: scenario.seed,
                duration_s: scenario.duration.as_secs_f64(),
                variant: scenario.variant.clone(),
                window: Window::new(self.window.0, self.window.1),
                metrics: Metrics::of(&sessions, self.course),
                schemes: by_scheme(scenario, &sessions, &self.delays),
                completions: completions::by_size(&sessions),
                sessions,
                links: self.links,
                background: self.background,
                engine: self.engine,
            },
            rates: self.rates,
            queues: self.queues,
            windows: self.windows,
            distances_bps: self.distances.distances_bps,
            max_min_norms_bps: self.distances.norms_bps,
            max_min: self.max_min,
            losses: self.losses,
            delays: self.delays,
        }
    }
}

fn summary(
    scenario: &Scenario,
    model: Model,
    at: usize,
    (numbers, completed): (SessionSummary, Option<Time>),
    delays: Option<&DelayHistogram>,
) -> SessionSummary {
    let session = &scenario.sessions[at];
    let completed = session.size.and(completed);
    let completion_s = completed.map(|at| at.since(session.start.min(at)).as_secs_f64());
    let alone_s = completions::alone_s(scenario, session, model);
    SessionSummary {
        name: session.name.clone(),
        from: scenario.nodes[session.from as usize].name.clone(),
        to: scenario.nodes[session.to as usize].name.clone(),
        scheme: scenario.scheme_of(session).scheme.name,
        rtt_s: session.rtt.as_secs_f64(),
        delivered_bytes: numbers.delivered_bytes.min(session.size.map_or(u64::MAX, Bytes::get)),
        completed_s: completed.map(Time::as_secs_f64),
        completion_s,
        size_bytes: session.size.map(Bytes::get),
        slowdown: completion_s.zip(alone_s).map(|(took_s, alone_s)| took_s / alone_s),
        delays: delays.filter(|delays| delays.samples() > 0).map(|delays| DelaySummary::of(delays, session.rtt)),
        ..numbers
    }
}
