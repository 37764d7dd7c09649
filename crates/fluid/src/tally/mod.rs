//! The engine for rules whose two ends exchange claims and grants (Tally, docs/explanation/tally.md), or whose control
//! packets visit the capacities (s-PERC, `circulation`): every message is an event, with the delay of its path, and may
//! be lost or late. Rates are piecewise constant and every integral is exact, as in the other engines; nothing is
//! stepped.
//!
//! A session starts at rate zero, regardless of `initial_rate`: it sends only at granted rates. A link without the rule
//! has no part in the exchange.

mod arrivals;
mod circulation;
mod event;
mod finish;
mod journey;
mod node;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairwave_scenario::Run;
use fairwave_schemes::global::metrics;
use fairwave_schemes::node::tally::{ClaimMessage, ClaimTo, GrantMessage, GrantTo, SessionTerms, SourceNode};
use fairwave_units::{Duration, Rate, Time};

use crate::Settings;
use crate::check::EngineKind;
use crate::ending;
use crate::error::FluidError;
use crate::grain::{self, Volume, grains};
use crate::optimum::Optimum;
use crate::plan::{FluidPlan, NONE};
use crate::queue::Queue;
use crate::record::Recorder;
use crate::report::FluidTotals;
use crate::track::Track;
use arrivals::Arrivals;
use circulation::Circulation;
use event::{TallyEvent, TallyEventKind};
use node::{TallyNode, below, constants, declares, nodes};

/// A session in the network.
#[derive(Clone, Debug, Default)]
struct TallyFlow {
    is_active: bool,
    /// The node of its source, and the rows of the resources that send it grants, in the order of its path.
    node: u32,
    remotes: Vec<u32>,
    demand_bps: f64,
    rate_bps: f64,
    /// Time since which it sends at this rate, and the volume sent since the last report to its source.
    since: u64,
    bits: f64,
    /// Whether data wait, and whether any did since the last report to its source.
    waits: bool,
    waited: bool,
    /// Remaining volume, if the size is finite.
    left: Option<Volume>,
    /// The number of the completion event that is valid.
    completion: u64,
    start: u64,
    end: u64,
    completed: Option<u64>,
    track: Track,
    /// Rates at the sink, each with the instant from which it applies.
    arrivals: Arrivals,
}

/// A session at a resource.
#[derive(Clone, Copy, Debug, Default)]
struct TallyRow {
    rate_bps: f64,
    /// Time up to which arrivals were reported to the resource.
    since: u64,
}

/// A run of the engine.
pub(crate) struct TallySimulator<'a> {
    plan: &'a FluidPlan<'a>,
    now: u64,
    events: BinaryHeap<Reverse<TallyEvent>>,
    pushed: u64,
    nodes: Vec<TallyNode>,
    /// The node that has the half of each resource; [`NONE`] if the resource is not a remote one.
    keepers: Vec<u32>,
    /// The control packets, if the rule has them instead of nodes.
    circulation: Option<Circulation>,
    flows: Vec<TallyFlow>,
    rows: Vec<TallyRow>,
    queues: Vec<Queue>,
    optimum: Optimum,
    optimum_is_due: bool,
    window: (u64, u64),
    closes_early: bool,
    /// Sessions that have not ended, and the time at which the last byte of the others arrives.
    open: usize,
    last_arrival: u64,
    totals: FluidTotals,
    /// Output of a half, to be sent.
    claims: Vec<ClaimTo>,
    grants: Vec<GrantTo>,
}

impl<'a> TallySimulator<'a> {
    pub(crate) fn new(plan: &'a FluidPlan<'a>, settings: &Settings<'_>) -> Result<Self, FluidError> {
        let (window, closes_early) = plan.window(settings.window);
        let circulation = (plan.engine == EngineKind::Circulation).then(|| Circulation::new(plan));
        let (nodes, keepers) =
            if circulation.is_some() { (Vec::new(), vec![NONE; plan.resources.len()]) } else { nodes(plan)? };
        let count = plan.scenario.sessions.len();
        let mut simulator = Self {
            plan,
            now: 0,
            events: BinaryHeap::new(),
            pushed: 0,
            nodes,
            keepers,
            circulation,
            flows: vec![TallyFlow::default(); count],
            rows: vec![TallyRow::default(); plan.rows.len()],
            queues: vec![Queue::default(); plan.resources.len()],
            optimum: Optimum::new(plan),
            optimum_is_due: false,
            window,
            closes_early,
            open: (0..count).filter(|k| plan.active(*k).is_some()).count(),
            last_arrival: 0,
            totals: FluidTotals::default(),
            claims: Vec::new(),
            grants: Vec::new(),
        };
        for at in 0..simulator.nodes.len() {
            for k in simulator.nodes[at].sessions.clone() {
                simulator.flows[k as usize].node = at as u32;
            }
        }
        for k in 0..count {
            simulator.lay_out(k)?;
        }
        for at in 0..simulator.nodes.len() {
            let first = simulator.nodes[at].schedule.first(simulator.largest_rtt(at, |flow| flow.start == 0));
            simulator.push(first.as_nanos(), TallyEventKind::Tick(at));
        }
        simulator.schedule_rounds();
        Ok(simulator)
    }

