//! The event engine: every change of a rate is an event at each resource that it reaches, and every message of a rule
//! is an event when it arrives. Rates are piecewise constant and every integral is exact; nothing is stepped.
//!
//! It runs the rules whose messages must be handled when they arrive: claims and grants (`tally`), and control packets
//! that visit the capacities (`sperc`). The tests run the allocators in it too, as the reference of the fast engine.

mod event;
mod mail;
mod network;
mod sperc;
mod tally;

use std::cmp::Reverse;

use fairwave_scenario::Run;
use fairwave_scenario::report::KnownRates;

use crate::Settings;
use crate::ending;
use crate::error::FluidError;
use crate::optimum::Optimum;
use crate::plan::FluidPlan;
use crate::record::{Progress, RateSample, Recorder};
use crate::report::{FluidTotals, ResourceLoad, SessionOutcome, report};
use event::EventKind;

#[cfg(test)]
pub(crate) use event::{MESSAGES, TICKS};
pub(crate) use network::{EventRule, Network};
pub(crate) use sperc::Circulation;
pub(crate) use tally::Exchange;

/// A run of the engine.
pub(crate) struct EventSimulator<'a, R: EventRule> {
    network: Network<'a, R>,
    rule: R,
    optimum: Optimum,
    totals: FluidTotals,
}

impl<'a, R: EventRule> EventSimulator<'a, R> {
    pub(crate) fn new(plan: &'a FluidPlan<'a>, rule: R, settings: &Settings<'_>) -> Self {
        let network = Network::new(plan, settings);
        let mut simulator = Self { network, rule, optimum: Optimum::new(plan), totals: FluidTotals::default() };
        simulator.rule.begin(&mut simulator.network);
        simulator
    }

    /// Runs to the end.
    pub(crate) fn run(mut self, settings: &mut Settings<'_>) -> Result<Run, FluidError> {
        let end = self.network.plan.end;
        let mut recorder = Recorder::new(self.network.plan, settings.record);
        let mut progress = Progress::new(end);
        self.schedule_sample(&recorder);
        while let Some(Reverse(event)) = self.network.events.pop() {
            if event.at >= end {
                break;
            }
            self.network.now = event.at;
            self.handle(event.kind, &mut recorder)?;
            self.totals.events += 1;
            progress.turn(event.at, settings);
        }
        self.network.now = end;
        if recorder.next().is_some() {
            self.sample(&mut recorder);
        }
        Ok(self.finish(recorder))
    }

    fn handle(&mut self, kind: EventKind<R::Event>, recorder: &mut Recorder) -> Result<(), FluidError> {
        let Self { network, rule, .. } = self;
        match kind {
            EventKind::Sample => {
                self.sample(recorder);
                self.schedule_sample(recorder);
            }
            EventKind::Arrive(row, bps) => network.arrive(rule, row, bps),
            EventKind::Complete(k, number) => network.complete(rule, k, number),
            EventKind::Stop(k) => network.leave(rule, k),
            EventKind::Start(k) => network.start(rule, k),
            EventKind::Demand(k, bps) => network.want(rule, k, bps),
            EventKind::Optimum => self.find_optimum(recorder)?,
            EventKind::Rule(event) => rule.on_event(network, event),
        }
        Ok(())
    }

    fn schedule_sample(&mut self, recorder: &Recorder) {
        if let Some(at) = recorder.next() {
            self.network.push(at, EventKind::Sample);
        }
    }

    fn find_optimum(&mut self, recorder: &mut Recorder) -> Result<(), FluidError> {
        self.network.optimum_is_due = false;
        self.close_active();
        let sessions = self.network.sessions.iter_mut();
        let wants = sessions.map(|one| (one.is_active.then_some(one.demand_bps), &mut one.track));
        self.optimum.find(self.network.plan, wants)?;
        recorder.max_min(self.network.now, self.pairs());
        Ok(())
    }

    fn close_active(&mut self) {
        for k in 0..self.network.sessions.len() {
            if self.network.sessions[k].is_active {
                self.network.close(k);
            }
        }
    }

    /// Rates of the sessions with their max-min rates; both are zero if a session is not active.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        let sessions = self.network.sessions.iter();
        sessions.map(|one| if one.is_active { (one.rate_bps, one.track.optimum_bps) } else { (0.0, 0.0) })
    }

    fn sample(&self, recorder: &mut Recorder) {
        let Network { plan, now, sessions, queues, .. } = &self.network;
        let rates = sessions.iter().enumerate().map(|(k, one)| RateSample {
            delivered: one.arrivals.volume(0, *now),
            known: if one.is_active { self.rule.known_rates(&self.network, k) } else { KnownRates::NONE },
        });
        let finite = plan.resources.iter().zip(queues).filter(|(resource, _)| resource.capacity.is_some());
        let backlogs = finite.map(|(resource, queue)| queue.backlog_at(*now, resource.grains));
        recorder.sample(rates, backlogs, self.pairs());
    }

    fn finish(mut self, recorder: Recorder) -> Run {
        self.close_active();
        let Network { plan, window, messages, .. } = self.network;
        let mut totals = FluidTotals { messages, ..self.totals };
        totals.close(plan, self.pairs(), self.network.sessions.iter().map(|one| &one.track));
        let Network { sessions, mut queues, .. } = self.network;
        ending::close_queues(plan, &mut queues, window);
        let outcomes = sessions.iter().enumerate().map(|(k, one)| {
            let Some((start, _)) = plan.active(k) else { return SessionOutcome::default() };
            let arrived = |from, to| one.arrivals.volume(from, to);
            ending::outcome((start, one.end.min(plan.end), plan.end), window, &one.track, one.completed, arrived)
        });
        let loads: Vec<_> = queues.iter().map(ResourceLoad::from).collect();
        report(plan, window, outcomes, &loads, &totals, recorder)
    }
}
