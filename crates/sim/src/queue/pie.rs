//! PIE: proportional integral controller enhanced (RFC 8033), by timestamps (s5.2) instead of a departure rate.

use fairwave_scenario::Aqm;
use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Time};

use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;
use crate::queue::bound::QueueBound;

/// Target of the queueing delay in seconds (RFC 8033 s5.1, QDELAY_REF).
const TARGET_S: f64 = 0.015;
/// Time between updates (T_UPDATE).
const UPDATE: Duration = Duration::from_millis(15);
/// Gains per second (s4.2).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Time after the start of a burst for which nothing is dropped, in seconds (MAX_BURST).
const MAX_BURST_S: f64 = 0.15;
/// From this probability on, ECN-capable packets are dropped as well (s5.1, mark_ecnth).
const MARK_BELOW: f64 = 0.1;

/// The probability of a drop.
#[derive(Clone, Copy, Debug)]
struct PieControl {
    target_s: f64,
    update_s: f64,
    p: f64,
    old_delay_s: f64,
    burst_s: f64,
}

impl PieControl {
    /// An update at a queueing delay.
    fn update(&mut self, delay_s: f64) {
        let mut change = ALPHA * (delay_s - self.target_s) + BETA * (delay_s - self.old_delay_s);
        // s5.3: a small probability changes in small steps.
        change /= match self.p {
            ..1e-6 => 2048.0,
            ..1e-5 => 512.0,
            ..1e-4 => 128.0,
            ..1e-3 => 32.0,
            ..1e-2 => 8.0,
            ..0.1 => 2.0,
            _ => 1.0,
        };
        if self.p >= 0.1 {
            change = change.min(0.02);
        }
        if delay_s > 0.25 {
            // Linux's sch_pie.c: a queue this long has to shrink soon.
            change += 0.02;
        }
        self.p += change;
        if delay_s == 0.0 && self.old_delay_s == 0.0 {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        let is_short = delay_s < self.target_s / 2.0 && self.old_delay_s < self.target_s / 2.0;
        self.old_delay_s = delay_s;
        self.burst_s = if self.p == 0.0 && is_short { MAX_BURST_S } else { (self.burst_s - self.update_s).max(0.0) };
    }
}

/// A queue under PIE.
pub(crate) struct PieQueue {
    fifo: Fifo,
    limit: QueueBound,
    ecn: bool,
    control: PieControl,
    update: Duration,
    next_update: Time,
    /// Queueing delay of the packet that left last.
    last_delay: Duration,
    /// Sum of the probabilities since the last drop (s5.4).
    accumulated: f64,
    max_packet: u64,
    stream: RandomStream,
}

impl PieQueue {
    pub(crate) fn new(aqm: &Aqm, ecn: bool, limit: QueueBound, max_packet: u64, stream: RandomStream) -> Self {
        let update = aqm.interval.unwrap_or(UPDATE);
        let target_s = aqm.target.map_or(TARGET_S, Duration::as_secs_f64);
        let update_s = update.as_secs_f64();
        Self {
            fifo: Fifo::default(),
            limit,
            ecn,
            control: PieControl { target_s, update_s, p: 0.0, old_delay_s: 0.0, burst_s: MAX_BURST_S },
            update,
            next_update: Time::ZERO + update,
            last_delay: Duration::ZERO,
            accumulated: 0.0,
            max_packet,
            stream,
        }
    }

    /// All updates until now.
    fn catch_up(&mut self, now: Time) {
        let delay = if self.fifo.is_empty() { Duration::ZERO } else { self.last_delay };
        let delay_s = delay.as_secs_f64();
        while self.next_update <= now {
            self.control.update(delay_s);
            self.next_update += self.update;
            let PieControl { p, old_delay_s, burst_s, .. } = self.control;
            if delay.is_zero() && p == 0.0 && old_delay_s == 0.0 && burst_s == MAX_BURST_S && self.next_update <= now {
                // Nothing changes any more: whole periods are skipped.
                let periods = now.since(self.next_update).as_nanos() / self.update.as_nanos() + 1;
                self.next_update += Duration::from_nanos(periods * self.update.as_nanos());
            }
        }
    }

