//! Configuration of a daemon.

use std::path::PathBuf;

use fairwave_node::{CardCapacity, MachineLimits, ShareBy};
use fairwave_schemes::Terms;
use fairwave_units::{Duration, Rate};

/// Configuration of a daemon. Its reader validates it: rates are above zero, users are numeric ids. A running daemon
/// applies only changes of fields that "can change while running" (SIGHUP).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Path of its socket.
    pub socket: PathBuf,
    /// The control interval, from 1 ms to 200 ms; it becomes longer where a tick costs more than 2 % of it.
    pub interval: Duration,
    /// Between whom a capacity is shared before each shares its part among its sessions.
    pub share_by: ShareBy,
    /// Whether queues that grew are drained again.
    pub drain: bool,
    /// Whether a session that opens has its part at its first tick, or the next where something was free; else it climbs to that.
    pub fair_start: bool,
    /// Max number of processes and sessions; can change while running.
    pub limits: MachineLimits,
    /// One capacity for all traffic of this machine, over any card including loopback. If set, cards have no capacities
    /// of their own; can change while running.
    pub everything: Option<CardCapacity>,
    /// Settings of cards, by name. The default of other cards is 95 % of the speed that the system reports, or no
    /// capacity if it reports none; can change while running.
    pub cards: Vec<CardSettings>,
    /// Settings of users, if users share; can change while running.
    pub users: Vec<UserSettings>,
    /// The weight of a card's other traffic as one more group, above zero; `None` if it has no part; can change while
    /// running.
    pub yields: Option<f64>,
}

/// Settings of a network card.
#[derive(Clone, Debug, PartialEq)]
pub struct CardSettings {
    /// The system's name for it, such as "eth0".
    pub name: String,
    /// Capacity of sending, as IP packets; the system's speed if `None`.
    pub send: Option<Rate>,
    /// Capacity of receiving, as IP packets.
    pub receive: Option<Rate>,
    /// GTP's part of both, above 0 and at most 1.
    pub share: f64,
}

/// Settings of a user of the system.
#[derive(Clone, Debug, PartialEq)]
pub struct UserSettings {
    /// The user's number.
    pub user: u32,
    /// Weight, minimum and maximum of all its sessions together.
    pub terms: Terms,
    /// Max number of sessions; [`Settings::limits`] if `None`.
    pub sessions: Option<usize>,
}

impl Settings {
    /// A daemon at this socket that takes the system's word for all cards.
    pub fn at(socket: PathBuf) -> Self {
        Self {
            socket,
            interval: Duration::from_millis(20),
            share_by: ShareBy::User,
            drain: true,
            fair_start: true,
            limits: MachineLimits::default(),
            everything: None,
            cards: Vec::new(),
            users: Vec::new(),
            yields: None,
        }
    }
}
