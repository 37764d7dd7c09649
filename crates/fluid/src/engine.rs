//! The fast engine: ticks are the events. Changes in between are evaluated when a tick needs them, in the order in
//! which they happened, so that the result equals that of the reference engine to the last bit.
//!
//! Joins, leaves, changes of demand, ends of samples, and events of a session of finite size are evaluated on time as
//! well, since they change other sessions' rates.

use fairwave_scenario::Run;
use fairwave_scenario::report::KnownRates;
use fairwave_schemes::node::fair_start;
use fairwave_schemes::{Grant, Interval, RateAllocator, Row as TableRow};
use fairwave_units::{Duration, Rate};

use crate::Settings;
use crate::calendar::Calendar;
use crate::error::FluidError;
use crate::flows::{FlowState, Flows};
use crate::grain::{self, Grains, Volume};
use crate::optimum::Optimum;
use crate::plan::{FluidPlan, NONE};
use crate::post::{KnownRow, Post, posts};
use crate::queue::Queue;
use crate::record::{Progress, RateSample, Recorder};
use crate::report::{FluidTotals, ResourceLoad, SessionOutcome, report};

/// Interval in nanoseconds at which a link without a rule reads its arrivals.
const LOOK_INTERVAL: u64 = 100_000_000;

/// Rows from which on a run is too large for the processor's caches.
const LARGE_ROWS: usize = 10_000;

/// Scheduled changes, in the order in which simultaneous ones happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScheduledChange {
    Stop,
    Start,
    Demand,
}

/// The rates of a row at its rule's last tick.
#[derive(Clone, Copy, Debug, Default)]
struct LastTick {
    measured_bps: f64,
    target_bps: f64,
}

/// A run of the fast engine.
pub(crate) struct FluidSimulator<'a> {
    plan: &'a FluidPlan<'a>,
    now: u64,
    flows: Flows<'a>,
    /// The rules' inputs for the rows in addition to measured rates: an entry for each row of a resource in order, or
    /// one for all.
    table: Vec<KnownRow>,
    /// Measured and target rates of the rows, if rates are recorded.
    last_ticks: Vec<LastTick>,
    posts: Vec<Post>,
    /// The rules; resources share one without state.
    allocators: Vec<Box<dyn RateAllocator>>,
    /// Finite links without a rule; they come after the tickers in the calendar.
    looks: Vec<u32>,
    calendar: Calendar,
    controls: Vec<(u64, ScheduledChange, u32)>,
    next_control: usize,
    optimum: Optimum,
    /// The window of the means.
    window: (u64, u64),
    /// Whether the window closes with the last session that ends.
    closes_early: bool,
    /// Whether the run is too large for the processor's caches.
    is_large: bool,
    /// The maximum load of a node over its capacity so far.
    peak: f64,
    totals: FluidTotals,
    ticks: u64,
    /// Scratch space of a tick: indices of the active rows, their table, their grants.
    present: Vec<u32>,
    gathered: Vec<TableRow>,
    grants: Vec<Grant>,
}

