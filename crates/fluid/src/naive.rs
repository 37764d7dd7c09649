//! The reference engine: one event per change.
//!
//! Every change of a rate is an event at its source, and one at each resource that it reaches, and every grant is an
//! event when it arrives. Nothing is deferred. Simultaneous events are in the order of [`NaiveEventKind`], then of the
//! row, session or ticker, then of their creation: first arrivals of rates and grants, then leaves, joins and changes
//! of demand, then ticks; so a change at t counts for the interval that starts at t.

mod event;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairwave_scenario::{Run, Scenario};
use fairwave_schemes::global::metrics;
use fairwave_schemes::node;
use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::{Duration, Rate, Time};

use crate::Settings;
use crate::ending;
use crate::error::FluidError;
use crate::grain::{self, Volume, grains};
use crate::meter::RateAverage;
use crate::optimum::Optimum;
use crate::plan::{FluidPlan, NONE};
use crate::queue::Queue;
use crate::record::{RateSample, Recorder};
use crate::report::{FluidTotals, ResourceLoad, SessionOutcome, report};
use crate::track::Track;
use crate::trail::Trail;
use event::{NaiveEvent, NaiveEventKind};

struct SessionState {
    active: bool,
    /// Grants of the rules along the path, as far as the source has received them; infinity if no rule runs.
    heard: Vec<f64>,
    demand: f64,
    rate: f64,
    start_rate: f64,
    since: u64,
    /// Remaining volume, if the size is finite.
    left: Option<Volume>,
    /// The number of the completion event that is valid.
    completion: u64,
    end: u64,
    completed: Option<u64>,
    track: Track,
    /// Rates at the sink, each with the instant from which it applies.
    arrivals: Trail,
}

struct RowState {
    row: Row,
    present: bool,
    /// The rate that arrives.
    rate: f64,
    meter: RateAverage,
    expected: f64,
    target: f64,
    measured: f64,
    /// Time at which the session's first bit arrives.
    from: u64,
}

struct Naive<'a> {
    plan: &'a FluidPlan<'a>,
    now: u64,
    numbers: u64,
    events: BinaryHeap<Reverse<NaiveEvent>>,
    sessions: Vec<SessionState>,
    rows: Vec<RowState>,
    queues: Vec<Queue>,
    allocators: Vec<Option<Box<dyn RateAllocator>>>,
    /// The last tick of each ticker.
    last: Vec<Option<u64>>,
    optimum: Optimum,
    optimum_is_due: bool,
    window: (u64, u64),
    closes_early: bool,
    /// Sessions that have not ended, and the time at which the last byte of the others arrives.
    open: usize,
    last_arrival: u64,
    totals: FluidTotals,
}

/// Runs a scenario with the reference engine. The result is that of [`crate::simulate`], to the last bit.
pub(crate) fn simulate_naive(scenario: &Scenario, mut settings: Settings<'_>) -> Result<Run, FluidError> {
    let plan = FluidPlan::new(scenario)?;
    let mut engine = Naive::new(&plan, &settings);
    let mut recorder = Recorder::new(&plan, settings.record);
    let step = (plan.end / 200).max(1);
    let mut next_progress = step;
    if let Some(at) = recorder.next() {
        engine.push(at, NaiveEventKind::Sample, 0, 0.0);
    }
    while let Some(Reverse(event)) = engine.events.pop() {
        if event.at >= plan.end {
            break;
        }
        engine.now = event.at;
        if event.kind == NaiveEventKind::Sample {
            engine.sample(&mut recorder);
            if let Some(at) = recorder.next() {
                engine.push(at, NaiveEventKind::Sample, 0, 0.0);
            }
        } else {
            engine.handle(&event, &mut recorder)?;
        }
        if event.at >= next_progress {
            next_progress = event.at + step;
            if let Some(progress) = &mut settings.progress {
                progress(Time::from_nanos(event.at));
            }
        }
    }
    engine.now = plan.end;
    if recorder.next().is_some() {
        engine.sample(&mut recorder);
    }
    Ok(engine.finish(recorder))
}