    /// Schedules the known events of a session.
    fn lay_out(&mut self, k: usize) -> Result<(), FluidError> {
        let plan = self.plan;
        let session = &plan.scenario.sessions[k];
        let choice = plan.scenario.scheme_of(session);
        let is_remote = |row: &&u32| self.keepers[plan.rows[**row as usize].resource as usize] != NONE;
        let remotes: Vec<u32> = plan.rows_of(k).iter().filter(is_remote).copied().collect();
        for row in &remotes {
            let crossing = &plan.rows[*row as usize];
            let longest = Duration::from_nanos(crossing.forward_ns.max(crossing.back_ns));
            let what = || format!("the one-way delay of session \"{}\"", session.name);
            below(longest, &constants(choice), 6, "a sixth", what)?;
        }
        let flow = &mut self.flows[k];
        flow.remotes = remotes;
        flow.left = session.size.map(|size| grain::of_bytes(size.get()));
        flow.start = u64::MAX;
        let Some((start, stop)) = plan.active(k) else { return Ok(()) };
        flow.start = start;
        flow.end = u64::MAX;
        self.push(start, TallyEventKind::Start(k));
        self.push(stop, TallyEventKind::Stop(k));
        for (at, demand) in plan.demand_steps(k) {
            self.push(at, TallyEventKind::Demand(k, demand));
        }
        Ok(())
    }

    fn push(&mut self, at: u64, kind: TallyEventKind) {
        self.pushed += 1;
        self.events.push(Reverse(TallyEvent { at, number: self.pushed, kind }));
    }

    /// Runs to the end.
    pub(crate) fn run(mut self, settings: &mut Settings<'_>) -> Result<Run, FluidError> {
        let mut recorder = Recorder::new(self.plan, settings.record);
        let step = (self.plan.end / 200).max(1);
        let mut next_progress = step;
        if let Some(at) = recorder.next() {
            self.push(at, TallyEventKind::Sample);
        }
        while let Some(Reverse(event)) = self.events.pop() {
            if event.at >= self.plan.end {
                break;
            }
            self.now = event.at;
            self.handle(event.kind, &mut recorder)?;
            self.totals.events += 1;
            if event.at >= next_progress || self.totals.events.is_multiple_of(crate::record::PROGRESS_TURNS) {
                next_progress = event.at.saturating_add(step);
                if let Some(progress) = &mut settings.progress {
                    progress(Time::from_nanos(event.at));
                }
            }
        }
        self.now = self.plan.end;
        if recorder.next().is_some() {
            self.sample(&mut recorder);
        }
        Ok(self.finish(recorder))
    }

