//! The status of a process with sessions.

use std::net::SocketAddr;

use fairwave_units::Rate;
use serde::{Deserialize, Serialize};

use super::session::SessionStatus;
use crate::capacity::Capacity;

/// Of the format.
pub(super) const VERSION: u32 = 1;

/// The status of a process with sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The version of this format: 1.
    pub version: u32,
    /// Its number.
    pub pid: u32,
    /// Its purpose: "serve", "get".
    pub command: String,
    /// The local address of its socket.
    pub listen: Option<SocketAddr>,
    /// Send capacity of its end node, bit/s; `None` if unknown.
    pub send_capacity_bps: Option<f64>,
    /// Receive capacity, bit/s.
    pub receive_capacity_bps: Option<f64>,
    /// The source of the capacities, in words.
    pub capacity_from: String,
    /// Its sessions.
    pub sessions: Vec<SessionStatus>,
}

impl ProcessStatus {
    /// The status of this process: its sessions are those of two samples.
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
