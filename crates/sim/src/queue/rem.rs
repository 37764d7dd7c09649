//! REM: random exponential marking (Athuraliya, Low, Li & Yin 2001), as ns-2.35 has it (`queue/rem.cc`): a price rises
//! with the excess of input and queue, and marks or drops with a probability exponential in it.
//!
//! Ours: the mean packet is a full one (ns-2: 1000 B), and with ECN packets that are not ECN-capable are dropped.

use fairwave_scenario::Aqm;
use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Rate, Time};

use super::bound::QueueBound;
use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;

/// Step of the price per packet of excess (ns-default.tcl).
const GAMMA: f64 = 0.001;
/// Weight of the queue in the excess (in the code of rem.cc).
const ALPHA: f64 = 0.1;
/// Base of the exponential.
const PHI: f64 = 1.001;
/// Time between updates.
const UPDATE: Duration = Duration::from_millis(2);
/// Target of the queue in packets.
const TARGET_PACKETS: f64 = 20.0;

/// Probability at a price.
fn probability(price: f64) -> f64 {
    -libm::expm1(-price * libm::log(PHI))
}

/// A queue under REM.
pub(crate) struct RemQueue {
    fifo: Fifo,
    limit: QueueBound,
    ecn: bool,
    /// Packets that the link sends between two updates.
    per_update: f64,
    update: Duration,
    next_update: Time,
    price: f64,
    /// Packets that arrived since the last update, dropped ones included.
    arrivals: u64,
    stream: RandomStream,
}

impl RemQueue {
    pub(crate) fn new(
        aqm: &Aqm,
        ecn: bool,
        limit: QueueBound,
        capacity: Rate,
        packet: u64,
        stream: RandomStream,
    ) -> Self {
        let update = aqm.interval.unwrap_or(UPDATE);
        let per_update = update.as_secs_f64() * capacity.as_bps() / (8.0 * packet as f64);
        let (fifo, next_update) = (Fifo::default(), Time::ZERO + update);
        Self { fifo, limit, ecn, per_update, update, next_update, price: 0.0, arrivals: 0, stream }
    }

    /// All updates until now.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let excess = self.arrivals as f64 + ALPHA * (self.fifo.len() as f64 - TARGET_PACKETS) - self.per_update;
            self.price = (self.price + GAMMA * excess).max(0.0);
            self.arrivals = 0;
            self.next_update += self.update;
            if self.price == 0.0 && excess < 0.0 && self.next_update <= now {
                // Nothing changes any more: whole periods are skipped.
                let periods = now.since(self.next_update).as_nanos() / self.update.as_nanos() + 1;
                self.next_update += Duration::from_nanos(periods * self.update.as_nanos());
            }
        }
    }

    fn selects(&mut self) -> bool {
        self.price > 0.0 && self.stream.unit() < probability(self.price)
    }
}

impl QueueDiscipline for RemQueue {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        self.catch_up(fates.now);
        self.arrivals += 1;
        let has_room = self.limit.has_room(self.fifo.len(), self.fifo.bytes(), packet.bytes);
        let is_dropped = !(self.ecn && fates.headers.is_capable(packet.kind)) && has_room && self.selects();
        if has_room && !is_dropped { self.fifo.push(fates.now, packet) } else { fates.drop(packet) }
    }

    fn dequeue(&mut self, fates: &mut Fates<'_>) -> Option<Stored> {
        self.catch_up(fates.now);
        let stored = self.fifo.pop()?;
        if self.ecn && fates.headers.is_capable(stored.packet.kind) && self.selects() {
            fates.mark(&stored.packet);
        }
        Some(stored)
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
    use super::super::bench::{Bench, ms};
    use super::*;
    use fairwave_scenario::random;

    /// 10 Mb/s and packets of 1000 B: 2.5 packets an update.
    fn queue() -> RemQueue {
        let (limit, stream) = (QueueBound::Packets(1000), random::stream(1, "rem"));
        RemQueue::new(&Aqm::default(), false, limit, Rate::mbps(10.0), 1000, stream)
    }

    #[test]
    fn probability__grows_exponentially_and_multiplies_over_links() {
        for (price, expected) in [(10.06, 0.01), (105.4, 0.1), (693.5, 0.5)] {
            assert!((probability(price) - expected).abs() < 2e-5, "{price}: {}", probability(price));
        }
        let two = 1.0 - (1.0 - probability(100.0)) * (1.0 - probability(200.0));
        assert!((two - 0.259_07).abs() < 1e-5 && (two - probability(300.0)).abs() < 1e-12);
    }

    #[test]
    fn catch_up__price_follows_input_and_queue() {
        let mut bench = Bench::new(queue());
        assert_eq!(bench.queue.per_update, 2.5);
        for number in 0..30 {
            bench.enqueue(ms(1.0), 0, number, 1000, None);
        }
        bench.queue.arrivals = 5;
        bench.queue.catch_up(ms(2.0));
        // .001 x (5 + .1 x (30 - 20) - 2.5) = .0035.
        assert!((bench.queue.price - 0.0035).abs() < 1e-12);
        assert!((probability(bench.queue.price) - 3.498e-6).abs() < 1e-9);
        bench.queue.fifo = Fifo::default();
        bench.queue.catch_up(Time::from_secs(1_000_000_000));
        assert_eq!((bench.queue.price, bench.queue.arrivals), (0.0, 0));
    }

    #[test]
    fn enqueue__rest_is_at_capacity_and_the_target_queue() {
        let mut bench = Bench::new(queue());
        // 10 % more than the link sends: drops must settle at 1/11, whatever the queue.
        let (mut number, mut sums, mut late_drops) = (0, 0.0, 0);
        for step in 0..1_000_000_u64 {
            let now = ms(step as f64 * 0.8);
            for _ in 0..if step.is_multiple_of(10) { 2 } else { 1 } {
                bench.enqueue(now, 0, number, 1000, None);
                number += 1;
            }
            bench.dequeue(ms(step as f64 * 0.8 + 0.4));
            if step == 500_000 {
                late_drops = bench.dropped.len();
            }
            if step > 500_000 {
                sums += bench.queue.fifo.len() as f64;
            }
        }
        let mean = sums / 499_999.0;
        assert!((15.0..25.0).contains(&mean), "{mean} packets");
        let share = (bench.dropped.len() - late_drops) as f64 / 550_000.0;
        assert!((share - 1.0 / 11.0).abs() < 0.003, "{share}");
    }
}
