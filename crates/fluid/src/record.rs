//! The samples that a run keeps.

use fairwave_scenario::report::{DistanceLog, KnownRates};
use fairwave_scenario::{MaxMinStep, QueueSamples, RateSamples};
use fairwave_units::Time;

use crate::Record;
use crate::grain::{self, Volume};
use crate::plan::FluidPlan;

/// Turns of an engine's loop per progress report; a turn is at most a tick of one node.
pub(crate) const PROGRESS_TURNS: u64 = 4096;

/// Collects samples at the ends of the sample steps.
pub(crate) struct Recorder {
    record: Record,
    step: u64,
    end: u64,
    /// End of the current sample.
    next: Option<u64>,
    previous: u64,
    packet_bytes: f64,
    /// Volume that each session had delivered at the end of the previous sample.
    delivered: Vec<Volume>,
    pub(crate) rates: RateSamples,
    pub(crate) queues: QueueSamples,
    pub(crate) distances: DistanceLog,
    pub(crate) max_min: Vec<MaxMinStep>,
}

/// One session at the end of a sample.
pub(crate) struct RateSample {
    /// Volume that it has delivered so far.
    pub(crate) delivered: Volume,
    /// NaN if there is no such rate.
    pub(crate) source_expected_bps: f64,
    pub(crate) sink_expected_bps: f64,
    pub(crate) target_bps: f64,
    pub(crate) measured_bps: f64,
}

impl Recorder {
    pub(crate) fn new(plan: &FluidPlan<'_>, record: Record) -> Self {
        let sessions = plan.scenario.sessions.len();
        let links = plan.resources.iter().filter(|resource| resource.capacity.is_some()).count();
        let step = plan.scenario.sample.as_nanos();
        let any = record.rates || record.queues || record.distances;
        Self {
            record,
            step,
            end: plan.end,
            next: (any && step > 0 && plan.end > 0).then(|| step.min(plan.end)),
            previous: 0,
            packet_bytes: plan.scenario.full_packet().get() as f64,
            delivered: vec![0; if record.rates { sessions } else { 0 }],
            rates: RateSamples { sessions, ..RateSamples::default() },
            queues: QueueSamples { links, ..QueueSamples::default() },
            distances: DistanceLog::default(),
            max_min: Vec::new(),
        }
    }

    /// End of the next sample.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next
    }

    /// Recorded quantities.
    pub(crate) fn record(&self) -> Record {
        self.record
    }

    /// The rates of all sessions at the end of the sample, in their order.
    pub(crate) fn rates(&mut self, samples: impl Iterator<Item = RateSample>) {
        let Some(at) = self.next else { return };
        self.rates.ends.push(Time::from_nanos(at));
        for (sample, delivered) in samples.zip(&mut self.delivered) {
            self.rates.rate_bps.push(grain::mean_bps(sample.delivered - *delivered, at - self.previous));
            *delivered = sample.delivered;
            self.rates.push_known(&KnownRates {
                source_expected: sample.source_expected_bps,
                sink_expected: sample.sink_expected_bps,
                target: sample.target_bps,
                measured: sample.measured_bps,
            });
        }
    }

    /// The queues of all finite resources, in their order.
    pub(crate) fn queues(&mut self, backlogs: impl Iterator<Item = Volume>) {
        let Some(at) = self.next else { return };
        self.queues.ends.push(Time::from_nanos(at));
        for backlog in backlogs {
            let bytes = grain::bytes(backlog);
            self.queues.queue_bytes.push(bytes);
            self.queues.queue_packets.push(bytes / self.packet_bytes);
            self.queues.dropped_packets.push(0);
        }
    }

    /// The rates and max-min rates of all sessions, in their order.
    pub(crate) fn distance(&mut self, pairs: impl Iterator<Item = (f64, f64)> + Clone) {
        self.distances.push(pairs);
    }

    /// The max-min vector from `at` on; zero where a session is not active.
    pub(crate) fn max_min(&mut self, at: u64, rates_bps: impl Iterator<Item = f64>) {
        if self.record.rates {
            if at > 0 && self.max_min.is_empty() {
                let rates_bps = vec![0.0; self.rates.sessions];
                self.max_min.push(MaxMinStep { from: Time::ZERO, rates_bps });
            }
            self.max_min.push(MaxMinStep { from: Time::from_nanos(at), rates_bps: rates_bps.collect() });
        }
    }

    /// Completes the sample.
    pub(crate) fn step(&mut self) {
        let Some(at) = self.next else { return };
        self.previous = at;
        self.next = (at < self.end).then(|| at.saturating_add(self.step).min(self.end));
    }
}
