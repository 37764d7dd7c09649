//! The network of the event engine: the sources of the sessions, the queues of the resources, and the events; and the
//! interface of the rules that run in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairwave_scenario::report::KnownRates;
use fairwave_units::{Duration, Time};

use super::event::{Event, EventKind};
use crate::Settings;
use crate::ending;
use crate::grain::{self, Volume, grains};
use crate::plan::FluidPlan;
use crate::queue::Queue;
use crate::track::Track;
use crate::trail::Trail;

/// A rule with its end nodes and links. Its messages, visits and ticks are events.
pub(crate) trait EventRule: Sized {
    /// Its events.
    type Event: Copy;

    /// The place of an event among simultaneous ones: a phase from `MESSAGES` or `TICKS` on, and the order in it.
    fn place(event: &Self::Event) -> (u8, usize);

    /// Schedules its first events.
    fn begin(&mut self, network: &mut Network<'_, Self>);

    /// The rate at which a session may send.
    fn permitted_bps(&mut self, network: &Network<'_, Self>, k: usize) -> f64;

    /// A session starts; its rate is zero.
    fn on_start(&mut self, network: &mut Network<'_, Self>, k: usize);

    /// The demand of an active session changes.
    fn on_demand(&mut self, _network: &mut Network<'_, Self>, _k: usize) {}

    /// A session has stopped sending.
    fn on_leave(&mut self, _network: &mut Network<'_, Self>, _k: usize) {}

    /// The rate that arrives at a row is about to change.
    fn before_arrival(&mut self, _network: &Network<'_, Self>, _row: usize) {}

    /// An event of the rule.
    fn on_event(&mut self, network: &mut Network<'_, Self>, event: Self::Event);

    /// The rates of an active session that its end nodes know.
    fn known_rates(&self, network: &Network<'_, Self>, k: usize) -> KnownRates;
}

/// A session in the network.
#[derive(Clone, Debug)]
pub(crate) struct EventSession {
    pub(crate) is_active: bool,
    pub(crate) demand_bps: f64,
    pub(crate) rate_bps: f64,
    /// Time since which it sends at this rate, and the bits sent since [`Network::take_sent`].
    since: u64,
    bits: f64,
    /// Whether data wait, and whether any did since [`Network::take_sent`].
    waits: bool,
    waited: bool,
    /// Remaining volume, if the size is finite.
    left: Option<Volume>,
    /// The number of the completion event that is valid.
    completion: u64,
    pub(crate) start: u64,
    /// Time of its end; the maximum until then.
    pub(crate) end: u64,
    pub(super) completed: Option<u64>,
    pub(super) track: Track,
    /// Rates at the sink.
    pub(super) arrivals: Trail,
}

/// The state that all rules share.
pub(crate) struct Network<'a, R: EventRule> {
    pub(crate) plan: &'a FluidPlan<'a>,
    pub(crate) now: u64,
    pub(super) events: BinaryHeap<Reverse<Event<R::Event>>>,
    pushed: u64,
    pub(crate) sessions: Vec<EventSession>,
    /// The rate that arrives at each row, in bit/s.
    pub(crate) arriving_bps: Vec<f64>,
    pub(super) queues: Vec<Queue>,
    pub(super) optimum_is_due: bool,
    pub(super) window: (u64, u64),
    closes_early: bool,
    /// Sessions that have not ended, and the time at which the last byte of the others arrives.
    open: usize,
    last_arrival: u64,
    /// Messages that the rule sent.
    pub(crate) messages: u64,
}

impl<'a, R: EventRule> Network<'a, R> {
    pub(super) fn new(plan: &'a FluidPlan<'a>, settings: &Settings<'_>) -> Self {
        let (window, closes_early) = plan.window(settings.window);
        let sessions = plan.scenario.sessions.iter().enumerate().map(|(k, session)| EventSession {
            is_active: false,
            demand_bps: 0.0,
            rate_bps: 0.0,
            since: 0,
            bits: 0.0,
            waits: false,
            waited: false,
            left: session.size.map(|size| grain::of_bytes(size.get())),
            completion: 0,
            start: plan.active(k).map_or(u64::MAX, |(start, _)| start),
            end: u64::MAX,
            completed: None,
            track: Track::default(),
            arrivals: Trail::default(),
        });
        let mut network = Self {
            plan,
            now: 0,
            events: BinaryHeap::new(),
            pushed: 0,
            sessions: sessions.collect(),
            arriving_bps: vec![0.0; plan.rows.len()],
            queues: vec![Queue::default(); plan.resources.len()],
            optimum_is_due: false,
            window,
            closes_early,
            open: 0,
            last_arrival: 0,
            messages: 0,
        };
        for k in 0..network.sessions.len() {
            let Some((start, stop)) = plan.active(k) else { continue };
            network.open += 1;
            network.push(start, EventKind::Start(k));
            network.push(stop, EventKind::Stop(k));
            for (at, demand) in plan.demand_steps(k) {
                network.push(at, EventKind::Demand(k, demand));
            }
        }
        network
    }

    pub(super) fn push(&mut self, at: u64, kind: EventKind<R::Event>) {
        self.pushed += 1;
        let place = kind.place(R::place);
        self.events.push(Reverse(Event { at, place, number: self.pushed, kind }));
    }

    /// Schedules an event of the rule.
    pub(crate) fn schedule(&mut self, at: u64, event: R::Event) {
        self.push(at, EventKind::Rule(event));
    }

    pub(crate) fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    pub(super) fn start(&mut self, rule: &mut R, k: usize) {
        let session = &mut self.sessions[k];
        session.is_active = true;
        session.demand_bps = self.plan.demand(k, self.now);
        session.since = self.now;
        session.track = Track::new(self.now);
        rule.on_start(self, k);
        self.set_rate(rule, k);
        self.predict(k);
        self.optimum_changes();
    }

    pub(super) fn want(&mut self, rule: &mut R, k: usize, demand_bps: f64) {
        if self.sessions[k].is_active {
            self.sessions[k].demand_bps = demand_bps;
            rule.on_demand(self, k);
            self.set_rate(rule, k);
            self.optimum_changes();
        }
    }

    /// A session has sent its last byte, unless its rate has changed since the event was created.
    pub(super) fn complete(&mut self, rule: &mut R, k: usize, number: u64) {
        if self.sessions[k].is_active && self.sessions[k].completion == number {
            let arrival = self.plan.last_arrival(k, self.now);
            self.sessions[k].completed = (arrival <= self.plan.end).then_some(arrival);
            self.leave(rule, k);
        }
    }

    /// An active session stops sending; data first, then the rule's last message.
    pub(super) fn leave(&mut self, rule: &mut R, k: usize) {
        if !self.sessions[k].is_active {
            return;
        }
        self.close(k);
        self.sessions[k].is_active = false;
        self.sessions[k].end = self.now;
        self.sessions[k].completion = 0;
        self.set_rate(rule, k);
        rule.on_leave(self, k);
        self.open -= 1;
        self.last_arrival = self.last_arrival.max(self.plan.last_arrival(k, self.now));
        if self.closes_early && self.open == 0 {
            self.window.1 = self.window.1.min(self.last_arrival);
        }
        self.optimum_changes();
    }

    /// Accounts for the volume that a session sent at its present rate.
    pub(super) fn close(&mut self, k: usize) {
        let session = &mut self.sessions[k];
        session.track.close(session.rate_bps, self.now);
        session.bits += session.rate_bps * Duration::from_nanos(self.now - session.since).as_secs_f64();
        if let Some(left) = &mut session.left {
            *left -= grain::volume(grains(session.rate_bps), self.now - session.since);
        }
        session.since = self.now;
    }

    /// The bits that a session sent since the last call, and whether data waited.
    pub(crate) fn take_sent(&mut self, k: usize) -> (f64, bool) {
        self.close(k);
        let session = &mut self.sessions[k];
        (std::mem::take(&mut session.bits), std::mem::take(&mut session.waited) || session.waits)
    }

    /// A session sends at the minimum of its permitted rate and its demand.
    pub(crate) fn set_rate(&mut self, rule: &mut R, k: usize) {
        let permitted_bps = rule.permitted_bps(self, k);
        if self.sessions[k].is_active || self.sessions[k].rate_bps > 0.0 {
            self.close(k);
        }
        let session = &mut self.sessions[k];
        session.waits = session.is_active && session.demand_bps > permitted_bps * (1.0 + 1e-6);
        session.waited |= session.waits;
        let rate_bps = if session.is_active { permitted_bps.min(session.demand_bps) } else { 0.0 };
        if rate_bps == session.rate_bps {
            return;
        }
        session.rate_bps = rate_bps;
        let plan = self.plan;
        for row in plan.rows_of(k) {
            match plan.rows[*row as usize].forward_ns {
                0 => self.arrive(rule, *row as usize, rate_bps),
                forward => self.push(self.now + forward, EventKind::Arrive(*row as usize, rate_bps)),
            }
        }
        if self.sessions[k].is_active {
            self.predict(k);
        }
    }

    /// Schedules the completion of a session.
    fn predict(&mut self, k: usize) {
        let session = &self.sessions[k];
        let Some(left) = session.left else { return };
        let Some(at) = ending::sent_at(left, grains(session.rate_bps), session.since) else {
            return self.sessions[k].completion = 0;
        };
        self.sessions[k].completion = self.pushed + 1;
        self.push(at, EventKind::Complete(k, self.pushed + 1));
    }

    /// A new rate arrives at a resource.
    pub(crate) fn arrive(&mut self, rule: &mut R, row: usize, rate_bps: f64) {
        rule.before_arrival(self, row);
        let crossing = &self.plan.rows[row];
        let here = &self.plan.resources[crossing.resource as usize];
        let by = Volume::from(grains(rate_bps)) - Volume::from(grains(self.arriving_bps[row]));
        self.arriving_bps[row] = rate_bps;
        if here.capacity.is_some() {
            let queue = &mut self.queues[crossing.resource as usize];
            queue.advance(self.now, here.grains, self.window);
            queue.change(by);
        }
        let k = crossing.session as usize;
        if row == self.plan.sink_row(k) {
            self.sessions[k].arrivals.push(self.now, grains(rate_bps));
        }
    }

    fn optimum_changes(&mut self) {
        if !self.optimum_is_due {
            self.optimum_is_due = true;
            self.push(self.now, EventKind::Optimum);
        }
    }
}