impl<'a> Naive<'a> {
    fn new(plan: &'a FluidPlan<'a>, settings: &Settings<'_>) -> Self {
        let (window, closes_early) = plan.window(settings.window);
        let sessions = (0..plan.scenario.sessions.len())
            .map(|k| SessionState {
                active: false,
                heard: vec![f64::INFINITY; plan.rows_of(k).len()],
                demand: f64::INFINITY,
                rate: 0.0,
                start_rate: 0.0,
                since: 0,
                left: plan.scenario.sessions[k].size.map(|size| grain::of_bytes(size.get())),
                completion: 0,
                end: 0,
                completed: None,
                track: Track::default(),
                arrivals: Trail::default(),
            })
            .collect();
        let rows = (0..plan.rows.len())
            .map(|row| RowState {
                row: plan.row(row),
                present: false,
                rate: 0.0,
                meter: RateAverage::default(),
                expected: 0.0,
                target: 0.0,
                measured: 0.0,
                from: 0,
            })
            .collect();
        let mut engine = Self {
            plan,
            now: 0,
            numbers: 0,
            events: BinaryHeap::new(),
            sessions,
            rows,
            queues: vec![Queue::default(); plan.resources.len()],
            allocators: (0..plan.resources.len()).map(|resource| plan.allocator(resource)).collect(),
            last: vec![None; plan.tickers.len()],
            optimum: Optimum::new(plan),
            optimum_is_due: false,
            window,
            closes_early,
            open: (0..plan.scenario.sessions.len()).filter(|k| plan.active(*k).is_some()).count(),
            last_arrival: 0,
            totals: FluidTotals::default(),
        };
        for k in 0..engine.sessions.len() {
            let Some((start, stop)) = plan.active(k) else { continue };
            engine.push(start, NaiveEventKind::Join, k, 0.0);
            engine.push(start, NaiveEventKind::Start, k, 0.0);
            engine.push(stop, NaiveEventKind::Stop, k, 0.0);
            for (at, demand) in plan.demand_steps(k) {
                engine.push(at, NaiveEventKind::Demand, k, demand);
            }
        }
        for (t, ticker) in plan.tickers.iter().enumerate() {
            let starts_at_once =
                |row: usize| plan.active(plan.rows[row].session as usize).is_some_and(|(start, _)| start == 0);
            let first = ticker.first(plan.largest_rtt(t, starts_at_once));
            engine.push(first, NaiveEventKind::Tick, t, 0.0);
        }
        engine
    }

    fn push(&mut self, at: u64, kind: NaiveEventKind, whom: usize, bps: f64) {
        self.numbers += 1;
        self.events.push(Reverse(NaiveEvent { at, kind, whom, number: self.numbers, bps }));
    }

    fn handle(&mut self, event: &NaiveEvent, recorder: &mut Recorder) -> Result<(), FluidError> {
        let (now, whom) = (self.now, event.whom);
        match event.kind {
            NaiveEventKind::Sample => {}
            NaiveEventKind::Hear => {
                let crossing = &self.plan.rows[whom];
                let session = crossing.session as usize;
                let place = self.place(whom);
                self.sessions[session].heard[place] = event.bps;
                self.set_rate(session);
            }
            NaiveEventKind::Arrive => self.arrive(whom, event.bps),
            NaiveEventKind::Complete => {
                if self.sessions[whom].active && self.sessions[whom].completion == event.number {
                    let arrival = now + self.plan.rows[self.plan.sink_row(whom)].forward_ns;
                    self.sessions[whom].completed = (arrival <= self.plan.end).then_some(arrival);
                    self.leave(whom);
                }
            }
            NaiveEventKind::Stop => {
                if self.sessions[whom].active {
                    self.leave(whom);
                }
            }
            NaiveEventKind::Vanish => self.rows[whom].present = false,
            NaiveEventKind::Join => {
                for row in self.plan.rows_of(whom) {
                    let forward = self.plan.rows[*row as usize].forward_ns;
                    let row = &mut self.rows[*row as usize];
                    row.present = true;
                    row.from = now + forward;
                    row.row.terms.desired = None;
                }
            }
            NaiveEventKind::Start => self.start(whom),
            NaiveEventKind::Demand => {
                if self.sessions[whom].active {
                    self.want(whom, event.bps);
                    self.totals.events += 1;
                    self.set_rate(whom);
                    self.optimum_changes();
                }
            }
            NaiveEventKind::Optimum => {
                self.find_optimum()?;
                recorder.max_min(now, self.pairs().map(|(_, optimum)| optimum));
            }
            NaiveEventKind::Tick => self.tick(whom),
        }
        Ok(())
    }

