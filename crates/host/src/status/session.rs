//! The status of one session, and its limit.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::limited_by::LimitedBy;
use super::path_status::PathStatus;
use super::transfer::TransferStatus;
use crate::carrier::Carrier;

/// The status of one session. Rates are of IP packets, as all of GTP's are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct SessionStatus {
    /// Its name at this host, 16 hexadecimal digits.
    pub id: String,
    /// The other end.
    pub peer: SocketAddr,
    /// Whether this end opened it.
    pub is_initiator: bool,
    /// Whether this end is a source.
    pub sends: bool,
    /// Whether this end is a sink.
    pub receives: bool,
    /// Whether it sends more than it receives: rates and limits are of the direction that has more.
    pub is_source: bool,
    /// The carrier of its datagrams: "udp", "tcp" or "ssh".
    #[serde(default)]
    pub carrier: Carrier,
    /// Whether both ends say that nobody else uses the path.
    pub is_dedicated: bool,
    /// Whether data go without secrecy.
    pub is_plain: bool,
    /// Current rate on the wire, in the direction that has more, bit/s.
    pub rate_bps: f64,
    /// Rate measured by the end node, bit/s; `None` without an end node.
    pub measured_bps: Option<f64>,
    /// Grant of this end's node, bit/s.
    pub expected_bps: Option<f64>,
    /// Target rate that the node leads the session to, bit/s.
    pub target_bps: Option<f64>,
    /// At a source: what the sink grants, as far as heard.
    pub sink_expected_bps: Option<f64>,
    /// Max rate that the application allows or requests, bit/s; `None` if unlimited.
    pub desired_bps: Option<f64>,
    /// At a source on a shared path: its part of what the path is taken to carry; by a tunnel that is full, what went.
    pub path_rate_bps: Option<f64>,
    /// The limit of the session.
    pub limited_by: Option<LimitedBy>,
    /// The number that shows the limit, in words.
    pub because: String,
    /// If an end declares the path dedicated and it is treated as shared: why, and what to type.
    #[serde(default)]
    pub path_note: Option<String>,
    /// Advice, in words, with what to type.
    #[serde(default)]
    pub advice: Option<String>,
    /// Facts about its path.
    #[serde(default)]
    pub path: PathStatus,
    /// The smoothed round-trip time.
    pub rtt_s: Option<f64>,
    /// The largest datagram that the path takes.
    pub datagram_bytes: u32,
    /// Data packets sent so far.
    pub sent_packets: u64,
    /// Data packets that were lost so far: at a source those that the other end reported, at a sink those that it
    /// missed.
    pub lost_packets: u64,
    /// Data packets received so far.
    pub received_packets: u64,
    /// How long nothing has come from the other end.
    pub silent_s: f64,
    /// How long it has also owed an answer, seconds: a peer without requests may be silent.
    #[serde(default)]
    pub unanswered_s: f64,
    /// How long it has answered nothing that this end asked, though it may be heard.
    #[serde(default)]
    pub unheard_s: f64,
    /// The transfer of files that it carries.
    pub transfer: Option<TransferStatus>,
}

/// A live peer answers sooner, seconds.
const SILENT_S: f64 = 2.0;

impl SessionStatus {
    /// Whether the other end owes an answer for so long that the path or that end must be gone.
    pub fn is_silent(&self) -> bool {
        self.unanswered_s > SILENT_S
    }

    /// Whether the other end has sent nothing for so long that it is presumed gone. It is asked for an answer later
    /// than that, so it need not be silent by [`SessionStatus::is_silent`].
    pub fn is_mute(&self) -> bool {
        self.silent_s > SILENT_S
    }

    /// Whether the other end has answered nothing for so long that this end's packets presumably do not arrive.
    pub fn is_unheard(&self) -> bool {
        self.unheard_s > SILENT_S
    }
}
