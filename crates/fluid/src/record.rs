//! The samples that a run keeps.

use fairwave_scenario::report::{DistanceLog, KnownRates};
use fairwave_scenario::{MaxMinStep, QueueSamples, RateSamples};
use fairwave_schemes::global::metrics;
use fairwave_units::Time;

use crate::grain::{self, Volume};
use crate::plan::FluidPlan;
use crate::{Record, Settings};

/// Turns of an engine's loop per progress report; a turn is at most a tick of one node.
const PROGRESS_TURNS: u64 = 4096;

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
    /// Distance from the first max-min rates, if sessions start at time zero.
    pub(crate) distance_start_bps: f64,
}

/// One session at the end of a sample.
pub(crate) struct RateSample {
    /// Volume that it has delivered so far.
    pub(crate) delivered: Volume,
    pub(crate) known: KnownRates,
}

/// Reports the progress of an engine's loop: 200 times in a run, and after [`PROGRESS_TURNS`].
pub(crate) struct Progress {
    step: u64,
    next: u64,
    turns: u64,
}

impl Progress {
    pub(crate) fn new(end: u64) -> Self {
        let step = (end / 200).max(1);
        Self { step, next: step, turns: 0 }
    }

    /// A turn of the loop, which is at `now`.
    #[inline]
    pub(crate) fn turn(&mut self, now: u64, settings: &mut Settings<'_>) {
        self.turns += 1;
        if now >= self.next || self.turns.is_multiple_of(PROGRESS_TURNS) {
            self.next = now.saturating_add(self.step);
            if let Some(progress) = &mut settings.progress {
                progress(Time::from_nanos(now));
            }
        }
    }
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
            distance_start_bps: 0.0,
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

    /// Completes a sample: all sessions, the queued volumes of all finite resources, and the rates with the max-min
    /// rates of all sessions, in their order. It reads only what it records.
    pub(crate) fn sample(
        &mut self,
        sessions: impl Iterator<Item = RateSample>,
        backlogs: impl Iterator<Item = Volume>,
        pairs: impl Iterator<Item = (f64, f64)> + Clone,
    ) {
        let Some(at) = self.next else { return };
        if self.record.rates {
            self.rates(at, sessions);
        }
        if self.record.queues {
            self.queues(at, backlogs);
        }
        if self.record.distances {
            self.distances.push(pairs);
        }
        self.previous = at;
        self.next = (at < self.end).then(|| at.saturating_add(self.step).min(self.end));
    }

    fn rates(&mut self, at: u64, samples: impl Iterator<Item = RateSample>) {
        self.rates.ends.push(Time::from_nanos(at));
        for (sample, delivered) in samples.zip(&mut self.delivered) {
            self.rates.rate_bps.push(grain::mean_bps(sample.delivered - *delivered, at - self.previous));
            *delivered = sample.delivered;
            self.rates.push_known(&sample.known);
        }
    }

    fn queues(&mut self, at: u64, backlogs: impl Iterator<Item = Volume>) {
        self.queues.ends.push(Time::from_nanos(at));
        for backlog in backlogs {
            let bytes = grain::bytes(backlog);
            self.queues.queue_bytes.push(bytes);
            self.queues.queue_packets.push(bytes / self.packet_bytes);
            self.queues.dropped_packets.push(0);
        }
    }

    /// The max-min rates change at `at`; both rates of a pair are zero if the session is not active.
    pub(crate) fn max_min(&mut self, at: u64, pairs: impl Iterator<Item = (f64, f64)> + Clone) {
        if self.record.rates {
            if at > 0 && self.max_min.is_empty() {
                let rates_bps = vec![0.0; self.rates.sessions];
                self.max_min.push(MaxMinStep { from: Time::ZERO, rates_bps });
            }
            let rates_bps = pairs.clone().map(|(_, best)| best).collect();
            self.max_min.push(MaxMinStep { from: Time::from_nanos(at), rates_bps });
        }
        if at == 0 {
            self.distance_start_bps = distance(pairs);
        }
    }
}

/// Distance of the rates from the max-min rates.
pub(crate) fn distance(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    metrics::norm_of(pairs.map(|(rate, best)| rate - best))
}
