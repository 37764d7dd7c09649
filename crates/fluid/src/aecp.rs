//! AECP as a fluid: the differential equations of Huang et al. 2010, Eqs. (2) to (6), between the instants at which
//! sessions start, stop and change their demands.
//!
//! As in the paper all of the delay is on the return path: a rate reaches a link immediately, and a source sees the
//! link's value of a round-trip time ago. Until its first round trip is over it keeps its first rate, `initial_rate` or
//! two packets per round trip. Unlike for the node rules the results are not exact: the equations are stepped, [`STEP`]
//! at a time.
//!
//! Differs from the paper: rate factors stay between one packet per second and twice the capacity (otherwise a demand
//! below its share would let them grow without end; with the capacity as the limit, as in the packet model, a single
//! session could never build the queue that its link aims at), and queues have the scenario's limits. Overflow is
//! dropped, and does not arrive.

mod dynamics;

use fairwave_scenario::report::KnownRates;
use fairwave_scenario::{QueueLimit, Run};
use fairwave_schemes::link::AecpConfig;
use fairwave_schemes::session::AecpSourceConfig;

use crate::Settings;
use crate::check::is_aecp;
use crate::error::FluidError;
use crate::grain::{self, Volume};
use crate::optimum::Optimum;
use crate::plan::{FluidPlan, NONE, Resource, runs_rule};
use crate::record::{Progress, RateSample, Recorder};
use crate::report::{FluidTotals, ResourceLoad, SessionOutcome, last_tenth, report};
use crate::track::Track;
use crate::trail::Trail;
use dynamics::{AecpResource, AecpSource, Dynamics};

/// Maximum step, 1 ms. AECP changes within seconds: the rates of a start have errors of 10^-4 of the capacity, and a
/// quarter of that with half the step.
const STEP: u64 = 1_000_000;

/// Minimum round-trip time from which the first rate is computed.
const MIN_RTT_S: f64 = 0.001;

/// The first window, in packets, as in the packet model.
const FIRST_WINDOW_PACKETS: f64 = 2.0;

/// Scheduled changes, in the order in which simultaneous ones happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AecpChange {
    Stop,
    Start,
    /// The first round trip is over.
    Hear,
    Demand,
}

/// A session, except for its source.
#[derive(Clone, Debug, Default)]
struct AecpFlow {
    start: u64,
    /// Its end, unless its size ends it before.
    stop: u64,
    is_active: bool,
    has_started: bool,
    delivered: Volume,
    /// Volume that arrived in the windows of its means.
    windows: [(u64, u64); 2],
    sums: [Volume; 2],
    /// Remaining volume of a session of finite size, and the rates that arrived.
    size: Option<Volume>,
    trail: Trail,
    completed: Option<u64>,
    track: Track,
}

/// A run of the equations.
pub(crate) struct AecpSimulator<'a> {
    plan: &'a FluidPlan<'a>,
    now: u64,
    step: u64,
    dynamics: Dynamics,
    flows: Vec<AecpFlow>,
    loads: Vec<ResourceLoad>,
    /// The line of each resource; [`NONE`] if the capacity is unlimited.
    lines: Vec<u32>,
    controls: Vec<(u64, AecpChange, u32)>,
    next_control: usize,
    is_changed: bool,
    optimum: Optimum,
    window: (u64, u64),
    /// Whether the window closes with the last session that ends, and the number of sessions that have not ended.
    closes_early: bool,
    open: usize,
    totals: FluidTotals,
}