    fn handle(&mut self, kind: TallyEventKind, recorder: &mut Recorder) -> Result<(), FluidError> {
        match kind {
            TallyEventKind::Sample => {
                self.sample(recorder);
                if let Some(at) = recorder.next() {
                    self.push(at, TallyEventKind::Sample);
                }
            }
            TallyEventKind::Arrive(row, bps) => self.arrive(row, bps),
            TallyEventKind::Grant(row, grant) => self.on_grant(row, &grant),
            TallyEventKind::Claim(row, claim) => self.on_claim(row, &claim),
            TallyEventKind::Visit(k, number, step) => self.visit(k, number, step),
            TallyEventKind::Repeat(k, number) => self.repeat(k, number),
            TallyEventKind::Round(ticker) => self.end_round(ticker),
            TallyEventKind::Complete(k, number) => {
                if self.flows[k].is_active && self.flows[k].completion == number {
                    let arrival = self.plan.last_arrival(k, self.now);
                    self.flows[k].completed = (arrival <= self.plan.end).then_some(arrival);
                    self.leave(k);
                }
            }
            TallyEventKind::Stop(k) => {
                if self.flows[k].is_active {
                    self.leave(k);
                }
            }
            TallyEventKind::Start(k) => self.start(k),
            TallyEventKind::Demand(k, bps) => {
                if self.flows[k].is_active {
                    self.flows[k].demand_bps = bps;
                    self.declare(k);
                    self.set_rate(k);
                    self.optimum_changes();
                }
            }
            TallyEventKind::Optimum => {
                self.find_optimum()?;
                recorder.max_min(self.now, self.pairs().map(|(_, optimum)| optimum));
            }
            TallyEventKind::Tick(at) => {
                self.tick(at);
                let now = self.now;
                let largest = self.largest_rtt(at, |flow| flow.start <= now && flow.is_active);
                let next = self.nodes[at].schedule.next(self.time(), largest);
                self.push(next.as_nanos(), TallyEventKind::Tick(at));
            }
            TallyEventKind::ExtraTick(at) => {
                self.nodes[at].reacts = false;
                self.tick(at);
            }
        }
        Ok(())
    }

    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// The largest RTT of a node's active sessions, or of all if no session is active; zero if the interval is fixed.
    fn largest_rtt(&self, at: usize, is_there: impl Fn(&TallyFlow) -> bool) -> Duration {
        let node = &self.nodes[at];
        if !node.schedule.follows_rtt() {
            return Duration::ZERO;
        }
        let crossing = node.rows.clone().map(|row| self.plan.rows[row].session).chain(node.sessions.iter().copied());
        let rtt = |k: u32| self.plan.scenario.sessions[k as usize].rtt;
        let there = crossing.clone().filter(|k| is_there(&self.flows[*k as usize])).map(rtt).max();
        there.or_else(|| crossing.map(rtt).max()).unwrap_or_default()
    }

    fn start(&mut self, k: usize) {
        let (now, session) = (self.time(), &self.plan.scenario.sessions[k]);
        let terms = SessionTerms { weight: session.weight, minimum: session.minimum, rtt: session.rtt };
        let demand_bps = self.plan.demand(k, self.now);
        let flow = &mut self.flows[k];
        flow.is_active = true;
        flow.demand_bps = demand_bps;
        flow.since = self.now;
        flow.track = Track::new(self.now);
        let (at, remotes) = (flow.node as usize, flow.remotes.len());
        let declared = self.declared(k);
        if self.circulation.is_some() {
            self.depart(k);
        } else {
            if let Some(source) = &mut self.nodes[at].source {
                source.open(now, k as u64, terms, declared, remotes, &mut self.claims);
            }
            self.send(at);
            self.react(at);
        }
        self.set_rate(k);
        self.predict(k);
        self.optimum_changes();
    }

    /// Stops sending; data first, then the bye.
    fn leave(&mut self, k: usize) {
        self.flows[k].is_active = false;
        self.flows[k].end = self.now;
        self.flows[k].completion = 0;
        self.set_rate(k);
        let (now, at) = (self.time(), self.flows[k].node as usize);
        // Without nodes the next return of the control packet ends the session.
        if let Some(source) = self.nodes.get_mut(at).and_then(|node| node.source.as_mut()) {
            source.close(now, k as u64, &mut self.claims);
            self.send(at);
            self.react(at);
        }
        self.open -= 1;
        self.last_arrival = self.last_arrival.max(self.plan.last_arrival(k, self.now));
        if self.closes_early && self.open == 0 {
            self.window.1 = self.window.1.min(self.last_arrival);
        }
        self.optimum_changes();
    }

    fn source_of(&self, k: usize) -> Option<&SourceNode> {
        self.nodes.get(self.flows[k].node as usize)?.source.as_ref()
    }

    fn declares(&self, k: usize) -> bool {
        declares(self.plan.scenario.scheme_of(&self.plan.scenario.sessions[k]))
    }

    /// The demand declared to its source in advance; `None` if it is undeclared or unlimited.
    fn declared(&self, k: usize) -> Option<Rate> {
        let demand_bps = self.flows[k].demand_bps;
        (self.declares(k) && demand_bps.is_finite()).then(|| Rate::nearest_bps(demand_bps))
    }

    fn declare(&mut self, k: usize) {
        let (declared, at) = (self.declared(k), self.flows[k].node as usize);
        if self.declares(k)
            && let Some(source) = &mut self.nodes[at].source
        {
            source.declare(k as u64, declared);
        }
    }

