//! A queue per flow, served in turns (deficit round robin), with CoDel in each or without: FQ-CoDel (RFC 8290;
//! constants as in Linux, `sch_fq_codel.c`). Flows are distinguished exactly, not by a hash.

use std::collections::{BTreeMap, VecDeque};

use super::codel::{Codel, CodelConfig};
use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;
use crate::queue::bound::QueueBound;

/// Maximum number of packets that are dropped at once when all queues together are full (RFC 8290 s4.1.2).
const DROP_BATCH: u64 = 64;

/// The packets of one flow.
#[derive(Default)]
struct FlowQueue {
    fifo: Fifo,
    codel: Codel,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// Whether it is in one of the lists.
    is_listed: bool,
}

/// The queues of all flows.
pub(crate) struct FlowQueues {
    queues: Vec<FlowQueue>,
    /// The queue of each flow and direction.
    known: BTreeMap<(u32, bool), usize>,
    /// Flows that have just started to send, and all others with packets.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    codel: Option<CodelConfig>,
    limit: QueueBound,
    packets: usize,
    bytes: u64,
}

impl FlowQueues {
    /// Queues that send `quantum` bytes each in turn.
    pub(crate) fn new(quantum: u64, codel: Option<CodelConfig>, limit: QueueBound) -> Self {
        Self {
            queues: Vec::new(),
            known: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::try_from(quantum).unwrap_or(i64::MAX).max(1),
            codel,
            limit,
            packets: 0,
            bytes: 0,
        }
    }

    /// Drops from the head of the longest queue: half of its bytes, at most [`DROP_BATCH`] packets.
    fn shorten_longest(&mut self, fates: &mut Fates<'_>) {
        let Some(queue) = self.queues.iter_mut().max_by_key(|queue| queue.fifo.bytes()) else { return };
        let enough = queue.fifo.bytes() / 2;
        let (mut bytes, mut packets) = (0, 0);
        while packets < DROP_BATCH
            && (bytes < enough || packets == 0)
            && let Some(Stored { packet, .. }) = queue.fifo.pop()
        {
            bytes += u64::from(packet.bytes);
            packets += 1;
            fates.drop(packet);
        }
        // As in Linux: drops of an overflow count as CoDel's own.
        queue.codel.count += packets;
        self.bytes -= bytes;
        self.packets -= packets as usize;
    }
}

impl QueueDiscipline for FlowQueues {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        let has_room = self.limit.has_room(self.packets, self.bytes, packet.bytes);
        let next = self.queues.len();
        let at = *self.known.entry((packet.flow, packet.kind.is_data())).or_insert(next);
        if at == next {
            self.queues.push(FlowQueue::default());
        }
        let queue = &mut self.queues[at];
        queue.fifo.push(fates.now, packet);
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        if !queue.is_listed {
            queue.is_listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(at);
        }
        if !has_room {
            self.shorten_longest(fates);
        }
    }

    fn dequeue(&mut self, fates: &mut Fates<'_>) -> Option<Stored> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = list.pop_front()?;
            let queue = &mut self.queues[at];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                self.old.push_back(at);
                continue;
            }
            let (packets, bytes) = (queue.fifo.len(), queue.fifo.bytes());
            let stored = match &self.codel {
                Some(config) => queue.codel.dequeue(&mut queue.fifo, config, fates),
                None => queue.fifo.pop(),
            };
            self.packets -= packets - queue.fifo.len();
            self.bytes -= bytes - queue.fifo.bytes();
            let Some(stored) = stored else {
                // RFC 8290 s4.2: a new flow without packets stays in turn once, so that it cannot gain by pausing.
                if is_new && !self.old.is_empty() {
                    self.old.push_back(at);
                } else {
                    queue.is_listed = false;
                }
                continue;
            };
            queue.deficit -= i64::from(stored.packet.bytes);
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.push_front(at);
            return Some(stored);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.queues.iter().for_each(|queue| queue.fifo.visit(each));
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, ms};
    use super::*;
    use fairwave_units::Time;

    fn bench(limit: u64) -> Bench<FlowQueues> {
        Bench::new(FlowQueues::new(1514, None, QueueBound::Packets(limit)))
    }

    #[test]
    fn dequeue__flows_of_different_sizes_get_equal_bytes() {
        let mut bench = bench(100_000);
        for number in 0..10_000 {
            bench.enqueue(Time::ZERO, 0, number, 1514, None);
            bench.enqueue(Time::ZERO, 1, number, 500, None);
        }
        let mut sent = [0_i64; 2];
        for _ in 0..10_000 {
            let packet = bench.dequeue(Time::ZERO).unwrap().packet;
            sent[packet.flow as usize] += i64::from(packet.bytes);
            // A quantum, and a packet by which a turn may exceed it.
            assert!((sent[0] - sent[1]).abs() <= 2 * 1514, "{sent:?}");
        }
    }

    #[test]
    fn dequeue__a_sparse_flow_goes_first() {
        let mut bench = bench(100_000);
        for number in 0..1000 {
            bench.enqueue(Time::ZERO, 0, number, 1514, None);
        }
        for _ in 0..10 {
            bench.dequeue(Time::ZERO);
        }
        // RFC 8290 s5.1: it never waits behind more than the packet on the wire.
        for number in 0..100 {
            bench.enqueue(ms(1.0), 1, number, 200, None);
            assert_eq!(bench.dequeue(ms(1.0)).unwrap().packet.flow, 1, "packet {number}");
            for _ in 0..4 {
                assert_eq!(bench.dequeue(ms(1.0)).unwrap().packet.flow, 0);
            }
        }
    }

    #[test]
    fn enqueue__an_overflow_drops_a_batch_of_the_longest() {
        for (packets, dropped) in [(200, 64), (100, 50)] {
            let mut bench = bench(packets + 10);
            for number in 0..packets - 1 {
                bench.enqueue(Time::ZERO, 0, number, 1000, None);
            }
            for number in 0..11 {
                bench.enqueue(Time::ZERO, 1, number, 100, None);
            }
            assert_eq!(bench.dropped.len(), 0);
            bench.enqueue(Time::ZERO, 0, packets, 1000, None);
            // Half of the bytes, at most 64 packets, from the head.
            assert_eq!(bench.dropped.len(), dropped, "of {packets}");
            assert!(bench.dropped.iter().enumerate().all(|(at, one)| one.number == at as u64 && one.flow == 0));
        }
    }
}
