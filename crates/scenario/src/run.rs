//! The result of a run: the same from every simulator.

use fairwave_units::Time;
use serde::Serialize;

use crate::{DelayHistogram, DelaySummary, Metrics, SchemeOptions, SchemeSummary};

/// What a run gave: its summary, and the samples that were asked for.
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
    /// What packets took beyond propagation, an entry a session; empty where the model has no packets.
    pub delays: Vec<DelayHistogram>,
}

/// The summary of a run; its JSON form is what other programs read.
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
    /// What the means are taken over: those of sessions, links, background traffic and totals.
    pub window: Window,
    /// One entry a session, in the scenario's order.
    pub sessions: Vec<SessionSummary>,
    /// One entry a scheme with its options, in the order in which sessions name them.
    pub schemes: Vec<SchemeSummary>,
    /// Finite links and the used directions of end nodes ("d1:in", "s1:out").
    pub links: Vec<LinkSummary>,
    /// One entry a table of background traffic.
    pub background: Vec<BackgroundSummary>,
    /// The run as a whole.
    pub metrics: Metrics,
    /// What the engine did.
    pub engine: Engine,
}

/// The part of a run that the means of its summary are taken over ([`crate::MeanWindow`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Where it begins.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
}

impl Window {
    /// From one instant to another.
    pub fn new(from: Time, to: Time) -> Self {
        Self { from_s: from.as_secs_f64(), to_s: to.as_secs_f64() }
    }
}

/// One session's numbers. Rates are means over the summary's window, `final_*` over the last tenth of its own active
/// time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionSummary {
    /// Name of the session.
    pub name: Box<str>,
    /// Name of its source.
    pub from: Box<str>,
    /// Name of its sink.
    pub to: Box<str>,
    /// Name of its scheme.
    pub scheme: &'static str,
    /// Propagation delay both ways.
    pub rtt_s: f64,
    /// Payload that the receiver got once.
    pub rate_bps: f64,
    /// Payload and headers.
    pub wire_rate_bps: f64,
    /// Payload, last tenth of the active time.
    pub final_rate_bps: f64,
    /// Payload and headers, last tenth.
    pub final_wire_rate_bps: f64,
    /// Max-min rate at the end of the active time.
    pub max_min_bps: f64,
    /// Payload that the receiver got once.
    pub delivered_bytes: u64,
    /// Data packets sent, retransmissions included; 0 in the fluid model.
    pub sent_packets: u64,
    /// Data packets lost.
    pub lost_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// How often its retransmission timer ran out, again for the same packet included; 0 for sessions without a
    /// window.
    pub timeouts: u64,
    /// When its last byte was delivered, for a session of finite size.
    pub completed_s: Option<f64>,
    /// The same from its own start on. Left out of JSON where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// Round-trip times of its packets. Left out of JSON where the model has none, or the session no packets that are
    /// answered.
    #[serde(flatten)]
    pub delays: Option<DelaySummary>,
}

/// One link's numbers, over the summary's window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name of the link, or node and direction.
    pub name: Box<str>,
    /// Its capacity.
    pub capacity_bps: f64,
    /// Carried over capacity.
    pub utilisation: f64,
    /// Mean queue in full packets.
    pub mean_queue_packets: f64,
    /// Largest queue in full packets.
    pub max_queue_packets: f64,
    /// Packets dropped.
    pub dropped_packets: u64,
}

/// The numbers of one table of background traffic, all its sources together.
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

/// What the engine did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Engine {
    /// Events handled.
    pub events: u64,
    /// Packets through finite-rate queues; 0 in the fluid model.
    pub packet_hops: u64,
    /// Claims and grants that the ends of sessions told each other, in the fluid model of a rule whose ends exchange
    /// them; else 0, and left out of JSON.
    #[serde(skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// Wall time; the driver fills it in, it is no part of a run's bytes.
    pub wall_s: f64,
    /// Packet hops per second of wall time.
    pub packet_hops_per_s: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Rates per sample and session: entry `sample * sessions + session`. NaN where a scheme has no such rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateSamples {
    /// Ends of the samples.
    pub ends: Vec<Time>,
    /// Number of sessions.
    pub sessions: usize,
    /// Mean payload rate in the sample.
    pub rate_bps: Vec<f64>,
    /// Mean wire rate in the sample; empty where it equals the payload rate (fluid model).
    pub wire_rate_bps: Vec<f64>,
    /// Source's expected rate at the end of the sample.
    pub source_expected_bps: Vec<f64>,
    /// Sink's expected rate, as known to the source at the end of the sample.
    pub sink_expected_bps: Vec<f64>,
    /// Target rate at the end of the sample: the lesser of both ends'.
    pub target_bps: Vec<f64>,
    /// What the last node rule on the way, the sink's as a rule, measured at its last tick.
    pub measured_bps: Vec<f64>,
}

impl RateSamples {
    /// Mean wire rates: what is compared with max-min.
    pub fn wire_bps(&self) -> &[f64] {
        if self.wire_rate_bps.is_empty() { &self.rate_bps } else { &self.wire_rate_bps }
    }

    /// What a session was granted at the end of a sample: the lesser of what its source and its sink expect; NaN where
    /// its scheme has no such rate.
    pub fn expected_bps(&self, sample: usize, session: usize) -> f64 {
        let entry = |column: &[f64]| column.get(sample * self.sessions + session).copied().unwrap_or(f64::NAN);
        // f64::min takes the other number where one is NaN.
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
    /// The same in full packets.
    pub queue_packets: Vec<f64>,
    /// Packets dropped in the sample.
    pub dropped_packets: Vec<u64>,
}

/// Windows per sample and session, at the end of the sample: entry `sample * sessions + session`. NaN for a scheme
/// without a window and while a session is not active.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSamples {
    /// Ends of the samples.
    pub ends: Vec<Time>,
    /// Number of sessions.
    pub sessions: usize,
    /// The scheme's congestion window, in packets: without what fast recovery adds to it for a while.
    pub cwnd_packets: Vec<f64>,
    /// Where slow start ends, in packets; NaN while it is infinite.
    pub ssthresh_packets: Vec<f64>,
}

/// The max-min vector from one instant on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaxMinStep {
    /// From when it holds.
    pub from: Time,
    /// Max-min rate of each session, in the scenario's order; zero while it is not active.
    pub rates_bps: Vec<f64>,
}

/// A session cut its rate because of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossEvent {
    /// When.
    pub time: Time,
    /// Index of the session.
    pub session: u32,
    /// What told it.
    pub kind: LossKind,
}

/// What tells a session of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The other end: duplicate or selective acknowledgements, or a report.
    Loss,
    /// Its retransmission timer, which ran out.
    Timeout,
}

impl LossKind {
    /// Its word in `losses.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Timeout => "timeout",
        }
    }
}