    /// Accounts for the volume that a session sent at its present rate.
    fn close(&mut self, k: usize) {
        let now = self.now;
        let flow = &mut self.flows[k];
        flow.track.close(flow.rate_bps, now);
        flow.bits += flow.rate_bps * Duration::from_nanos(now - flow.since).as_secs_f64();
        if let Some(left) = &mut flow.left {
            *left -= grain::volume(grains(flow.rate_bps), now - flow.since);
        }
        flow.since = now;
    }

    /// A session sends at the minimum of its allowed rate and its demand.
    fn set_rate(&mut self, k: usize) {
        let allowed = match &self.circulation {
            Some(circulation) => circulation.rate_bps(k),
            None => self.source_of(k).map_or(0.0, |source| source.rate(k as u64).as_bps()),
        };
        if self.flows[k].is_active || self.flows[k].rate_bps > 0.0 {
            self.close(k);
        }
        let flow = &mut self.flows[k];
        flow.waits = flow.is_active && flow.demand_bps > allowed * (1.0 + 1e-6);
        flow.waited |= flow.waits;
        let rate_bps = if flow.is_active { allowed.min(flow.demand_bps) } else { 0.0 };
        if rate_bps == flow.rate_bps {
            return;
        }
        flow.rate_bps = rate_bps;
        let plan = self.plan;
        for row in plan.rows_of(k) {
            match plan.rows[*row as usize].forward_ns {
                0 => self.arrive(*row as usize, rate_bps),
                forward => self.push(self.now + forward, TallyEventKind::Arrive(*row as usize, rate_bps)),
            }
        }
        if self.flows[k].is_active {
            self.predict(k);
        }
    }

    /// Schedules the completion of a session.
    fn predict(&mut self, k: usize) {
        let flow = &self.flows[k];
        let Some(left) = flow.left else { return };
        let Some(at) = ending::sent_at(left, grains(flow.rate_bps), flow.since) else {
            return self.flows[k].completion = 0;
        };
        self.flows[k].completion = self.pushed + 1;
        self.push(at, TallyEventKind::Complete(k, self.pushed + 1));
    }

    /// A new rate arrives at a resource.
    fn arrive(&mut self, row: usize, rate_bps: f64) {
        self.flush(row);
        let crossing = &self.plan.rows[row];
        let here = &self.plan.resources[crossing.resource as usize];
        let by = Volume::from(grains(rate_bps)) - Volume::from(grains(self.rows[row].rate_bps));
        self.rows[row].rate_bps = rate_bps;
        if here.capacity.is_some() {
            let queue = &mut self.queues[crossing.resource as usize];
            queue.advance(self.now, here.grains, self.window);
            queue.change(by);
        }
        let k = crossing.session as usize;
        if row == self.plan.sink_row(k) {
            self.flows[k].arrivals.push(self.now, grains(rate_bps));
        }
    }

    /// Reports a session's arrivals since the last report to a resource.
    fn flush(&mut self, row: usize) {
        let (now, crossing) = (self.now, &self.plan.rows[row]);
        let arrived = &mut self.rows[row];
        let bits = arrived.rate_bps * Duration::from_nanos(now - arrived.since).as_secs_f64();
        arrived.since = now;
        let keeper = self.keepers[crossing.resource as usize];
        if bits > 0.0
            && let Some(sink) = self.nodes.get_mut(keeper as usize).and_then(|node| node.sink.as_mut())
        {
            sink.received(u64::from(crossing.session), bits);
        }
    }

    fn on_claim(&mut self, row: usize, claim: &ClaimMessage) {
        self.flush(row);
        let crossing = &self.plan.rows[row];
        let (now, session) = (self.time(), &self.plan.scenario.sessions[crossing.session as usize]);
        let terms = SessionTerms { weight: session.weight, minimum: session.minimum, rtt: session.rtt };
        let at = self.keepers[crossing.resource as usize] as usize;
        let Some(sink) = self.nodes.get_mut(at).and_then(|node| node.sink.as_mut()) else { return };
        sink.on_claim(now, u64::from(crossing.session), &terms, claim, &mut self.grants);
        let has_news = sink.next_tick() <= now;
        self.answer(at);
        if has_news {
            self.react(at);
        }
    }