    fn start(&mut self, k: usize) {
        let session = &self.plan.scenario.sessions[k];
        let start_rate = if self.plan.starts_fair(k) {
            let ends = self.plan.rows_of(k).iter().filter_map(|row| self.weights_at(*row as usize));
            node::fair_start(session.weight, ends).unwrap_or(Rate::ZERO).as_bps()
        } else {
            session.initial_rate.as_bps()
        };
        for (place, row) in self.plan.rows_of(k).iter().enumerate() {
            let ruled = self.plan.resources[self.plan.rows[*row as usize].resource as usize].allocatable.is_some();
            self.sessions[k].heard[place] = if ruled { start_rate } else { f64::INFINITY };
            self.rows[*row as usize].expected = start_rate;
            self.rows[*row as usize].target = start_rate;
            self.rows[*row as usize].measured = start_rate;
        }
        let session = &mut self.sessions[k];
        session.active = true;
        session.start_rate = start_rate;
        session.since = self.now;
        session.track = Track::new(self.now);
        self.want(k, self.plan.demand(k, self.now));
        self.totals.events += 1;
        self.set_rate(k);
        self.predict(k);
        self.optimum_changes();
    }

    /// The capacity that a rule shares at a row, and the total weight of the sessions there, including newcomers.
    fn weights_at(&self, row: usize) -> Option<(Rate, f64)> {
        let here = &self.plan.resources[self.plan.rows[row].resource as usize];
        let present = here.rows.clone().filter(|row| self.rows[*row].present);
        let weights = present.map(|row| self.rows[row].row.terms.weight).sum();
        here.allocatable.map(|capacity| (capacity, weights))
    }

    /// The session stops sending.
    fn leave(&mut self, k: usize) {
        self.close(k);
        let session = &mut self.sessions[k];
        session.active = false;
        session.end = self.now;
        self.open -= 1;
        self.last_arrival = self.last_arrival.max(self.plan.last_arrival(k, self.now));
        if self.closes_early && self.open == 0 {
            self.window.1 = self.window.1.min(self.last_arrival);
        }
        self.totals.events += 1;
        self.change_rate(k, 0.0);
        for row in self.plan.rows_of(k) {
            let forward = self.plan.rows[*row as usize].forward_ns;
            if forward == 0 {
                self.rows[*row as usize].present = false;
            } else {
                self.push(self.now + forward, NaiveEventKind::Vanish, *row as usize, 0.0);
            }
        }
        self.optimum_changes();
    }

    fn want(&mut self, k: usize, demand: f64) {
        self.sessions[k].demand = demand;
        // Only the source knows its session's demand.
        let row = self.plan.rows_of(k)[0] as usize;
        if matches!(self.plan.resources[self.plan.rows[row].resource as usize].place, crate::plan::ResourceKind::Out(_))
        {
            self.rows[row].row.terms.desired = demand.is_finite().then(|| Rate::nearest_bps(demand));
        }
    }

    /// Place of a row in its session's path.
    fn place(&self, row: usize) -> usize {
        let rows = self.plan.rows_of(self.plan.rows[row].session as usize);
        rows.iter().position(|other| *other as usize == row).expect("a session's row is on its path")
    }

    /// The source sends at the minimum of its grants and its demand.
    fn set_rate(&mut self, k: usize) {
        let session = &self.sessions[k];
        if session.active {
            let rate = session.heard.iter().copied().fold(session.demand, f64::min);
            if rate != session.rate {
                self.close(k);
                self.change_rate(k, rate);
                self.predict(k);
            }
        }
    }

