//! The hosts that the messages of Homa share.

use std::collections::BTreeMap;

use fairwave_schemes::session::homa::{HomaGrant, HomaReceiver};
use fairwave_units::{Duration, Rate, Time};

/// The hosts of all nodes, by node.
#[derive(Default)]
pub(crate) struct HomaHosts {
    pub(crate) senders: BTreeMap<u32, HomaSender>,
    /// Receivers, with the grants of messages whose turn to send them has not come.
    pub(crate) receivers: BTreeMap<u32, (HomaReceiver, BTreeMap<u32, HomaGrant>)>,
}

/// The sending end of a node.
pub(crate) struct HomaSender {
    rate: Option<Rate>,
    pub(crate) free_at: Time,
    /// Messages that may send, with their remaining packets.
    pub(crate) ready: BTreeMap<u32, u64>,
}

impl HomaSender {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, free_at: Time::ZERO, ready: BTreeMap::new() }
    }

    /// The message with the least remaining packets.
    pub(crate) fn best(&self) -> Option<u32> {
        self.ready.iter().min_by_key(|(flow, remaining)| (**remaining, **flow)).map(|(flow, _)| *flow)
    }

    /// Sends a packet or a message: the next packet waits until the link has carried it.
    pub(crate) fn occupy(&mut self, now: Time, bytes: u32) {
        let takes = self.rate.and_then(|rate| Duration::from_secs_f64(f64::from(bytes) * 8.0 / rate.as_bps()));
        self.free_at = self.free_at.max(now).saturating_add(takes.unwrap_or_default());
    }
}
