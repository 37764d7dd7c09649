//! Strict priority: eight queues, of which the highest that has packets is served.

use fairwave_schemes::header::CongestionHeader;

use super::bound::QueueBound;
use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;

/// Levels of priority.
const LEVELS: usize = 8;

/// A queue per level. Packets without data have the highest level, data packets that name none the lowest.
pub(crate) struct PriorityQueue {
    levels: [Fifo; LEVELS],
    limit: QueueBound,
}

impl PriorityQueue {
    pub(crate) fn new(limit: QueueBound) -> Self {
        Self { levels: Default::default(), limit }
    }
}

impl QueueDiscipline for PriorityQueue {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        let queued = self.levels.iter().map(Fifo::len).sum();
        if !self.limit.has_room(queued, self.bytes(), packet.bytes) {
            return fates.drop(packet);
        }
        let level = match fates.headers.get(packet.kind) {
            Some(CongestionHeader::Priority(level)) => usize::from(*level).min(LEVELS - 1),
            _ if packet.kind.is_data() => 0,
            _ => LEVELS - 1,
        };
        self.levels[level].push(fates.now, packet);
    }

    fn dequeue(&mut self, _fates: &mut Fates<'_>) -> Option<Stored> {
        self.levels.iter_mut().rev().find_map(Fifo::pop)
    }

    fn bytes(&self) -> u64 {
        self.levels.iter().map(Fifo::bytes).sum()
    }

    fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.levels.iter().for_each(|level| level.visit(each));
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Time;

    use super::super::bench::Bench;
    use super::*;
    use crate::packet::SimPacketKind;

    #[test]
    fn dequeue__serves_the_highest_level_first() {
        let mut bench = Bench::new(PriorityQueue::new(QueueBound::Packets(5)));
        let mut arrive = |number, kind: Option<SimPacketKind>, level| {
            let kind = kind.unwrap_or_else(|| bench.headers.keep(CongestionHeader::Priority(level)));
            let packet = SimPacket { number, stamp: Time::ZERO, flow: 0, bytes: 1000, stage: 0, kind };
            let Bench { queue, headers, dropped, marked } = &mut bench;
            queue.enqueue(packet, &mut Fates { now: Time::ZERO, headers, dropped, marked });
        };
        arrive(0, Some(SimPacketKind::DATA), 0);
        arrive(1, None, 3);
        arrive(2, None, 4);
        arrive(3, Some(SimPacketKind::PLAIN_ACK), 0);
        arrive(4, None, 4);
        arrive(5, None, 7);
        // The queue was full for the last.
        assert_eq!(bench.dropped.iter().map(|packet| packet.number).collect::<Vec<_>>(), [5]);
        let order = std::iter::from_fn(|| bench.dequeue(Time::ZERO)).map(|stored| stored.packet.number);
        assert_eq!(order.collect::<Vec<_>>(), [3, 2, 4, 1, 0]);
    }
}
