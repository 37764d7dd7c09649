//! The result of a run, common to all simulators.

use fairwave_units::Time;
use serde::Serialize;

use crate::{CompletionBucket, DelayHistogram, Metrics, SchemeOptions, SchemeSummary, SessionSummary};

/// The result of a run: its summary, and the recorded samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The numbers of `summary.json`.
    pub summary: Summary,
    /// Rates per sample and session, if they were recorded.
    pub rates: Option<RateSamples>,
    /// Queues per sample and link, if they were recorded.
    pub queues: Option<QueueSamples>,
    /// Windows per sample and session, if they were recorded; `None` in the fluid model.
    pub windows: Option<WindowSamples>,
    /// 2-norm distance to the max-min vector at the end of each sample (Wu 2007, VII.1.C), bit/s.
    pub distances_bps: Vec<f64>,
    /// 2-norm of that max-min vector, at the same instants, bit/s.
    pub max_min_norms_bps: Vec<f64>,
    /// The max-min vector over time, recorded together with the rates: one entry for each instant at which it
    /// changes, the first at zero; empty if rates were not recorded.
    pub max_min: Vec<MaxMinStep>,
    /// Loss events, in order of time (packet model).
    pub losses: Vec<LossEvent>,
    /// Delays of packets beyond propagation, one entry per session; empty if the model has no packets.
    pub delays: Vec<DelayHistogram>,
}

/// The summary of a run; other programs read its JSON form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Version of Fairwave that made it.
    pub version: &'static str,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of its scheme.
    pub scheme: String,
    /// The options of that scheme, defaults included.
    pub options: SchemeOptions,
    /// "fluid" or "packet".
    pub model: &'static str,
    /// The seed.
    pub seed: u64,
    /// Length of the run.
    pub duration_s: f64,
    /// Label of the variant.
    pub variant: Option<String>,
    /// Window of the means of sessions, links, background traffic and totals.
    pub window: Window,
    /// One entry per session, in the scenario's order.
    pub sessions: Vec<SessionSummary>,
    /// One entry per scheme with its options, in the order in which sessions name them.
    pub schemes: Vec<SchemeSummary>,
    /// Completion times by size, if the sizes of sessions differ. Omitted from JSON otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completions: Vec<CompletionBucket>,
    /// Finite links and the used directions of end nodes ("d1:in", "s1:out").
    pub links: Vec<LinkSummary>,
    /// One entry per table of background traffic.
    pub background: Vec<BackgroundSummary>,
    /// The run as a whole.
    pub metrics: Metrics,
    /// Statistics of the engine.
    pub engine: Engine,
}

/// The part of a run over which the means of its summary are taken ([`crate::MeanWindow`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Start of the window.
    pub from_s: f64,
    /// End of the window.
    pub to_s: f64,
}

impl Window {
    /// From one instant to another.
    pub fn new(from: Time, to: Time) -> Self {
        Self { from_s: from.as_secs_f64(), to_s: to.as_secs_f64() }
    }
}

/// Results of one link, over the summary's window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name of the link, or node and direction.
    pub name: Box<str>,
    /// Its capacity.
    pub capacity_bps: f64,
    /// Carried load over capacity.
    pub utilisation: f64,
    /// Mean queue in full packets.
    pub mean_queue_packets: f64,
    /// Largest queue in full packets.
    pub max_queue_packets: f64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Packets marked. Omitted from JSON if the queue does not mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked_packets: Option<u64>,
}

/// Results of one table of background traffic, all its sources together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackgroundSummary {
    /// Its name.
    pub name: Box<str>,
    /// Payload delivered for the first time, mean over the summary's window.
    pub rate_bps: f64,
    /// Wire rate that arrived, over the same window.
    pub wire_rate_bps: f64,
    /// Data packets lost, in the whole run.
    pub lost_packets: u64,
}

/// Statistics of the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Engine {
    /// Events handled.
    pub events: u64,
    /// Packets through finite-rate queues; 0 in the fluid model.
    pub packet_hops: u64,
    /// Claims and grants that the ends of sessions exchanged, in the fluid model of a rule that has them; else 0, and
    /// omitted from JSON.
    #[serde(skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// The speed, which is not one of a run's reproducible results; set by programs that show it.
    #[serde(flatten)]
    pub speed: Option<EngineSpeed>,
}

