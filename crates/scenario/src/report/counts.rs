//! A run from running totals.

use fairwave_schemes::scheme::Model;
use fairwave_units::Time;

use crate::report::optimum::{in_force, optimum};
use crate::report::{DistanceLog, KnownRates, RunParts, Totals, last_tenth};
use crate::{
    BackgroundSummary, Course, DelayHistogram, Engine, LinkSummary, LossEvent, QueueSamples, RateSamples, Record, Run,
    Scenario, ScenarioError, SessionSummary, WindowSamples, is_far,
};

/// The requested contents of a run's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Window of the summary's means, limited to the run; [`Counts::closed`] ends it earlier.
    pub window: (Time, Time),
    /// Samples to record in addition to the summary.
    pub record: Record,
}

/// Counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Ends of the samples, in order; the first sample starts at zero.
    pub ends: Vec<Time>,
    /// Running totals of payload delivered for the first time, in units of each session's own: entry `sample * sessions
    /// + session`.
    pub delivered: Vec<u64>,
    /// Running totals of arrivals on the wire, including duplicates.
    pub arrived: Vec<u64>,
    /// One entry per session, in the scenario's order.
    pub sessions: Vec<SessionCounts>,
    /// Totals at the instant at which the window of the means closed early, if they were taken.
    pub closed: Option<ClosedCounts>,
    /// Rates known to end nodes: entry `sample * sessions + session`. Empty if they were not requested.
    pub known: Vec<KnownRates>,
    /// Finite links and the used directions of end nodes.
    pub links: Vec<LinkSummary>,
    /// Largest offered load of a node over its capacity.
    pub peak_overload: f64,
    /// Queues, if they were recorded.
    pub queues: Option<QueueSamples>,
    /// Windows, if they were recorded. Values of inactive sessions are removed.
    pub windows: Option<WindowSamples>,
    /// Loss events, in any order.
    pub losses: Vec<LossEvent>,
    /// Delays of packets beyond propagation, one entry per session; empty if they were not measured.
    pub delays: Vec<DelayHistogram>,
    /// One entry per table of background traffic.
    pub background: Vec<BackgroundSummary>,
    /// Statistics of the engine.
    pub engine: Engine,
}

/// Counts of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionCounts {
    /// Bits of one count of [`Counts::delivered`]: 8 if bytes are counted, those of a payload if packets are.
    pub payload_bits: f64,
    /// Bits of one count of [`Counts::arrived`].
    pub wire_bits: f64,
    /// Payload delivered for the first time, in the whole run.
    pub delivered_bytes: u64,
    /// Data packets sent, including retransmissions.
    pub sent: u64,
    /// Data packets lost.
    pub lost: u64,
    /// Retransmitted data packets.
    pub resent: u64,
    /// Data packets that arrived with a mark; `None` if no queue marks.
    pub marked: Option<u64>,
    /// Expirations of its retransmission timer.
    pub timeouts: u64,
    /// Time at which its last byte was delivered, for a session of finite size.
    pub completed: Option<Time>,
}

/// Totals at an instant between samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedCounts {
    /// The instant.
    pub at: Time,
    /// By session: delivered for the first time, and arrived.
    pub sessions: Vec<[u64; 2]>,
}

/// The result of a finished run. `on_step` is called between steps that may take long.
///
/// # Errors
/// If the scenario has no max-min optimum: a session without a demand has no limit.
pub fn run_of(
    scenario: &Scenario,
    model: Model,
    mut counts: Counts,
    asked: &Recording,
    on_step: &mut dyn FnMut(Time),
) -> Result<Run, ScenarioError> {
    let windows = counts.windows.take().filter(|_| asked.record.windows);
    let window = (asked.window.0, counts.closed.as_ref().map_or(asked.window.1, |closed| closed.at));
    let counted = Counted { scenario, counts: &counts };
    let optimum = optimum(scenario, window, |at| counted.active_end(at), on_step)?;
    let best = |before| in_force(&optimum, before);
    let sessions =
        (0..scenario.sessions.len()).map(|at| (counted.session(at, window, best), counted.of(at).completed)).collect();
    let (mut course, distances) = counted.course(best);
    course.peak_overload = counts.peak_overload;
    let rates = asked.record.rates.then(|| counted.rates());
    let windows = windows.map(|samples| counted.active_windows(samples));
    let Counts { links, queues, mut losses, delays, background, engine, .. } = counts;
    losses.sort_by_key(|loss| (loss.time, loss.session));
    let parts = RunParts {
        model,
        window,
        sessions,
        links,
        background,
        course,
        engine,
        rates,
        queues: queues.filter(|_| asked.record.queues),
        windows,
        distances: if asked.record.distances { distances } else { DistanceLog::default() },
        max_min: if asked.record.rates { optimum } else { Vec::new() },
        losses,
        delays,
    };
    Ok(parts.whole(scenario))
}

/// The counts and their scenario.
#[derive(Clone, Copy)]
struct Counted<'a> {
    scenario: &'a Scenario,
    counts: &'a Counts,
}

