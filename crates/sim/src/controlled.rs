//! A link rule in use: it is called for every packet that reaches a queue and for every packet that leaves it.
//!
//! The departure of a packet is known when it arrives, so that it needs no event. The rule is called later, at the next
//! event that could matter: a packet arrives, the rule's timer is due, or the header of a packet that has left is read.
//! Until then only departures change the state, so the calls have the same effect.

use std::collections::VecDeque;

use fairwave_schemes::link::{LinkController, Passage};
use fairwave_units::Time;

use crate::packet::{HeaderStore, SimPacketKind};

/// A link rule with the packets whose departure it has not processed yet.
pub(crate) struct Controlled {
    rule: Box<dyn LinkController>,
    waiting: VecDeque<QueuedPacket>,
    queue_bytes: u64,
}

/// A packet in the queue.
#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    /// Time of departure from the queue.
    leaves: Time,
    bytes: u32,
    kind: SimPacketKind,
    /// Whether the wire was busy on arrival.
    waits: bool,
}

impl Controlled {
    pub(crate) fn new(rule: Box<dyn LinkController>) -> Self {
        Self { rule, waiting: VecDeque::new(), queue_bytes: 0 }
    }

    /// Time of the rule's next timer.
    pub(crate) fn next_timer(&self) -> Time {
        self.rule.next_timer()
    }

    /// The rule's timer is due.
    pub(crate) fn on_timer(&mut self, now: Time, headers: &mut HeaderStore) {
        self.catch_up(now, headers);
        self.rule.on_timer(now, self.queue_bytes);
    }

    /// A packet reaches the queue.
    pub(crate) fn on_arrival(&mut self, now: Time, bytes: u32, kind: SimPacketKind, headers: &mut HeaderStore) {
        self.catch_up(now, headers);
        let passage = Passage { now, bytes, is_data: kind.is_data(), queue_bytes: self.queue_bytes };
        let header = if passage.is_data { headers.get(kind) } else { None };
        self.rule.on_arrival(&passage, header);
    }

    /// Adds a packet that has room, with its departure time.
    pub(crate) fn enqueue(&mut self, leaves: Time, bytes: u32, kind: SimPacketKind, waits: bool) {
        self.queue_bytes += u64::from(bytes);
        self.waiting.push_back(QueuedPacket { leaves, bytes, kind, waits });
    }

    /// Calls the rule for all packets that have left the queue. Their headers are final afterwards.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Time, headers: &mut HeaderStore) {
        while let Some(QueuedPacket { leaves, bytes, kind, waits }) = self.waiting.front().copied()
            && leaves <= now
        {
            self.waiting.pop_front();
            let is_data = kind.is_data();
            // A packet that finds the wire idle is never in the queue.
            let queue_bytes = if waits { self.queue_bytes } else { 0 };
            let header = if is_data { headers.get_mut(kind) } else { None };
            self.rule.on_departure(&Passage { now: leaves, bytes, is_data, queue_bytes }, header);
            self.queue_bytes -= u64::from(bytes);
        }
    }
}