/// Speed of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EngineSpeed {
    /// Wall time.
    pub wall_s: f64,
    /// Packet hops per second of wall time.
    pub packet_hops_per_s: f64,
}

impl Engine {
    /// Sets the wall time of the run.
    pub fn set_wall_s(&mut self, wall_s: f64) {
        let packet_hops_per_s = self.packet_hops as f64 / wall_s.max(1e-9);
        self.speed = Some(EngineSpeed { wall_s, packet_hops_per_s });
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Rates per sample and session: entry `sample * sessions + session`. NaN if a scheme has no such rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateSamples {
    /// Ends of the samples.
    pub ends: Vec<Time>,
    /// Number of sessions.
    pub sessions: usize,
    /// Mean payload rate in the sample.
    pub rate_bps: Vec<f64>,
    /// Mean wire rate in the sample; empty if it equals the payload rate (fluid model).
    pub wire_rate_bps: Vec<f64>,
    /// Source's expected rate at the end of the sample.
    pub source_expected_bps: Vec<f64>,
    /// Sink's expected rate, as known to the source at the end of the sample.
    pub sink_expected_bps: Vec<f64>,
    /// Target rate at the end of the sample: the smaller of both ends'.
    pub target_bps: Vec<f64>,
    /// Measured rate of the last node rule on the path, usually the sink's, at its last tick.
    pub measured_bps: Vec<f64>,
}

impl RateSamples {
    /// Mean wire rates, which are compared with max-min.
    pub fn wire_bps(&self) -> &[f64] {
        if self.wire_rate_bps.is_empty() { &self.rate_bps } else { &self.wire_rate_bps }
    }

    /// A session's grant at the end of a sample: the smaller of its source's and its sink's expected rates; NaN if its
    /// scheme has no such rate.
    pub fn expected_bps(&self, sample: usize, session: usize) -> f64 {
        let entry = |column: &[f64]| column.get(sample * self.sessions + session).copied().unwrap_or(f64::NAN);
        // f64::min returns the other number if one is NaN.
        entry(&self.source_expected_bps).min(entry(&self.sink_expected_bps))
    }
}

/// Queues per sample and link: entry `sample * links + link`, links in the summary's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSamples {
    /// Ends of the samples.
    pub ends: Vec<Time>,
    /// Number of links.
    pub links: usize,
    /// Queue at the end of the sample.
    pub queue_bytes: Vec<f64>,
    /// Queue at the end of the sample in full packets.
    pub queue_packets: Vec<f64>,
    /// Packets dropped in the sample.
    pub dropped_packets: Vec<u64>,
    /// Packets marked in the sample; empty if no queue marks.
    pub marked_packets: Vec<u64>,
}

/// Windows per sample and session, at the end of the sample: entry `sample * sessions + session`. NaN for a scheme
/// without a window and while a session is not active.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSamples {
    /// Ends of the samples.
    pub ends: Vec<Time>,
    /// Number of sessions.
    pub sessions: usize,
    /// The scheme's congestion window, in packets, without the temporary inflation of fast recovery.
    pub cwnd_packets: Vec<f64>,
    /// End of slow start, in packets; NaN while it is infinite.
    pub ssthresh_packets: Vec<f64>,
    /// Data packets sent so far, including retransmissions.
    pub sent_packets: Vec<u64>,
    /// Data packets lost so far.
    pub lost_packets: Vec<u64>,
}

/// The max-min vector from an instant on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaxMinStep {
    /// Start of its validity.
    pub from: Time,
    /// Max-min rate of each session, in the scenario's order; zero while it is not active.
    pub rates_bps: Vec<f64>,
}

/// A session cut its rate because of loss or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossEvent {
    /// Time of the event.
    pub time: Time,
    /// Index of the session.
    pub session: u32,
    /// The signal of the loss.
    pub kind: LossKind,
}

/// Signals of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The other end: duplicate or selective acknowledgements, or a report.
    Loss,
    /// The session's retransmission timer expired.
    Timeout,
    /// A congestion mark (ECN).
    Mark,
}

impl LossKind {
    /// Its name in `losses.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Mark => "mark",
        }
    }
}