impl<'a> FluidSimulator<'a> {
    pub(crate) fn new(plan: &'a FluidPlan<'a>, settings: &Settings<'_>) -> Self {
        let (window, closes_early) = plan.window(settings.window);
        let flows = Flows::new(plan, window);
        let mut controls = Vec::new();
        for k in 0..plan.scenario.sessions.len() {
            let Some((start, stop)) = plan.active(k) else { continue };
            controls.push((start, ScheduledChange::Start, k as u32));
            if stop < plan.end {
                controls.push((stop, ScheduledChange::Stop, k as u32));
            }
            controls.extend(plan.demand_steps(k).map(|(at, _)| (at, ScheduledChange::Demand, k as u32)));
        }
        controls.sort_unstable();
        let is_look = |resource: &u32| {
            let here = &plan.resources[*resource as usize];
            here.capacity.is_some() && here.allocatable.is_none() && !here.rows.is_empty()
        };
        let looks: Vec<u32> = (0..plan.resources.len() as u32).filter(is_look).collect();
        let starts_at_once = |row: usize| flows.all[flows.rows[row].session as usize].start == 0;
        let rtts: Vec<u64> = (0..plan.tickers.len()).map(|t| plan.largest_rtt(t, starts_at_once)).collect();
        let intervals = plan.tickers.iter().zip(&rtts).map(|(ticker, rtt)| ticker.interval_ns(*rtt));
        let mut calendar = Calendar::new(intervals.chain(looks.iter().map(|_| LOOK_INTERVAL)));
        for (t, (ticker, rtt)) in plan.tickers.iter().zip(&rtts).enumerate() {
            push_before(&mut calendar, t as u32, ticker.first(*rtt), plan.end);
        }
        for look in 0..looks.len() {
            push_before(&mut calendar, (plan.tickers.len() + look) as u32, LOOK_INTERVAL, plan.end);
        }
        let (posts, table, allocators) = posts(plan);
        Self {
            plan,
            now: 0,
            flows,
            table,
            last_ticks: if settings.record.rates { vec![LastTick::default(); plan.rows.len()] } else { Vec::new() },
            posts,
            allocators,
            looks,
            calendar,
            controls,
            next_control: 0,
            optimum: Optimum::new(plan),
            window,
            closes_early,
            is_large: plan.rows.len() > LARGE_ROWS,
            peak: 0.0,
            totals: FluidTotals::default(),
            ticks: 0,
            present: Vec::new(),
            gathered: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// Runs to the end.
    pub(crate) fn run(mut self, settings: &mut Settings<'_>) -> Result<Run, FluidError> {
        let mut recorder = Recorder::new(self.plan, settings.record);
        let mut progress = Progress::new(self.plan.end);
        loop {
            progress.turn(self.now, settings);
            let tick = self.calendar.peek().map_or(u64::MAX, |(at, _)| at);
            let wake = self.flows.next_wake();
            let control = self.controls.get(self.next_control).map_or(u64::MAX, |(at, ..)| *at);
            let before_tick = wake.min(control);
            if self.flows.is_changed && before_tick > self.now {
                self.find_optimum(&mut recorder)?;
                continue;
            }
            let sample = recorder.next().unwrap_or(u64::MAX);
            let next = tick.min(before_tick);
            if sample < self.plan.end && sample <= next {
                self.now = sample;
                self.sample(&mut recorder);
                continue;
            }
            if next >= self.plan.end {
                break;
            }
            self.now = next;
            if self.is_large {
                self.fetch_day();
            }
            if wake == next {
                self.flows.wake();
            } else if control == next {
                self.control();
            } else {
                self.tick();
            }
            self.close_window();
        }
        self.now = self.plan.end;
        if recorder.next().is_some() {
            self.sample(&mut recorder);
        }
        Ok(self.finish(recorder))
    }

    /// If all sessions have ended, the window ends with the last arrival. No queue has been evaluated beyond the
    /// present.
    #[inline]
    fn close_window(&mut self) {
        if self.closes_early && self.flows.open == 0 && self.flows.last_arrival > 0 {
            self.window.1 = self.window.1.min(self.flows.last_arrival);
        }
    }

    /// A start, stop or change of demand.
    fn control(&mut self) {
        let (_, control, k) = self.controls[self.next_control];
        self.next_control += 1;
        let k = k as usize;
        match control {
            ScheduledChange::Stop => self.flows.stop(k, self.now),
            ScheduledChange::Demand => {
                self.flows.want(k, self.now, self.plan.demand(k, self.now));
                self.say_demand(k);
            }
            ScheduledChange::Start => {
                let session = &self.plan.scenario.sessions[k];
                let start_rate = if self.plan.starts_fair(k) {
                    let ends = self.plan.rows_of(k).iter().filter_map(|row| self.weights_at(*row as usize));
                    fair_start(session.weight, ends).unwrap_or(Rate::ZERO)
                } else {
                    session.initial_rate
                };
                self.flows.start(k, self.now, start_rate.as_bps());
                self.say_demand(k);
                if !self.last_ticks.is_empty() {
                    let start_bps = start_rate.as_bps();
                    for row in self.plan.rows_of(k) {
                        self.last_ticks[*row as usize] = LastTick { measured_bps: start_bps, target_bps: start_bps };
                    }
                }
            }
        }
    }

    /// Only the source knows its session's demand.
    fn say_demand(&mut self, k: usize) {
        let row = self.plan.rows_of(k)[0] as usize;
        let post = &self.posts[self.plan.rows[row].resource as usize];
        if post.is_source {
            let demand = self.flows.all[k].demand;
            self.table[post.entry(row)].0.terms.desired = demand.is_finite().then(|| Rate::nearest_bps(demand));
        }
    }

    /// The capacity that a rule shares at a row, and the total weight of the sessions there, including newcomers.
    fn weights_at(&self, row: usize) -> Option<(Rate, f64)> {
        let resource = self.plan.rows[row].resource as usize;
        let (here, post) = (&self.plan.resources[resource], &self.posts[resource]);
        let present = here.rows.clone().filter(|row| self.is_present(*row));
        let weights = present.map(|row| self.table[post.entry(row)].0.terms.weight).sum();
        here.allocatable.map(|capacity| (capacity, weights))
    }

    fn is_present(&self, row: usize) -> bool {
        let row = &self.flows.rows[row];
        self.flows.all[row.session as usize].is_at(self.now, row.forward_ns)
    }

    fn find_optimum(&mut self, recorder: &mut Recorder) -> Result<(), FluidError> {
        let now = self.now;
        self.flows.is_changed = false;
        for k in 0..self.flows.all.len() {
            if self.flows.all[k].is_active() {
                self.flows.advance(k, now);
                let flow = &mut self.flows.all[k];
                flow.track.close(flow.rate, now);
            }
        }
        let flows = self.flows.all.iter_mut();
        self.optimum.find(self.plan, flows.map(|flow| (flow.is_active().then_some(flow.demand), &mut flow.track)))?;
        recorder.max_min(now, self.pairs());
        Ok(())
    }

    /// Rates of the sessions with their max-min rates; both are zero if a session is not active.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.flows.all.iter().map(
            |flow| {
                if flow.is_active() { (flow.rate, flow.track.optimum_bps) } else { (0.0, 0.0) }
            },
        )
    }