    /// Whether the rule selects an arriving packet (s5.4 and s4.1).
    fn selects(&mut self) -> bool {
        let control = &self.control;
        if control.burst_s > 0.0
            || (control.old_delay_s < control.target_s / 2.0 && control.p < 0.2)
            || self.fifo.bytes() <= 2 * self.max_packet
        {
            return false;
        }
        if control.p == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += control.p;
        let is_selected = self.accumulated >= 0.85 && (self.accumulated >= 8.5 || self.stream.unit() < control.p);
        if is_selected {
            self.accumulated = 0.0;
        }
        is_selected
    }
}

impl QueueDiscipline for PieQueue {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        self.catch_up(fates.now);
        let has_room = self.limit.has_room(self.fifo.len(), self.fifo.bytes(), packet.bytes);
        if !has_room {
            return fates.drop(packet);
        }
        if self.selects() && !(self.ecn && self.control.p <= MARK_BELOW && fates.mark(&packet)) {
            return fates.drop(packet);
        }
        self.fifo.push(fates.now, packet);
    }

    fn dequeue(&mut self, fates: &mut Fates<'_>) -> Option<Stored> {
        self.catch_up(fates.now);
        let stored = self.fifo.pop()?;
        self.last_delay = fates.now.since(stored.since);
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

    fn control(p: f64, old_delay_s: f64) -> PieControl {
        PieControl { target_s: 0.015, update_s: 0.015, p, old_delay_s, burst_s: 0.15 }
    }

    fn queue() -> PieQueue {
        PieQueue::new(&Aqm::default(), false, QueueBound::Packets(1_000_000), 1500, random::stream(1, "pie"))
    }

    #[test]
    fn update__first_step() {
        // .125 x .015 + 1.25 x .030 = .039375, over 2048 while p < 1e-6; with the same delay before, .001875 over 2048.
        for (old, expected) in [(0.0, 0.039_375 / 2048.0), (0.030, 9.155_273_437_5e-7)] {
            let mut control = control(0.0, old);
            control.update(0.030);
            assert!((control.p - expected).abs() < 1e-15, "{}", control.p);
        }
    }

    #[test]
    fn update__is_bounded_and_decays() {
        // p >= 10 %: at most 2 % more; beyond 250 ms another 2 %.
        let mut fast = control(0.2, 0.0);
        fast.update(0.2);
        assert!((fast.p - 0.22).abs() < 1e-12);
        fast.update(0.3);
        assert!((fast.p - 0.26).abs() < 1e-12);
        // Two updates of an empty queue: -.125 x .015, then x .98.
        let mut empty = control(0.5, 0.0);
        empty.update(0.0);
        assert!((empty.p - (0.5 - 0.001_875) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn update__ten_use_up_the_burst() {
        let mut control = control(0.0, 0.030);
        for update in 0..10 {
            assert!(control.burst_s > 1e-9, "after {update}");
            control.update(0.030);
        }
        assert!(control.burst_s < 1e-9);
    }

    #[test]
    fn catch_up__skips_idle_periods() {
        let mut queue = queue();
        queue.catch_up(Time::from_secs(1_000_000_000));
        assert!(queue.next_update > Time::from_secs(1_000_000_000));
        assert_eq!(queue.next_update.as_nanos() % 15_000_000, 0);
    }

    #[test]
    fn enqueue__holds_the_delay_of_an_unresponsive_excess() {
        let mut bench = Bench::new(queue());
        let mut waited = Vec::new();
        // 1500 B leave each ms; 11 come in 10 ms. Then p has to settle at 1/11.
        let mut number = 0;
        for step in 0..200_000_u64 {
            let now = ms(step as f64);
            for _ in 0..if step.is_multiple_of(10) { 2 } else { 1 } {
                bench.enqueue(now, 0, number, 1500, None);
                number += 1;
            }
            if let Some(stored) = bench.dequeue(ms(step as f64 + 0.5))
                && step > 100_000
            {
                waited.push(now.since(stored.since).as_secs_f64());
            }
        }
        let mean_s = waited.iter().sum::<f64>() / waited.len() as f64;
        assert!((0.013..0.017).contains(&mean_s), "{mean_s}");
        let share = bench.dropped.len() as f64 / number as f64;
        assert!((0.08..0.1).contains(&share), "{share}");
    }
}