    /// Accounts for the volume that the source sent at its present rate.
    fn close(&mut self, k: usize) {
        let session = &mut self.sessions[k];
        session.track.close(session.rate, self.now);
        if let Some(left) = &mut session.left {
            *left -= grain::volume(grains(session.rate), self.now - session.since);
        }
        session.since = self.now;
    }

    fn change_rate(&mut self, k: usize, rate: f64) {
        self.sessions[k].rate = rate;
        self.totals.events += 1;
        for row in self.plan.rows_of(k) {
            self.push(self.now + self.plan.rows[*row as usize].forward_ns, NaiveEventKind::Arrive, *row as usize, rate);
        }
    }

    /// Schedules the completion of the session.
    fn predict(&mut self, k: usize) {
        let session = &self.sessions[k];
        let Some(left) = session.left else { return };
        let Some(at) = ending::sent_at(left, grains(session.rate), session.since) else {
            return self.sessions[k].completion = 0;
        };
        self.push(at, NaiveEventKind::Complete, k, 0.0);
        self.sessions[k].completion = self.numbers;
    }

    fn arrive(&mut self, row: usize, rate: f64) {
        let crossing = &self.plan.rows[row];
        let here = &self.plan.resources[crossing.resource as usize];
        let state = &mut self.rows[row];
        state.meter.close(state.rate, self.now);
        let by = Volume::from(grains(rate)) - Volume::from(grains(state.rate));
        state.rate = rate;
        if here.capacity.is_some() {
            let queue = &mut self.queues[crossing.resource as usize];
            queue.advance(self.now, here.grains, self.window);
            queue.change(by);
        }
        let session = crossing.session as usize;
        if row == self.plan.sink_row(session) {
            self.sessions[session].arrivals.push(self.now, grains(rate));
        }
    }

    fn optimum_changes(&mut self) {
        if !self.optimum_is_due {
            self.optimum_is_due = true;
            self.push(self.now, NaiveEventKind::Optimum, 0, 0.0);
        }
    }

    fn find_optimum(&mut self) -> Result<(), FluidError> {
        self.optimum_is_due = false;
        for k in 0..self.sessions.len() {
            if self.sessions[k].active {
                self.close(k);
            }
        }
        let mut rates = vec![0.0; self.sessions.len()];
        let wants = |k: usize| self.sessions[k].active.then_some(self.sessions[k].demand);
        self.optimum.solve(self.plan, wants, |k, rate| rates[k] = rate)?;
        for (session, rate) in self.sessions.iter_mut().zip(rates) {
            if session.active {
                session.track.optimum_bps = rate;
            }
        }
        if self.now == 0 {
            self.totals.distance_start_bps = self.distance();
        }
        Ok(())
    }