impl<'a> AecpSimulator<'a> {
    pub(crate) fn new(plan: &'a FluidPlan<'a>, settings: &Settings<'_>) -> Self {
        let mut lines = Vec::new();
        let mut index = vec![NONE; plan.resources.len()];
        for (resource, index) in plan.resources.iter().zip(&mut index) {
            if let Some(line) = line(plan, resource) {
                *index = lines.len() as u32;
                lines.push(line);
            }
        }
        let source = |k: usize| {
            let session = &plan.scenario.sessions[k];
            let alpha = AecpSourceConfig::from_options(&plan.scenario.scheme_of(session).options).alpha_per_s;
            let crossed = plan.rows_of(k).iter().map(|row| index[plan.rows[*row as usize].resource as usize]);
            let crossed: Vec<u32> = crossed.filter(|line| *line != NONE).collect();
            let tellers = crossed.iter().copied().filter(|line| lines[*line as usize].rule.is_some()).collect();
            AecpSource::new(alpha, session.rtt.as_nanos(), crossed, tellers)
        };
        let sources = (0..plan.scenario.sessions.len()).map(source).collect();
        let (window, closes_early) = plan.window(settings.window);
        let flows = plan.scenario.sessions.iter().enumerate().map(|(k, session)| {
            let Some((start, stop)) = plan.active(k) else { return AecpFlow::default() };
            let windows = [window, last_tenth(start, stop)];
            let size = session.size.map(|size| grain::of_bytes(size.get()));
            AecpFlow { start, stop, windows, size, track: Track::new(start), ..AecpFlow::default() }
        });
        Self {
            plan,
            now: 0,
            step: STEP,
            flows: flows.collect(),
            loads: plan.resources.iter().map(|_| ResourceLoad::default()).collect(),
            dynamics: Dynamics::new(sources, lines),
            lines: index,
            controls: controls(plan),
            next_control: 0,
            is_changed: false,
            optimum: Optimum::new(plan),
            window,
            closes_early,
            open: (0..plan.scenario.sessions.len()).filter(|k| plan.active(*k).is_some()).count(),
            totals: FluidTotals::default(),
        }
    }