    fn tick(&mut self) {
        let Some((_, t)) = self.calendar.peek() else { return };
        self.calendar.pop();
        let now = self.now;
        let Some(ticker) = self.plan.tickers.get(t as usize) else {
            let resource = self.looks[t as usize - self.plan.tickers.len()] as usize;
            self.look(resource);
            return push_before(&mut self.calendar, t, now + LOOK_INTERVAL, self.plan.end);
        };
        self.ticks += 1;
        for resource in ticker.resources {
            if resource != NONE {
                self.allocate(resource as usize);
            }
        }
        let rtt = if ticker.follows_rtt() { self.plan.largest_rtt(t as usize, |row| self.is_present(row)) } else { 0 };
        push_before(&mut self.calendar, t, ticker.next(now, rtt), self.plan.end);
    }

    /// Touches the memory that the ticks of a new day will read, level by level, so that the processor fetches the data
    /// of many sessions at the same time instead of waiting for one after another.
    fn fetch_day(&mut self) {
        let day = self.calendar.new_day();
        if day.is_empty() {
            return;
        }
        let plan = self.plan;
        let resources = || {
            let tickers = day.iter().filter_map(|(_, t)| plan.tickers.get(*t as usize));
            tickers.flat_map(|ticker| ticker.resources).filter(|resource| *resource != NONE)
        };
        let rows = || resources().flat_map(|resource| self.posts[resource as usize].rows());
        let mut touched = 0_u64;
        for (_, t) in day {
            touched ^= plan.tickers.get(*t as usize).map_or(0, |ticker| u64::from(ticker.follows_rtt()));
        }
        for resource in resources() {
            let post = &self.posts[resource as usize];
            touched ^= post.seen ^ post.queue.touch();
        }
        for resource in resources() {
            let post = &self.posts[resource as usize];
            for row in post.rows() {
                touched ^= self.flows.touch_row(row) ^ self.table[post.entry(row)].0.terms.weight.to_bits();
            }
        }
        for row in rows() {
            touched ^= self.flows.touch(row);
        }
        for row in rows() {
            touched ^= self.flows.touch_rings(row);
        }
        std::hint::black_box(touched);
    }

