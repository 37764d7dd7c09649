//! AVQ: adaptive virtual queue (Kunniyur & Srikant 2001), as ns-2.35 has it (`queue/vq.cc`): packets are marked or
//! dropped when a virtual queue of a smaller capacity overflows, and that capacity adapts to the wanted utilisation.

use fairwave_units::{Rate, Time};

use super::bound::QueueBound;
use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;

/// Gain of the virtual capacity, per second (ns-default.tcl).
const ALPHA: f64 = 0.15;
/// Wanted utilisation.
const GAMMA: f64 = 0.98;
/// Virtual capacity at the start, as a share of the real one.
const START: f64 = 0.8;

/// The virtual queue, in bytes.
#[derive(Clone, Copy, Debug)]
struct VirtualQueue {
    /// Capacity of the link in bytes per second.
    capacity: f64,
    virtual_capacity: f64,
    limit: f64,
    backlog: f64,
    /// Last arrival, and the last one that counted for the capacity.
    last: Option<Time>,
    last_counted: Option<Time>,
}

impl VirtualQueue {
    /// A packet arrives; returns whether the queue overflows.
    fn arrive(&mut self, now: Time, bytes: f64) -> bool {
        let drained = self.virtual_capacity * self.last.map_or(0.0, |last| now.since(last).as_secs_f64());
        self.last = Some(now);
        self.backlog = (self.backlog - drained).max(0.0) + bytes;
        let overflows = self.backlog > self.limit;
        if overflows {
            self.backlog -= bytes;
        }
        overflows
    }

    /// A packet is accepted, marked or not: the capacity adapts.
    fn adapt(&mut self, now: Time, bytes: f64) {
        let span_s = self.last_counted.map_or(0.0, |last| now.since(last).as_secs_f64());
        self.last_counted = Some(now);
        let change = ALPHA * (GAMMA * self.capacity * span_s - bytes);
        self.virtual_capacity = (self.virtual_capacity + change).clamp(0.0, self.capacity);
    }
}

/// A queue under AVQ.
pub(crate) struct AvqQueue {
    fifo: Fifo,
    limit: QueueBound,
    ecn: bool,
    control: VirtualQueue,
}

impl AvqQueue {
    pub(crate) fn new(ecn: bool, limit: QueueBound, capacity: Rate, packet: u64) -> Self {
        let capacity = capacity.as_bps() / 8.0;
        let bytes = match limit {
            QueueBound::Packets(packets) => packets.saturating_mul(packet),
            QueueBound::Bytes(bytes) => bytes,
        };
        let control = VirtualQueue {
            capacity,
            virtual_capacity: START * capacity,
            limit: bytes as f64,
            backlog: 0.0,
            last: None,
            last_counted: None,
        };
        Self { fifo: Fifo::default(), limit, ecn, control }
    }
}

impl QueueDiscipline for AvqQueue {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        let (now, bytes) = (fates.now, f64::from(packet.bytes));
        let overflows = self.control.arrive(now, bytes);
        if overflows && !(self.ecn && fates.mark(&packet)) {
            return fates.drop(packet);
        }
        self.control.adapt(now, bytes);
        let has_room = self.limit.has_room(self.fifo.len(), self.fifo.bytes(), packet.bytes);
        if has_room { self.fifo.push(now, packet) } else { fates.drop(packet) }
    }

    fn dequeue(&mut self, _fates: &mut Fates<'_>) -> Option<Stored> {
        self.fifo.pop()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.fifo.visit(each);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use fairwave_schemes::header::EcnCode;
    use fairwave_units::Duration;

    /// 1250 packets of 1000 B a second, a virtual buffer of 10.
    fn queue() -> AvqQueue {
        AvqQueue::new(true, QueueBound::Packets(10), Rate::mbps(10.0), 1000)
    }

    #[test]
    fn adapt__by_alpha_times_the_difference_of_wanted_and_arrived() {
        for (span_us, packets) in [(1000.0, 0.033_75), (1e6 / 1225.0, 0.0)] {
            let mut control = queue().control;
            control.last_counted = Some(Time::ZERO);
            control.adapt(Time::ZERO + Duration::from_nanos((span_us * 1e3) as u64), 1000.0);
            let change = (control.virtual_capacity - 1e6) / 1000.0;
            assert!((change - packets).abs() < 1e-6, "{change}");
        }
    }

    #[test]
    fn enqueue__marks_as_the_reference_does() {
        // The rules by themselves, in Python: arrivals a second, the first mark, marks and capacity after 5000.
        for (per_s, first, marks, capacity) in
            [(1500.0, 28, 1887, 862.38), (1300.0, 40, 1229, 956.59), (1225.0, 50, 910, 999.85)]
        {
            let mut bench = Bench::new(queue());
            let mut first_mark = None;
            for number in 0..5000 {
                let now = Time::ZERO + Duration::from_nanos((number as f64 * 1e9 / per_s).round() as u64);
                bench.enqueue(now, 0, number, 1000, Some(EcnCode::Capable));
                bench.dequeue(now);
                if bench.marked == 1 {
                    first_mark = first_mark.or(Some(number + 1));
                }
            }
            assert_eq!((first_mark, bench.marked), (Some(first), marks));
            assert!((bench.queue.control.virtual_capacity / 1000.0 - capacity).abs() < 0.01, "{per_s}");
        }
    }

    #[test]
    fn enqueue__drops_what_cannot_be_marked() {
        let mut bench = Bench::new(queue());
        for number in 0..12 {
            bench.enqueue(Time::ZERO, 0, number, 1000, None);
        }
        assert_eq!((bench.dropped.len(), bench.marked), (2, 0));
    }
}
