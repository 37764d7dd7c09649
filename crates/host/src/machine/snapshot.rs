//! The visible state of a machine.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Of the format.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The visible state of a machine at one tick of its daemon. Rates are of IP packets, in bit/s.
///
/// A user sees their own sessions, and only sums of other users'; the daemon's own user and root see all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSnapshot {
    /// The version of this format: [`SNAPSHOT_VERSION`].
    pub version: u32,
    /// The daemon's process.
    pub pid: u32,
    /// Which daemon this is: another number after each start.
    pub daemon: u64,
    /// Number of ticks so far.
    pub tick: u64,
    /// When this one was, by CLOCK_MONOTONIC.
    pub at_s: f64,
    /// Time since the daemon's start, seconds.
    pub uptime_s: f64,
    /// The control interval.
    pub interval_s: f64,
    /// Recent cost of a tick, seconds, from reading the first row to writing the last grant.
    pub tick_cost_s: f64,
    /// Whether it still grants no more than the former grants of the sessions that returned after its start.
    pub is_grace: bool,
    /// Between whom capacities are shared: "user", "process" or "session".
    pub share_by: String,
    /// The end nodes, by card and direction.
    pub nodes: Vec<NodeSnapshot>,
    /// The sessions that the user may see, by process and session.
    pub sessions: Vec<RowSnapshot>,
    /// All users with processes here.
    pub users: Vec<UserSnapshot>,
    /// Counters since the start.
    pub counts: DaemonCounts,
}

/// An end node: a card and a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSnapshot {
    /// The card's name; `None` if one capacity is for everything.
    pub card: Option<String>,
    /// Whether it is the sink of what crosses it, else the source.
    pub receives: bool,
    /// Its capacity: what its sessions may use together.
    pub capacity_bps: f64,
    /// Total rate of its sessions in the last interval, bit/s.
    pub measured_bps: f64,
    /// Total of their grants, bit/s.
    pub expected_bps: f64,
    /// Number of sessions that share it.
    pub sessions: usize,
    /// Max distance of the grants from the (hierarchical) max-min vector, as a share of a session's rate in it; a
    /// session that uses less than its grant wants no more than what it uses. `None` without sessions.
    pub gap_to_max_min: Option<f64>,
    /// The card's other traffic, where it has a part.
    pub other: Option<OtherTraffic>,
}

/// Traffic of a card that is not of the table's sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherTraffic {
    /// The weight of all of it together.
    pub weight: f64,
    /// Its rate, bit/s: the card's counters less the table's.
    pub measured_bps: f64,
    /// Rate left to it, bit/s; not enforced.
    pub expected_bps: f64,
}

/// A session, and the direction in which it crosses a card: a row of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowSnapshot {
    /// The process.
    pub pid: u32,
    /// Its user.
    pub user: u32,
    /// Purpose of the process, as it reports: "serve", "get".
    pub command: String,
    /// Its name in its process, 16 hexadecimal digits, as `fairwave status` has it.
    pub id: String,
    /// Address of its peer.
    pub peer: Option<IpAddr>,
    /// Whether this end is its sink, else its source.
    pub receives: bool,
    /// The card that it crosses; `None` if one capacity is for everything, or unknown.
    pub card: Option<String>,
    /// Its state.
    pub state: ShownState,
    /// Its rate in the last interval, bit/s, as it reports.
    pub measured_bps: f64,
    /// Its grant, bit/s.
    pub expected_bps: f64,
    /// Target of the grant, bit/s.
    pub target_bps: f64,
    /// Its rate in the max-min vector, bit/s, if a node holds it.
    pub max_min_bps: Option<f64>,
    /// Max rate that its application can use, bit/s; `None` if unlimited.
    pub desired_bps: Option<f64>,
    /// Its weight within its group: the sessions of one ticket have that of one session together.
    pub weight: f64,
    /// The rate that it is promised.
    pub minimum_bps: f64,
    /// Its max rate, bit/s.
    pub maximum_bps: Option<f64>,
    /// The peer's rate, bit/s: a sink's grant, or a source's claim.
    pub remote_bps: Option<f64>,
    /// Estimated capacity of its path, bit/s.
    pub path_rate_bps: Option<f64>,
    /// Its limit, in the words of `fairwave why`.
    pub limited_by: Option<String>,
    /// The smoothed round-trip time.
    pub rtt_s: Option<f64>,
    /// Min queueing delay of its packets, seconds.
    pub waiting_s: Option<f64>,
    /// Bytes sent or received since it opened, with all headers.
    pub wire_bytes: u64,
    /// Packets lost since it opened; it wraps at 2^32.
    pub lost_packets: u32,
}

/// State of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownState {
    /// It shares a node's capacity.
    #[default]
    Shares,
    /// No capacity is known where it goes.
    Free,
    /// It is beyond the limit, or has values that no rule can run with.
    Refused,
    /// Its process has written nothing for four intervals.
    Still,
    /// It uses more than it is granted.
    Exceeds,
}

/// A user with processes at the daemon: sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserSnapshot {
    /// Its number.
    pub user: u32,
    /// Its name, if the system knows it.
    pub name: Option<String>,
    /// Number of their processes.
    pub processes: usize,
    /// Number of their rows.
    pub sessions: usize,
    /// Their total rate of sending, bit/s.
    pub sent_bps: f64,
    /// Their total rate of receiving, bit/s.
    pub received_bps: f64,
    /// The weight of all its sessions together, where users share.
    pub weight: f64,
}

/// Counters of a daemon since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonCounts {
    /// Processes that took part.
    pub joined: u64,
    /// Processes that were refused: too many of a user, another version, another clock, nonsense.
    pub refused_processes: u64,
    /// Times that a row was refused: too many of a user, or nothing that a rule can run with.
    pub refused_rows: u64,
    /// Times that a row held nothing that could be read: rubbish, or the middle of a write.
    pub unread_rows: u64,
    /// Sessions that exceeded their grant until their process was asked to close them.
    pub exceeded: u64,
    /// Ticks that were more than a tenth of an interval late.
    pub late_ticks: u64,
}
