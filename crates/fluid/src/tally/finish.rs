//! Samples of a run, and its result.

use fairwave_scenario::Run;
use fairwave_units::Rate;

use super::TallySimulator;
use crate::ending;
use crate::record::{RateSample, Recorder};
use crate::report::{ResourceLoad, SessionOutcome, report};

impl TallySimulator<'_> {
    pub(super) fn sample(&self, recorder: &mut Recorder) {
        let record = recorder.record();
        if record.rates {
            recorder.rates((0..self.flows.len()).map(|k| self.rate_sample(k)));
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

    /// The source's expected rate is its cap, the sink's the smallest grant in force, the target the smallest offer.
    fn rate_sample(&self, k: usize) -> RateSample {
        let flow = &self.flows[k];
        let source = self.source_of(k).filter(|_| flow.is_active);
        let or_none = |rate: Option<Rate>| rate.map_or(f64::NAN, Rate::as_bps);
        RateSample {
            delivered: flow.arrivals.by(self.now),
            source_expected_bps: or_none(source.map(|source| source.cap(k as u64))),
            sink_expected_bps: or_none(source.and_then(|source| source.granted(k as u64))),
            target_bps: or_none(source.and_then(|source| source.offer(k as u64))),
            measured_bps: f64::NAN,
        }
    }

    pub(super) fn finish(mut self, recorder: Recorder) -> Run {
        let plan = self.plan;
        for k in 0..self.flows.len() {
            if self.flows[k].is_active {
                self.close(k);
                self.flows[k].end = plan.end;
            }
        }
        self.totals.converged = ending::converged(plan, self.flows.iter().map(|one| &one.track));
        self.totals.distance_final_bps = self.distance();
        ending::close_queues(plan, &mut self.queues, self.window);
        let outcomes = self.flows.iter().enumerate().map(|(k, one)| {
            let Some((start, _)) = plan.active(k) else { return SessionOutcome::default() };
            let arrived = |from, to| one.arrivals.between(from, to);
            ending::outcome((start, one.end, plan.end), self.window, &one.track, one.completed, arrived)
        });
        let loads: Vec<_> = self.queues.iter().map(ResourceLoad::from).collect();
        report(plan, self.window, outcomes, &loads, &self.totals, recorder)
    }
}
