//! What one session does, and what limits it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::limited_by::LimitedBy;
use super::path_status::PathStatus;
use super::transfer::TransferStatus;
use crate::carrier::Carrier;

/// What one session does. Rates are of IP packets, as GTP's all are.
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
    /// What carries its datagrams: "udp", "tcp" or "ssh".
    #[serde(default)]
    pub carrier: Carrier,
    /// Whether both ends say that nobody else uses the path.
    pub is_dedicated: bool,
    /// Whether data go without secrecy.
    pub is_plain: bool,
    /// What went over the wire just now, in the direction that has more, bit/s.
    pub rate_bps: f64,
    /// What the end node measured; none without an end node.
    pub measured_bps: Option<f64>,
    /// What this end's node grants.
    pub expected_bps: Option<f64>,
    /// Where it leads the session.
    pub target_bps: Option<f64>,
    /// At a source: what the sink grants, as far as heard.
    pub sink_expected_bps: Option<f64>,
    /// What the application allows, or asks for at the most; none if that is anything.
    pub desired_bps: Option<f64>,
    /// At a source on a shared path: its part of what the path is taken to carry; by a tunnel that is full, what went.
    pub path_rate_bps: Option<f64>,
    /// What limits it.
    pub limited_by: Option<LimitedBy>,
    /// The number that says so, in words.
    pub because: String,
    /// Where an end calls the path dedicated and it is not taken for that: why, and what to type.
    #[serde(default)]
    pub path_note: Option<String>,
    /// What may help, in words, with what to type.
    #[serde(default)]
    pub advice: Option<String>,
    /// What is known of its path.
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
    /// How long it has owed an answer besides: who is asked for nothing may be silent.
    #[serde(default)]
    pub unanswered_s: f64,
    /// How long it has answered nothing that this end asked, though it may be heard.
    #[serde(default)]
    pub unheard_s: f64,
    /// The transfer of files that it carries.
    pub transfer: Option<TransferStatus>,
}

/// Who lives answers sooner.
const SILENT_S: f64 = 2.0;

impl SessionStatus {
    /// Whether the other end owes an answer for so long that the path or that end must be gone.
    pub fn is_silent(&self) -> bool {
        self.unanswered_s > SILENT_S
    }

    /// Whether nothing has come from the other end for so long that it cannot be taken for one that is there. It is asked
    /// for an answer later than that, so it need not be silent by [`SessionStatus::is_silent`].
    pub fn is_mute(&self) -> bool {
        self.silent_s > SILENT_S
    }

    /// Whether the other end has answered nothing for so long that what this end says cannot get there.
    pub fn is_unheard(&self) -> bool {
        self.unheard_s > SILENT_S
    }
}