impl Counted<'_> {
    fn delivered(&self) -> Totals<'_> {
        Totals::new(&self.counts.ends, self.scenario.sessions.len(), &self.counts.delivered)
    }

    fn arrived(&self) -> Totals<'_> {
        Totals::new(&self.counts.ends, self.scenario.sessions.len(), &self.counts.arrived)
    }

    fn of(&self, at: usize) -> SessionCounts {
        self.counts.sessions.get(at).copied().unwrap_or_default()
    }

    /// End of a session's active time: delivered, stopped, or the end of the run.
    fn active_end(&self, at: usize) -> Time {
        let session = &self.scenario.sessions[at];
        let stop = session.stop.unwrap_or(Time::MAX).min(self.scenario.end());
        let done = session.size.and(self.of(at).completed).unwrap_or(Time::MAX);
        stop.min(done).max(session.start.min(self.scenario.end()))
    }

    fn session<'o>(&self, at: usize, window: (Time, Time), best: impl Fn(Time) -> &'o [f64]) -> SessionSummary {
        let counts = self.of(at);
        let end = self.active_end(at);
        let tail = last_tenth(self.scenario.sessions[at].start.min(end), end);
        let mean = |(from, to): (Time, Time), until: &dyn Fn(Time) -> f64, bits: f64| {
            let span_s = to.since(from).as_secs_f64();
            if span_s > 0.0 { (until(to) - until(from)) * bits / span_s } else { 0.0 }
        };
        // If the window closed early, totals were taken; between samples they are interpolated.
        let closed = |time, which: usize| {
            let closed = self.counts.closed.as_ref().filter(|closed| closed.at == time)?;
            closed.sessions.get(at).map(|totals| totals[which] as f64)
        };
        // A transfer's bytes arrive between its start and its completion, also in a sample that is longer.
        let active = (self.scenario.sessions[at].start, counts.completed.unwrap_or(Time::MAX));
        let delivered = |time| closed(time, 0).unwrap_or_else(|| self.delivered().until_within(at, time, active));
        let arrived = |time| closed(time, 1).unwrap_or_else(|| self.arrived().until_within(at, time, active));
        SessionSummary {
            rate_bps: mean(window, &delivered, counts.payload_bits),
            wire_rate_bps: mean(window, &arrived, counts.wire_bits),
            final_rate_bps: mean(tail, &delivered, counts.payload_bits),
            final_wire_rate_bps: mean(tail, &arrived, counts.wire_bits),
            // The sessions active just before the end.
            max_min_bps: best(Time::from_nanos(end.as_nanos().saturating_sub(1)))[at],
            delivered_bytes: counts.delivered_bytes,
            sent_packets: counts.sent,
            lost_packets: counts.lost,
            retransmitted_packets: counts.resent,
            marked_packets: counts.marked,
            timeouts: counts.timeouts,
            ..SessionSummary::default()
        }
    }

    /// Mean wire rate of a session in a sample.
    fn wire_bps(&self, at: usize, sample: usize) -> f64 {
        let totals = self.arrived();
        totals.change(at, sample) as f64 * self.of(at).wire_bits / totals.span_s(sample)
    }

    /// Distances sample by sample, and the time from which on every session stayed near its max-min rate.
    fn course<'o>(&self, best: impl Fn(Time) -> &'o [f64]) -> (Course, DistanceLog) {
        let ends = &self.counts.ends;
        let mut distances = DistanceLog::default();
        let (mut last_far, mut is_asked) = (None, false);
        for (sample, end) in ends.iter().enumerate() {
            let rates: Vec<_> = (0..self.scenario.sessions.len()).map(|at| self.wire_bps(at, sample)).collect();
            let best = best(*end);
            let pairs = rates.iter().copied().zip(best.iter().copied());
            distances.push(pairs.clone());
            is_asked |= best.iter().any(|best| *best > 0.0);
            if pairs.into_iter().any(|(rate, best)| is_far(rate, best)) {
                last_far = Some(sample);
            }
        }
        let converged_s = match last_far {
            None => is_asked.then_some(0.0),
            Some(sample) if sample + 1 < ends.len() => Some(ends[sample].as_secs_f64()),
            Some(_) => None,
        };
        let course = Course {
            distance_start_bps: distances.distances_bps.first().copied().unwrap_or(0.0),
            distance_final_bps: distances.distances_bps.last().copied().unwrap_or(0.0),
            converged_s,
            peak_overload: 0.0,
        };
        (course, distances)
    }

    fn rates(&self) -> RateSamples {
        let sessions = self.scenario.sessions.len();
        let mut samples = RateSamples { ends: self.counts.ends.clone(), sessions, ..RateSamples::default() };
        let delivered = self.delivered();
        for sample in 0..samples.ends.len() {
            for at in 0..sessions {
                let change = delivered.change(at, sample) as f64;
                samples.rate_bps.push(change * self.of(at).payload_bits / delivered.span_s(sample));
                samples.wire_rate_bps.push(self.wire_bps(at, sample));
                samples.push_known(self.counts.known.get(sample * sessions + at).unwrap_or(&KnownRates::NONE));
            }
        }
        samples
    }

    /// Windows, without values of inactive sessions.
    fn active_windows(&self, mut samples: WindowSamples) -> WindowSamples {
        for (at, session) in self.scenario.sessions.iter().enumerate() {
            let active = session.start..=self.active_end(at);
            for (sample, end) in self.counts.ends.iter().enumerate() {
                let entry = sample * samples.sessions + at;
                if !active.contains(end) {
                    samples.cwnd_packets[entry] = f64::NAN;
                }
                if !active.contains(end) || samples.ssthresh_packets[entry].is_infinite() {
                    samples.ssthresh_packets[entry] = f64::NAN;
                }
            }
        }
        samples
    }
}
