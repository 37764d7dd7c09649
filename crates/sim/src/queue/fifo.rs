//! Packets in the order of their arrival.

use std::collections::VecDeque;

use fairwave_units::{Duration, Time};

use crate::packet::SimPacket;

/// A packet in a queue, and when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) packet: SimPacket,
    pub(crate) since: Time,
}

/// A queue in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<Stored>,
    bytes: u64,
}

impl Fifo {
    pub(crate) fn push(&mut self, since: Time, packet: SimPacket) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(Stored { packet, since });
    }

    pub(crate) fn pop(&mut self) -> Option<Stored> {
        let stored = self.packets.pop_front()?;
        self.bytes -= u64::from(stored.packet.bytes);
        Some(stored)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Time for which the first packet has waited; zero for an empty queue.
    pub(crate) fn delay(&self, now: Time) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |first| now.since(first.since))
    }

    pub(crate) fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.packets.iter().for_each(|stored| each(&stored.packet));
    }
}