    /// Sets another length of the steps.
    #[cfg(test)]
    pub(crate) fn with_step(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// Runs to the end.
    pub(crate) fn run(mut self, settings: &mut Settings<'_>) -> Result<Run, FluidError> {
        let mut recorder = Recorder::new(self.plan, settings.record);
        let mut progress = Progress::new(self.plan.end);
        while self.now < self.plan.end {
            while let Some((_, control, k)) = self.controls.get(self.next_control).filter(|(at, ..)| *at <= self.now) {
                let (control, k) = (*control, *k as usize);
                self.next_control += 1;
                self.control(control, k);
            }
            if self.is_changed {
                self.find_optimum(&mut recorder)?;
            }
            let control = self.controls.get(self.next_control).map_or(u64::MAX, |(at, ..)| *at);
            let sample = recorder.next().unwrap_or(u64::MAX);
            let then = (self.now + self.step).min(control).min(sample).min(self.plan.end);
            self.advance(then);
            if recorder.next() == Some(then) {
                self.sample(&mut recorder);
            }
            if then < self.plan.end {
                progress.turn(then, settings);
            }
        }
        Ok(self.finish(recorder))
    }

    fn control(&mut self, control: AecpChange, k: usize) {
        let (now, session) = (self.now, &self.plan.scenario.sessions[k]);
        let (flow, source) = (&mut self.flows[k], &mut self.dynamics.sources[k]);
        match control {
            AecpChange::Stop => {
                if flow.is_active {
                    self.stop(k);
                }
            }
            AecpChange::Start => {
                let packet_bits = self.plan.scenario.full_packet().as_bits_f64();
                let first_bps = FIRST_WINDOW_PACKETS * packet_bits / session.rtt.as_secs_f64().max(MIN_RTT_S);
                let initial_bps = session.initial_rate.as_bps();
                source.ln_rate = libm::log(if initial_bps > 0.0 { initial_bps } else { first_bps });
                source.demand_bps = self.plan.demand(k, now);
                (flow.is_active, flow.has_started, self.is_changed) = (true, true, true);
            }
            AecpChange::Hear => source.hears = flow.is_active,
            AecpChange::Demand => {
                if flow.is_active {
                    source.demand_bps = self.plan.demand(k, now);
                    self.is_changed = true;
                }
            }
        }
    }

    /// A session's active time is over.
    fn stop(&mut self, k: usize) {
        let (flow, source) = (&mut self.flows[k], &mut self.dynamics.sources[k]);
        (source.hears, source.demand_bps) = (false, 0.0);
        flow.is_active = false;
        flow.stop = flow.completed.unwrap_or(self.now);
        self.is_changed = true;
        self.open -= 1;
        if self.closes_early && self.open == 0 {
            let ends = self.flows.iter().filter(|flow| flow.has_started).map(|flow| flow.stop);
            self.window.1 = self.window.1.min(ends.max().unwrap_or(self.now));
        }
    }

    /// Advances the state from now to `then`, without scheduled changes in between.
    fn advance(&mut self, then: u64) {
        let (now, span) = (self.now, then - self.now);
        let before: Vec<f64> = self.dynamics.lines.iter().map(|line| line.queue_bits).collect();
        self.dynamics.step(now, span);
        self.totals.events += 1;
        self.now = then;
        for (load, line) in self.loads.iter_mut().zip(&self.lines) {
            if *line != NONE {
                let here = &self.dynamics.lines[*line as usize];
                load.add(here, before[*line as usize], (now, then), self.window);
            }
        }
        for k in 0..self.flows.len() {
            let (flow, source) = (&mut self.flows[k], &self.dynamics.sources[k]);
            if !flow.is_active {
                continue;
            }
            flow.track.close(source.sent_bps, then);
            let rate = grain::grains(source.passed_bps);
            let volume = grain::volume(rate, span);
            flow.delivered += volume;
            for (sum, window) in flow.sums.iter_mut().zip(flow.windows) {
                *sum += grain::volume(rate, overlap((now, then), window));
            }
            let Some(size) = flow.size else { continue };
            flow.trail.push(now, rate);
            if flow.delivered >= size {
                // The whole bytes of a step have arrived when their last one has.
                let late = flow.delivered - size;
                flow.completed = Some(then - (late / Volume::from(rate.max(1))) as u64);
                flow.delivered = size;
                self.stop(k);
            }
        }
    }

    fn find_optimum(&mut self, recorder: &mut Recorder) -> Result<(), FluidError> {
        self.is_changed = false;
        let flows = self.flows.iter_mut().zip(&self.dynamics.sources);
        let wants = flows.map(|(flow, source)| (flow.is_active.then_some(source.demand_bps), &mut flow.track));
        self.optimum.find(self.plan, wants)?;
        recorder.max_min(self.now, self.pairs());
        Ok(())
    }

    /// Rates of the sessions with their max-min rates; both are zero if a session is not active.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.flows
            .iter()
            .zip(&self.dynamics.sources)
            .map(|(flow, source)| if flow.is_active { (source.rate_bps(), flow.track.optimum_bps) } else { (0.0, 0.0) })
    }

    fn sample(&mut self, recorder: &mut Recorder) {
        let rates = self.flows.iter().map(|flow| RateSample { delivered: flow.delivered, known: KnownRates::NONE });
        recorder.sample(rates, self.dynamics.lines.iter().map(|line| of_bits(line.queue_bits)), self.pairs());
    }

    fn finish(self, recorder: Recorder) -> Run {
        let mut totals = self.totals;
        totals.close(self.plan, self.pairs(), self.flows.iter().map(|flow| &flow.track));
        let outcomes: Vec<_> = self.flows.iter().map(|flow| flow.outcome(self.window)).collect();
        report(self.plan, self.window, outcomes.into_iter(), &self.loads, &totals, recorder)
    }
}

