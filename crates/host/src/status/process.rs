//! What a process with sessions does.

use std::net::SocketAddr;

use fairwave_units::Rate;
use serde::{Deserialize, Serialize};

use super::session::SessionStatus;
use crate::capacity::Capacity;

/// Of the format.
pub(super) const VERSION: u32 = 1;

/// What a process with sessions does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The version of this format: 1.
    pub version: u32,
    /// Its number.
    pub pid: u32,
    /// What it is for: "serve", "get".
    pub command: String,
    /// Where its socket is bound.
    pub listen: Option<SocketAddr>,
    /// What its end node may send, bit/s; none where that is unknown.
    pub send_capacity_bps: Option<f64>,
    /// What it may receive.
    pub receive_capacity_bps: Option<f64>,
    /// Where that is known from, in words.
    pub capacity_from: String,
    /// Its sessions.
    pub sessions: Vec<SessionStatus>,
}

impl ProcessStatus {
    /// What this process does: its sessions are those of two samples.
    pub fn of(
        command: &str,
        listen: Option<SocketAddr>,
        capacities: [&Capacity; 2],
        sessions: Vec<SessionStatus>,
    ) -> Self {
        let [send, receive] = capacities;
        let bps = |capacity: &Capacity| capacity.rate.map(Rate::as_bps);
        Self {
            version: VERSION,
            pid: std::process::id(),
            command: command.to_owned(),
            listen,
            send_capacity_bps: bps(send),
            receive_capacity_bps: bps(receive),
            capacity_from: send.origin.to_string(),
            sessions,
        }
    }
}
