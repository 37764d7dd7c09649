//! Results of a session.

use serde::Serialize;

use crate::DelaySummary;

/// Results of one session. Rates are means over the summary's window, `final_*` over the last tenth of its own active
/// time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// Payload received for the first time.
    pub rate_bps: f64,
    /// Payload and headers.
    pub wire_rate_bps: f64,
    /// Payload, last tenth of the active time.
    pub final_rate_bps: f64,
    /// Payload and headers, last tenth.
    pub final_wire_rate_bps: f64,
    /// Max-min rate at the end of the active time, of the links' mean capacity in the window.
    pub max_min_bps: f64,
    /// Payload received for the first time.
    pub delivered_bytes: u64,
    /// Data packets sent, including retransmissions; 0 in the fluid model.
    pub sent_packets: u64,
    /// Data packets lost.
    pub lost_packets: u64,
    /// Retransmitted data packets.
    pub retransmitted_packets: u64,
    /// Data packets that arrived with a congestion mark. Omitted from JSON if no queue marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked_packets: Option<u64>,
    /// Expirations of its retransmission timer, including repeated ones for the same packet; 0 for sessions without a
    /// window.
    pub timeouts: u64,
    /// Time at which its last byte was delivered, for a session of finite size.
    pub completed_s: Option<f64>,
    /// Time from its start until its last byte was delivered. Omitted from JSON for a session without a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// Payload to deliver. Omitted from JSON for a session without a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// `completion_s` relative to an idle network: half the round-trip time and the transmission at the smallest
    /// capacity on its path. Omitted from JSON if it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
    /// Round-trip times of its packets. Omitted from JSON if the model has none, or no packets of the session are
    /// answered.
    #[serde(flatten)]
    pub delays: Option<DelaySummary>,
}
