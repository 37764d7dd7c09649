//! The propagation part of a way: packets that left a link together with the same delay arrive in the order in which
//! they left, so a ring holds them and its head alone is a pending event.

use std::collections::VecDeque;

use fairwave_units::{Duration, Time};

use crate::event_queue::Key;
use crate::packet::Packet;

/// Packets under way, in order of arrival.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) delay: Duration,
    /// Who minds when packets arrive.
    end: End,
    ring: VecDeque<(Key, Packet)>,
}

/// Who minds when the packets of a line arrive at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// No packet has come so far.
    Unused,
    /// Sinks that do not answer: packets may be counted later, as those of their time, and need no event.
    Quiet,
    /// A link, or an end node that answers.
    Busy,
}

impl Line {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, end: End::Unused, ring: VecDeque::new() }
    }

    /// Whether nobody minds when packets arrive at its end.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.end == End::Quiet
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

    /// Takes the packet that arrives first, and its time, if it is not later than `now`.
    #[inline]
    pub(crate) fn pop_until(&mut self, now: Time) -> Option<(Time, Packet)> {
        let (key, packet) = *self.ring.front().filter(|(key, _)| key.time() <= now)?;
        self.ring.pop_front();
        Some((key.time(), packet))
    }

    /// Takes note that packets will come, to an end that minds when they arrive or does not.
    pub(crate) fn open(&mut self, end: End) {
        debug_assert!(self.ring.is_empty() || end <= self.end, "packets are under way without an event");
        self.end = self.end.max(end);
    }

    /// Packets under way.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.ring.iter().map(|(_, packet)| packet)
    }
}