impl AecpFlow {
    fn outcome(&self, window: (u64, u64)) -> SessionOutcome {
        let mean = |volume, (from, to): (u64, u64)| grain::mean_bps(volume, to - from);
        // The step in which the last byte arrives extends beyond it.
        let in_window = if window.1 < self.windows[0].1 { self.delivered } else { self.sums[0] };
        let final_bps = if self.size.is_some() {
            let last = last_tenth(self.start, self.stop);
            mean(self.trail.volume(last.0, last.1), last)
        } else {
            mean(self.sums[1], self.windows[1])
        };
        let rate_bps = mean(in_window, window);
        SessionOutcome {
            rate_bps,
            final_bps,
            delivered: self.delivered,
            max_min_bps: self.track.optimum_bps,
            completed: self.completed,
        }
    }
}

impl ResourceLoad {
    /// Adds a step from one instant to another; only the part within `window` counts.
    fn add(&mut self, line: &AecpResource, queue_before_bits: f64, (now, then): (u64, u64), window: (u64, u64)) {
        self.peak = self.peak.max(Volume::from(grain::grains(line.load_bps)));
        let within = overlap((now, then), window);
        if within == 0 {
            return;
        }
        // A step that crosses a boundary of the window counts by its share.
        let share = within as f64 / (then - now) as f64;
        let came_bits = line.load_bps * (then - now) as f64 / 1e9;
        let carried_bits = came_bits - line.dropped_bits - (line.queue_bits - queue_before_bits);
        self.carried += of_bits(carried_bits.max(0.0) * share);
        self.area += of_bits(f64::midpoint(queue_before_bits, line.queue_bits)) as f64 * within as f64;
        self.largest = self.largest.max(of_bits(line.queue_bits));
        self.dropped += of_bits(line.dropped_bits * share);
    }
}

/// The scheduled changes.
fn controls(plan: &FluidPlan<'_>) -> Vec<(u64, AecpChange, u32)> {
    let mut controls = Vec::new();
    for (k, session) in plan.scenario.sessions.iter().enumerate() {
        let Some((start, stop)) = plan.active(k) else { continue };
        let heard = start.saturating_add(session.rtt.as_nanos());
        controls.push((start, AecpChange::Start, k as u32));
        if heard < stop {
            controls.push((heard, AecpChange::Hear, k as u32));
        }
        if stop < plan.end {
            controls.push((stop, AecpChange::Stop, k as u32));
        }
        controls.extend(plan.demand_steps(k).map(|(at, _)| (at, AecpChange::Demand, k as u32)));
    }
    controls.sort_unstable();
    controls
}

/// The line of a resource with a finite capacity.
fn line(plan: &FluidPlan<'_>, resource: &Resource) -> Option<AecpResource> {
    let scenario = plan.scenario;
    let capacity_bps = resource.capacity?.as_bps();
    // The options are the scheme's; a link that runs another's rule has that one's defaults.
    let rule = runs_rule(plan, resource.place).then(|| {
        let own = is_aecp(scenario.scheme.scheme.name);
        if own { AecpConfig::from_options(&scenario.scheme.options) } else { AecpConfig::default() }
    });
    let packet_bits = plan.scenario.full_packet().as_bits_f64();
    let limit_bits = match resource.place.queue(scenario) {
        QueueLimit::Packets(packets) => packets as f64 * packet_bits,
        QueueLimit::Bytes(bytes) => bytes.as_bits_f64(),
        share @ (QueueLimit::Bdp(_) | QueueLimit::Usual) => {
            let share = if let QueueLimit::Bdp(share) = share { share } else { 1.0 };
            let rtt = |row: &crate::plan::Crossing| scenario.sessions[row.session as usize].rtt.as_secs_f64();
            let largest_s = plan.rows[resource.rows.clone()].iter().map(rtt).fold(0.0, f64::max);
            (capacity_bps * largest_s * share).max(2.0 * packet_bits)
        }
    };
    Some(AecpResource::new(rule, capacity_bps, packet_bits, limit_bits))
}

/// Length of the overlap of two spans.
fn overlap(one: (u64, u64), other: (u64, u64)) -> u64 {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}

/// Bits as a volume.
fn of_bits(bits: f64) -> Volume {
    (bits * 1024.0 * 1e9) as Volume
}