    /// Runs the rule of a resource on the arrivals since its last tick.
    fn allocate(&mut self, resource: usize) {
        let now = self.now;
        let post = &self.posts[resource];
        let last = post.seen.checked_sub(1);
        let (rows, capacity, rule, is_source) = (post.rows(), post.capacity, post.rule as usize, post.is_source);
        let (mut arrived, mut bound) = (0, 0);
        self.present.clear();
        self.gathered.clear();
        self.flows.scratch.clear();
        for row in rows {
            if self.flows.is_done(row) {
                continue;
            }
            let k = self.flows.rows[row].session as usize;
            self.flows.advance(k, now);
            let reading = self.flows.read(row, now);
            arrived += reading.volume;
            bound += Volume::from(reading.most);
            let flow = &self.flows.all[k];
            let forward = self.flows.rows[row].forward_ns;
            if flow.state != FlowState::Waiting && flow.is_at(now, forward) {
                self.present.push(row as u32);
                // A rate counts as measured once the session was active for a whole interval.
                let measured = match last {
                    Some(last) if flow.start + forward <= last => grain::counted(reading.mean),
                    _ => self.flows.start_rates[k],
                };
                let known = self.table[self.posts[resource].entry(row)].0;
                self.gathered.push(TableRow { measured: Rate::nearest_bps(measured), ..known });
            }
        }
        self.account(resource, arrived, bound);
        let elapsed = Duration::from_nanos(last.map_or(0, |last| now - last));
        let interval = Interval { capacity, elapsed };
        self.grants.clear();
        self.grants.resize(self.present.len(), Grant::default());
        self.allocators[rule].allocate(&interval, &self.gathered, &mut self.grants);
        for ((row, known), grant) in self.present.iter().zip(&self.gathered).zip(&self.grants) {
            let row = *row as usize;
            let bps = grant.expected.as_bps();
            if is_source {
                let k = self.flows.rows[row].session as usize;
                self.flows.grant_own(k, now, bps);
            } else {
                self.flows.grant_remote(row, now, bps);
            }
            if !self.last_ticks.is_empty() {
                self.last_ticks[row] =
                    LastTick { measured_bps: known.measured.as_bps(), target_bps: grant.target.as_bps() };
            }
        }
    }

    /// Reads the arrivals at a link without a rule.
    fn look(&mut self, resource: usize) {
        let (mut arrived, mut bound) = (0, 0);
        self.flows.scratch.clear();
        for row in self.plan.resources[resource].rows.clone() {
            if !self.flows.is_done(row) {
                let k = self.flows.rows[row].session as usize;
                // Events at the end of the run belong to no interval.
                self.flows.advance(k, self.now.min(self.plan.end - 1));
                let reading = self.flows.read(row, self.now);
                arrived += reading.volume;
                bound += Volume::from(reading.most);
            }
        }
        self.account(resource, arrived, bound);
    }

    /// Advances the queue of a resource to now, given the arrivals since it was last read and a bound of the load. The
    /// changes of the load are in the scratch.
    fn account(&mut self, resource: usize, arrived: Volume, bound: Volume) {
        let (now, window) = (self.now, self.window);
        let post = &mut self.posts[resource];
        let from = std::mem::replace(&mut post.seen, now + 1).saturating_sub(1);
        let changes = &mut self.flows.scratch;
        let is_node = post.is_source || post.is_sink;
        let crosses = |edge: u64| from < edge && edge < now;
        let is_peak = is_node && bound as f64 / post.grains as f64 > self.peak;
        let is_quiet = post.queue.is_empty() && bound <= Volume::from(post.grains) && !is_peak;
        if is_quiet && !crosses(window.0) && !crosses(window.1) {
            // No queue can have grown, and no maximum can have been exceeded: the order of the changes does not matter.
            let by = changes.iter().map(|(_, by)| Volume::from(*by)).sum();
            let in_window = from >= window.0 && now <= window.1;
            post.queue.pass(from, now, by, if in_window { arrived } else { 0 }, window);
            return;
        }
        walk(&mut post.queue, changes, post.grains, window);
        if is_node {
            self.peak = self.peak.max(post.queue.peak() as f64 / post.grains as f64);
        }
    }