    /// Rates of the sessions with their max-min rates; both are zero if a session is not active.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.sessions.iter().map(
            |session| {
                if session.active { (session.rate, session.track.optimum_bps) } else { (0.0, 0.0) }
            },
        )
    }

    fn distance(&self) -> f64 {
        metrics::norm_of(self.pairs().map(|(rate, optimum)| rate - optimum))
    }

    fn tick(&mut self, t: usize) {
        let ticker = &self.plan.tickers[t];
        self.totals.events += 1;
        for resource in ticker.resources {
            if resource != NONE {
                self.allocate(resource as usize, self.last[t]);
            }
        }
        self.last[t] = Some(self.now);
        let next = ticker.next(self.now, self.plan.largest_rtt(t, |row| self.rows[row].present));
        self.push(next, NaiveEventKind::Tick, t, 0.0);
    }

    fn allocate(&mut self, resource: usize, last: Option<u64>) {
        let here = &self.plan.resources[resource];
        let (Some(capacity), now) = (here.allocatable, self.now) else { return };
        let present: Vec<usize> = here.rows.clone().filter(|row| self.rows[*row].present).collect();
        let mut rows = Vec::new();
        for row in &present {
            let state = &mut self.rows[*row];
            state.meter.close(state.rate, now);
            // A rate counts as measured once the session was active for a whole interval.
            let measured = match last {
                Some(last) if state.from <= last => grain::counted(state.meter.mean(last)),
                _ => self.sessions[self.plan.rows[*row].session as usize].start_rate,
            };
            rows.push(Row { measured: Rate::nearest_bps(measured), ..state.row });
        }
        for row in here.rows.clone() {
            self.rows[row].meter = RateAverage::new(now);
        }
        let mut grants = vec![Grant::default(); rows.len()];
        let elapsed = Duration::from_nanos(last.map_or(0, |last| now - last));
        if let Some(allocator) = &mut self.allocators[resource] {
            allocator.allocate(&Interval { capacity, elapsed }, &rows, &mut grants);
        }
        for ((row, measured), grant) in present.into_iter().zip(rows).zip(grants) {
            self.rows[row].expected = grant.expected.as_bps();
            self.rows[row].target = grant.target.as_bps();
            self.rows[row].measured = measured.measured.as_bps();
            let crossing = &self.plan.rows[row];
            if here.place.is_source() {
                let session = crossing.session as usize;
                self.sessions[session].heard[0] = grant.expected.as_bps();
                self.set_rate(session);
            } else {
                self.push(now + crossing.back_ns, NaiveEventKind::Hear, row, grant.expected.as_bps());
            }
        }
    }

    fn sample(&mut self, recorder: &mut Recorder) {
        let record = recorder.record();
        if record.rates {
            recorder.rates((0..self.sessions.len()).map(|k| self.rate_sample(k)));
        }
        if record.queues {
            let finite =
                self.plan.resources.iter().zip(&self.queues).filter(|(resource, _)| resource.capacity.is_some());
            recorder.queues(finite.map(|(resource, queue)| queue.backlog_at(self.now, resource.grains)));
        }
        if record.distances {
            recorder.distance(self.pairs());
        }
        recorder.step();
    }

    fn rate_sample(&self, k: usize) -> RateSample {
        let session = &self.sessions[k];
        let delivered = session.arrivals.volume(0, self.now);
        let ruled =
            |row: &&u32| self.plan.resources[self.plan.rows[**row as usize].resource as usize].allocatable.is_some();
        let none = f64::NAN;
        let mut sample = RateSample {
            delivered,
            source_expected_bps: none,
            sink_expected_bps: none,
            target_bps: none,
            measured_bps: none,
        };
        if session.active {
            for (row, heard) in self.plan.rows_of(k).iter().zip(&session.heard).filter(|(row, _)| ruled(row)) {
                let resource = self.plan.rows[*row as usize].resource as usize;
                if self.plan.resources[resource].place.is_source() {
                    sample.source_expected_bps = *heard;
                } else {
                    sample.sink_expected_bps = sample.sink_expected_bps.min(*heard);
                }
                sample.target_bps = sample.target_bps.min(self.rows[*row as usize].target);
                sample.measured_bps = self.rows[*row as usize].measured;
            }
        }
        sample
    }

    fn finish(mut self, recorder: Recorder) -> Run {
        let plan = self.plan;
        for k in 0..self.sessions.len() {
            if self.sessions[k].active {
                self.close(k);
                self.sessions[k].end = plan.end;
            }
        }
        self.totals.converged = ending::converged(plan, self.sessions.iter().map(|one| &one.track));
        self.totals.distance_final_bps = self.distance();
        ending::close_queues(plan, &mut self.queues, self.window);
        let outcomes = self.sessions.iter().enumerate().map(|(k, one)| {
            let Some((start, _)) = plan.active(k) else { return SessionOutcome::default() };
            let arrived = |from, to| one.arrivals.volume(from, to);
            ending::outcome((start, one.end, plan.end), self.window, &one.track, one.completed, arrived)
        });
        let loads: Vec<_> = self.queues.iter().map(ResourceLoad::from).collect();
        report(plan, self.window, outcomes, &loads, &self.totals, recorder)
    }
}
