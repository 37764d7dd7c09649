//! The propagation part of a way: packets that left a link together with the same delay arrive in the order in which
//! they left, so a ring holds them and its head alone is a pending event.

use std::collections::VecDeque;

use fairwave_units::Duration;

use crate::event_queue::Key;
use crate::packet::Packet;

/// Packets under way, in order of arrival.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) delay: Duration,
    ring: VecDeque<(Key, Packet)>,
}

impl Line {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, ring: VecDeque::new() }
    }

    /// Adds a packet that arrives after all others; true if it is the only one.
    #[inline]
    pub(crate) fn push(&mut self, arrival: Key, packet: Packet) -> bool {
        let was_empty = self.ring.is_empty();
        if self.ring.len() == self.ring.capacity() {
            // By a quarter, where a ring by itself doubles: the packets under way are most of what a run keeps.
            self.ring.reserve_exact(self.ring.len() / 4 + 4);
        }
        self.ring.push_back((arrival, packet));
        was_empty
    }

    /// Takes the packet that arrives, and says when the next one does.
    #[inline]
    pub(crate) fn pop(&mut self) -> (Option<Packet>, Option<Key>) {
        let arrived = self.ring.pop_front();
        (arrived.map(|(_, packet)| packet), self.ring.front().map(|(key, _)| *key))
    }

    /// Packets under way.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.ring.iter().map(|(_, packet)| packet)
    }
}
