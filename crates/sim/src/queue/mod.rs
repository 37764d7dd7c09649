//! Queues that decide when packets leave: a packet keeps the time at which it came, and may be dropped or marked when
//! it leaves.
//!
//! The departure of such a packet is not known when it arrives, so that each departure is an event, unlike at the
//! links of [`crate::link`]. Periodic updates of a rule need no event: nothing changes between two packets, so that a
//! rule catches up when the next one arrives or leaves.

pub(crate) mod avq;
pub(crate) mod bound;
pub(crate) mod codel;
pub(crate) mod dualpi2;
mod fifo;
pub(crate) mod flow_queues;
pub(crate) mod pie;
pub(crate) mod priority;
pub(crate) mod rem;
pub(crate) mod tail_drop;

use fairwave_units::Time;

pub(crate) use fifo::{Fifo, Stored};

use crate::packet::{HeaderStore, SimPacket};

/// The rule of a queue.
pub(crate) trait QueueDiscipline {
    /// A packet arrives. It, or another, may be dropped.
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>);

    /// The packet that leaves now; the rule may drop others before it. `None` only if the queue is empty afterwards.
    fn dequeue(&mut self, fates: &mut Fates<'_>) -> Option<Stored>;

    /// Bytes in the queue.
    fn bytes(&self) -> u64;

    /// Calls `each` for every packet in the queue.
    fn visit(&self, each: &mut dyn FnMut(&SimPacket));
}

/// Drops and marks of a rule at one instant.
pub(crate) struct Fates<'a> {
    pub(crate) now: Time,
    pub(crate) headers: &'a mut HeaderStore,
    /// Packets that were dropped.
    pub(crate) dropped: &'a mut Vec<SimPacket>,
    /// Number of packets that were marked.
    pub(crate) marked: &'a mut u64,
}

impl Fates<'_> {
    /// Marks a packet; returns false if its ends do not understand marks.
    pub(crate) fn mark(&mut self, packet: &SimPacket) -> bool {
        let is_marked = self.headers.mark(packet.kind);
        *self.marked += u64::from(is_marked);
        is_marked
    }

    /// Drops a packet.
    pub(crate) fn drop(&mut self, packet: SimPacket) {
        self.dropped.push(packet);
    }
}

#[cfg(test)]
pub(crate) mod bench {
    //! A queue under test, with its own clock and headers.

    use fairwave_schemes::header::{CongestionHeader, EcnCode};
    use fairwave_units::{Duration, Time};

    use super::{Fates, QueueDiscipline, Stored};
    use crate::packet::{HeaderStore, SimPacket, SimPacketKind};

    /// A queue and what became of its packets.
    pub(crate) struct Bench<Q> {
        pub(crate) queue: Q,
        pub(crate) headers: HeaderStore,
        pub(crate) dropped: Vec<SimPacket>,
        pub(crate) marked: u64,
    }

    impl<Q: QueueDiscipline> Bench<Q> {
        pub(crate) fn new(queue: Q) -> Self {
            Self { queue, headers: HeaderStore::default(), dropped: Vec::new(), marked: 0 }
        }

        /// A packet of a flow arrives, with this code if it is ECN-capable.
        pub(crate) fn enqueue(&mut self, now: Time, flow: u32, number: u64, bytes: u32, code: Option<EcnCode>) {
            let kind = code.map_or(SimPacketKind::DATA, |code| self.headers.keep(CongestionHeader::Ecn(code)));
            let packet = SimPacket { number, stamp: now, flow, bytes, stage: 0, kind };
            let Self { queue, headers, dropped, marked } = self;
            queue.enqueue(packet, &mut Fates { now, headers, dropped, marked });
        }

        pub(crate) fn dequeue(&mut self, now: Time) -> Option<Stored> {
            let Self { queue, headers, dropped, marked } = self;
            queue.dequeue(&mut Fates { now, headers, dropped, marked })
        }
    }

    pub(crate) fn ms(ms: f64) -> Time {
        Time::ZERO + Duration::from_nanos((ms * 1e6).round() as u64)
    }
}
