//! CoDel: controlled delay (RFC 8289; constants and marks as in Linux, `codel_impl.h`).

use fairwave_scenario::Aqm;
use fairwave_units::{Duration, Time};

use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;
use crate::queue::bound::QueueBound;

/// Target of the minimum queueing delay (RFC 8289 s4.3).
const TARGET: Duration = Duration::from_millis(5);
/// Time for which the delay may exceed the target: about the largest common round-trip time (RFC 8289 s4.2).
const INTERVAL: Duration = Duration::from_millis(100);
/// A drop rate is remembered for this many intervals (RFC 8289 s5.5).
const REMEMBERED_INTERVALS: u64 = 16;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelConfig {
    pub(crate) target: Duration,
    pub(crate) interval: Duration,
    pub(crate) ecn: bool,
    /// The delay of a queue of at most this size does not count: one full packet.
    pub(crate) max_packet: u64,
}

impl CodelConfig {
    pub(crate) fn new(aqm: &Aqm, ecn: bool, max_packet: u64) -> Self {
        Self { target: aqm.target.unwrap_or(TARGET), interval: aqm.interval.unwrap_or(INTERVAL), ecn, max_packet }
    }
}

/// The state of one queue under control.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// When a delay that stays above the target becomes a reason to drop; `None` while it is below.
    first_above: Option<Time>,
    is_dropping: bool,
    drop_next: Time,
    /// Drops since dropping started.
    pub(crate) count: u64,
    /// `count` when dropping started.
    last_count: u64,
}

impl Codel {
    /// Removes the packet that leaves a queue, after those that the rule drops.
    pub(crate) fn dequeue(&mut self, fifo: &mut Fifo, config: &CodelConfig, fates: &mut Fates<'_>) -> Option<Stored> {
        let now = fates.now;
        let (mut first, mut is_over) = self.take(fifo, config, now)?;
        if self.is_dropping {
            self.is_dropping = is_over;
            while self.is_dropping && now >= self.drop_next {
                // As in Linux, a mark counts as a drop: the packet leaves, and no other is examined now.
                self.count += 1;
                if config.ecn && fates.mark(&first.packet) {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                    return Some(first);
                }
                fates.drop(first.packet);
                let Some(next) = self.take(fifo, config, now) else {
                    self.is_dropping = false;
                    return None;
                };
                (first, is_over) = next;
                if is_over {
                    // From the time that was planned, not from now (RFC 8289 s5.4).
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                } else {
                    self.is_dropping = false;
                }
            }
            return Some(first);
        }
        if !is_over {
            return Some(first);
        }
        let is_marked = config.ecn && fates.mark(&first.packet);
        self.is_dropping = true;
        // RFC 8289 s5.4: the drop rate that controlled the queue the last time, if that was recently.
        let delta = self.count - self.last_count;
        let remembered = Duration::from_nanos(config.interval.as_nanos().saturating_mul(REMEMBERED_INTERVALS));
        let is_recent = now.since(self.drop_next.min(now)) < remembered;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, config.interval, self.count);
        if is_marked {
            return Some(first);
        }
        fates.drop(first.packet);
        self.take(fifo, config, now).map(|(next, _)| next)
    }

    /// The next packet, and whether the delay has been above the target for an interval.
    fn take(&mut self, fifo: &mut Fifo, config: &CodelConfig, now: Time) -> Option<(Stored, bool)> {
        let Some(stored) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(stored.since) < config.target || fifo.bytes() <= config.max_packet {
            self.first_above = None;
            return Some((stored, false));
        }
        let at = *self.first_above.get_or_insert(now.saturating_add(config.interval));
        Some((stored, now >= at))
    }
}

/// The time of the next drop: drops get closer with the inverse square root of their number.
fn control_law(from: Time, interval: Duration, count: u64) -> Time {
    from.saturating_add(Duration::from_nanos((interval.as_nanos() as f64 / (count as f64).sqrt()) as u64))
}

/// One queue under CoDel.
pub(crate) struct CodelQueue {
    fifo: Fifo,
    codel: Codel,
    config: CodelConfig,
    limit: QueueBound,
}