    fn on_grant(&mut self, row: usize, grant: &GrantMessage) {
        let (now, k) = (self.time(), self.plan.rows[row].session as usize);
        let at = self.flows[k].node as usize;
        let remote = self.flows[k].remotes.iter().position(|other| *other as usize == row);
        let (Some(remote), Some(source)) = (remote, &mut self.nodes[at].source) else { return };
        source.on_grant(now, k as u64, remote, grant, &mut self.claims);
        let has_news = source.has_news();
        // The rate first: a confirmation does not overtake the data that precede it.
        self.set_rate(k);
        self.send(at);
        if has_news {
            self.react(at);
        }
    }

    fn tick(&mut self, at: usize) {
        self.tick_source(at);
        self.tick_sink(at);
    }

    fn tick_source(&mut self, at: usize) {
        let now = self.time();
        for place in 0..self.nodes[at].sessions.len() {
            let k = self.nodes[at].sessions[place] as usize;
            if self.flows[k].is_active {
                self.close(k);
                let flow = &mut self.flows[k];
                if let Some(source) = &mut self.nodes[at].source {
                    source.sent(k as u64, flow.bits, flow.waited || flow.waits);
                }
                (flow.bits, flow.waited) = (0.0, false);
            }
        }
        let Some(source) = &mut self.nodes[at].source else { return };
        source.tick(now, &mut self.claims);
        for place in 0..self.nodes[at].sessions.len() {
            let k = self.nodes[at].sessions[place] as usize;
            if self.flows[k].is_active {
                self.set_rate(k);
            }
        }
        self.send(at);
    }

    fn tick_sink(&mut self, at: usize) {
        let now = self.time();
        if self.nodes[at].sink.as_ref().is_none_or(|sink| now < sink.next_tick()) {
            return;
        }
        for row in self.nodes[at].rows.clone() {
            self.flush(row);
        }
        if let Some(sink) = &mut self.nodes[at].sink {
            sink.tick(now, &mut self.grants);
        }
        self.answer(at);
    }

    /// An end that received news ticks an additional time, soon.
    fn react(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let Some(after) = node.react.filter(|_| !node.reacts) {
            node.reacts = true;
            self.push(self.now.saturating_add(after), TallyEventKind::ExtraTick(at));
        }
    }

    /// Sends claims.
    fn send(&mut self, at: usize) {
        let mut claims = std::mem::take(&mut self.claims);
        for claim in claims.drain(..) {
            self.totals.messages += 1;
            let Some(late) = self.nodes[at].mail.fate() else { continue };
            let row = self.flows[claim.session as usize].remotes[claim.remote] as usize;
            let arrival = self.now.saturating_add(self.plan.rows[row].forward_ns).saturating_add(late);
            self.push(arrival, TallyEventKind::Claim(row, claim.message));
        }
        self.claims = claims;
    }

    /// Sends grants.
    fn answer(&mut self, at: usize) {
        let mut grants = std::mem::take(&mut self.grants);
        for grant in grants.drain(..) {
            self.totals.messages += 1;
            let Some(late) = self.nodes[at].mail.fate() else { continue };
            let rows = &self.nodes[at].rows;
            let remotes = &self.flows[grant.session as usize].remotes;
            let Some(row) = remotes.iter().map(|row| *row as usize).find(|row| rows.contains(row)) else { continue };
            let arrival = self.now.saturating_add(self.plan.rows[row].back_ns).saturating_add(late);
            self.push(arrival, TallyEventKind::Grant(row, grant.message));
        }
        self.grants = grants;
    }

    fn optimum_changes(&mut self) {
        if !self.optimum_is_due {
            self.optimum_is_due = true;
            self.push(self.now, TallyEventKind::Optimum);
        }
    }

    fn find_optimum(&mut self) -> Result<(), FluidError> {
        self.optimum_is_due = false;
        for k in 0..self.flows.len() {
            if self.flows[k].is_active {
                self.close(k);
            }
        }
        let (flows, mut rates) = (&self.flows, Vec::new());
        let wants = |k: usize| flows[k].is_active.then_some(flows[k].demand_bps);
        self.optimum.solve(self.plan, wants, |k, rate| rates.push((k, rate)))?;
        for (k, rate) in rates {
            self.flows[k].track.optimum_bps = rate;
        }
        if self.now == 0 {
            self.totals.distance_start_bps = self.distance();
        }
        Ok(())
    }

    /// Rates of the sessions with their max-min rates; both are zero if a session is not active.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.flows.iter().map(|flow| if flow.is_active { (flow.rate_bps, flow.track.optimum_bps) } else { (0.0, 0.0) })
    }

    fn distance(&self) -> f64 {
        metrics::norm_of(self.pairs().map(|(rate, optimum)| rate - optimum))
    }
}