    fn sample(&mut self, recorder: &mut Recorder) {
        let now = self.now;
        for k in 0..self.flows.all.len() {
            if self.flows.all[k].is_active() {
                self.flows.advance(k, now - 1);
            }
        }
        let rates = (0..self.flows.all.len()).map(|k| self.rate_sample(k));
        let mut changes = Vec::new();
        let finite = self.plan.resources.iter().zip(&self.posts).filter(|(here, _)| here.capacity.is_some());
        let backlogs = finite.map(|(here, post)| {
            let mut queue = post.queue;
            changes.clear();
            for row in here.rows.clone() {
                self.flows.peek(row, now, &mut changes);
            }
            walk(&mut queue, &mut changes, here.grains, self.window);
            queue.backlog_at(now, here.grains)
        });
        recorder.sample(rates, backlogs, self.pairs());
    }

    fn rate_sample(&self, k: usize) -> RateSample {
        let flow = &self.flows.all[k];
        let or_none = |bps: f64| if bps.is_finite() && flow.is_active() { bps } else { f64::NAN };
        let ruled =
            |row: &&u32| self.plan.resources[self.plan.rows[**row as usize].resource as usize].allocatable.is_some();
        let mut last_ticks = self.plan.rows_of(k).iter().filter(ruled).map(|row| self.last_ticks[*row as usize]);
        let target = last_ticks.clone().map(|tick| tick.target_bps).fold(f64::INFINITY, f64::min);
        let measured = last_ticks.next_back().map_or(f64::NAN, |tick| tick.measured_bps);
        RateSample {
            delivered: self.flows.delivered_by(k, self.now),
            known: KnownRates {
                source_expected: or_none(flow.own),
                sink_expected: or_none(flow.remote),
                target: or_none(target),
                measured: or_none(measured),
            },
        }
    }

    fn finish(mut self, recorder: Recorder) -> Run {
        let (plan, end) = (self.plan, self.plan.end);
        for k in 0..self.flows.all.len() {
            self.flows.advance(k, end.saturating_sub(1));
            let flow = &mut self.flows.all[k];
            if flow.is_active() {
                flow.track.close(flow.rate, end);
            }
        }
        let mut totals = self.totals;
        totals.close(plan, self.pairs(), self.flows.all.iter().map(|flow| &flow.track));
        totals.events = self.ticks + self.flows.events;
        for (resource, here) in plan.resources.iter().enumerate() {
            self.flows.scratch.clear();
            for row in here.rows.clone() {
                self.flows.read(row, end);
            }
            if here.capacity.is_some() {
                walk(&mut self.posts[resource].queue, &mut self.flows.scratch, here.grains, self.window);
                self.posts[resource].queue.advance(end, here.grains, self.window);
            }
        }
        let outcomes = (0..self.flows.all.len()).map(|k| {
            if plan.active(k).is_none() {
                return SessionOutcome::default();
            }
            let flow = &self.flows.all[k];
            let (in_window, (last, last_span)) = self.flows.means(k);
            SessionOutcome {
                rate_bps: grain::mean_bps(in_window, self.window.1 - self.window.0),
                final_bps: grain::mean_bps(last, last_span),
                delivered: self.flows.delivered(k),
                max_min_bps: flow.track.optimum_bps,
                completed: self.flows.completed(k),
            }
        });
        let outcomes: Vec<_> = outcomes.collect();
        let loads: Vec<_> = self.posts.iter().map(|post| ResourceLoad::from(&post.queue)).collect();
        let window = self.window;
        // Frees memory for the result of a large run.
        drop(self);
        report(plan, window, outcomes.into_iter(), &loads, &totals, recorder)
    }
}

/// Advances a queue through changes of its load.
fn walk(queue: &mut Queue, changes: &mut [(u64, Grains)], capacity: Grains, window: (u64, u64)) {
    changes.sort_unstable_by_key(|(at, _)| *at);
    for (at, by) in changes {
        queue.advance(*at, capacity, window);
        queue.change(Volume::from(*by));
    }
}

fn push_before(calendar: &mut Calendar, ticker: u32, at: u64, end: u64) {
    if at < end {
        calendar.push(ticker, at);
    }
}