impl CodelQueue {
    pub(crate) fn new(config: CodelConfig, limit: QueueBound) -> Self {
        Self { fifo: Fifo::default(), codel: Codel::default(), config, limit }
    }
}

impl QueueDiscipline for CodelQueue {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        if self.limit.has_room(self.fifo.len(), self.fifo.bytes(), packet.bytes) {
            self.fifo.push(fates.now, packet);
        } else {
            fates.drop(packet);
        }
    }

    fn dequeue(&mut self, fates: &mut Fates<'_>) -> Option<Stored> {
        self.codel.dequeue(&mut self.fifo, &self.config, fates)
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
    use fairwave_schemes::header::EcnCode;

    fn bench(ecn: bool) -> Bench<CodelQueue> {
        let config = CodelConfig::new(&Aqm::default(), ecn, 1500);
        Bench::new(CodelQueue::new(config, QueueBound::Packets(1_000_000)))
    }

    /// A packet leaves every 0.1 ms; 10 000 came at time zero. Returns the times of drops or marks, in ms.
    fn times(bench: &mut Bench<CodelQueue>, code: Option<EcnCode>, until_ms: f64) -> Vec<f64> {
        for number in 0..20_000 {
            bench.enqueue(Time::ZERO, 0, number, 1500, code);
        }
        let mut times = Vec::new();
        let mut before = 0;
        for step in 0..(until_ms * 10.0) as u64 {
            let now = step as f64 / 10.0;
            bench.dequeue(ms(now)).unwrap();
            let count = bench.dropped.len() as u64 + bench.marked;
            times.extend((before..count).map(|_| now));
            before = count;
        }
        times
    }

    /// RFC 8289 s5.4: t + interval / sqrt(count), from the planned times: 100, 70.7, 57.7, 50 ms ... apart.
    const AFTER_FIRST_MS: [f64; 10] = [100.0, 170.7, 228.4, 278.4, 323.2, 364.0, 401.8, 437.1, 470.5, 502.1];

    #[test]
    fn dequeue__drops_by_the_control_law() {
        let times = times(&mut bench(false), None, 620.0);
        // The delay reaches 5 ms at 5 ms; the first drop is an interval later.
        assert!((times[0] - 105.0).abs() < 0.11, "{times:?}");
        for (at, expected) in times[1..].iter().zip(AFTER_FIRST_MS) {
            // The list is rounded, and departures are 0.1 ms apart.
            assert!((-0.05..0.16).contains(&(at - times[0] - expected)), "{at} {expected}");
        }
        assert_eq!(times.len(), 11);
    }

    #[test]
    fn dequeue__marks_at_the_same_times() {
        let mut marking = bench(true);
        assert_eq!(times(&mut marking, Some(EcnCode::Capable), 620.0).len(), 11);
        assert_eq!((marking.marked, marking.dropped.len()), (11, 0));
        assert_eq!(times(&mut bench(true), None, 620.0), times(&mut bench(false), None, 620.0));
    }

    #[test]
    fn dequeue__the_last_packet_is_never_dropped() {
        let mut bench = bench(false);
        for number in 0..1000 {
            // One packet at a time, each after a second in the queue.
            bench.enqueue(ms(number as f64 * 1000.0), 0, number, 1500, None);
            assert!(bench.dequeue(ms(number as f64 * 1000.0 + 999.0)).is_some());
        }
        assert_eq!(bench.dropped.len(), 0);
    }

    #[test]
    fn dequeue__resumes_near_the_rate_that_controlled_the_queue() {
        let mut bench = bench(false);
        // Drops for 0.7 s: then the queue drains within 16 intervals, and fills again.
        assert!(times(&mut bench, None, 800.0).len() > 15);
        while bench.dequeue(ms(800.0)).is_some() {}
        let before = bench.queue.codel.count;
        for number in 0..10_000 {
            bench.enqueue(ms(800.0), 0, number, 1500, None);
        }
        let dropped = bench.dropped.len();
        let mut step = 8000;
        while bench.dropped.len() == dropped {
            step += 1;
            bench.dequeue(ms(f64::from(step) / 10.0)).unwrap();
        }
        assert_eq!(bench.queue.codel.count, before - 1);
    }
}
