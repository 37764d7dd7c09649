//! DualPI2: a queue for L4S and one for other traffic, with coupled marks (RFC 9332; Linux, `sch_dualpi2.c`).

use fairwave_scenario::Aqm;
use fairwave_scenario::random::RandomStream;
use fairwave_schemes::header::{CongestionHeader, EcnCode};
use fairwave_units::{Duration, Time};

use super::{Fates, Fifo, QueueDiscipline, Stored};
use crate::packet::SimPacket;
use crate::queue::bound::QueueBound;

/// Target delay of the classic queue.
const TARGET: Duration = Duration::from_millis(15);
/// Time between updates: Linux's 16 ms. RFC 9332 A.1 has min(target, RTT_max / 3).
const UPDATE: Duration = Duration::from_millis(16);
/// Gains per second: Linux's. RFC 9332 A.1 gives 0.1 x UPDATE / RTT_max^2 = 0.16 and 0.3 / RTT_max = 3.0, at 100 ms.
const ALPHA: f64 = 0.16;
const BETA: f64 = 3.2;
/// Coupling factor (RFC 9332 s2.1).
const K: f64 = 2.0;
/// Delay from which the L4S queue marks all packets: Linux's step.
const STEP: Duration = Duration::from_millis(1);
/// Weights of the scheduler: a tenth of the link is kept for the classic queue while both have packets.
const CLASSIC_WEIGHT: i64 = 10;
const L4S_WEIGHT: i64 = 90;

/// The base probability p'.
#[derive(Clone, Copy, Debug)]
struct PiControl {
    target_s: f64,
    p: f64,
    old_delay_s: f64,
}

impl PiControl {
    fn update(&mut self, delay_s: f64) {
        let change = ALPHA * (delay_s - self.target_s) + BETA * (delay_s - self.old_delay_s);
        self.p = (self.p + change).clamp(0.0, 1.0);
        self.old_delay_s = delay_s;
    }
}

/// Both queues under DualPI2.
pub(crate) struct DualPi2 {
    l4s: Fifo,
    classic: Fifo,
    limit: QueueBound,
    control: PiControl,
    update: Duration,
    next_update: Time,
    step: Duration,
    /// The classic queue is served while it is above zero.
    credit: i64,
    max_packet: u64,
    stream: RandomStream,
}

impl DualPi2 {
    /// `step` is the delay from which all packets of the L4S queue are marked; `None` for Linux's.
    pub(crate) fn new(
        aqm: &Aqm,
        step: Option<Duration>,
        limit: QueueBound,
        max_packet: u64,
        stream: RandomStream,
    ) -> Self {
        let update = aqm.interval.unwrap_or(UPDATE);
        let target_s = aqm.target.unwrap_or(TARGET).as_secs_f64();
        Self {
            l4s: Fifo::default(),
            classic: Fifo::default(),
            limit,
            control: PiControl { target_s, p: 0.0, old_delay_s: 0.0 },
            update,
            next_update: Time::ZERO + update,
            step: step.unwrap_or(STEP),
            credit: 0,
            max_packet,
            stream,
        }
    }

    /// All updates until now.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            // Linux: the longer delay of both queues, so that an overload of either is noticed.
            let delay = self.l4s.delay(self.next_update).max(self.classic.delay(self.next_update));
            self.control.update(delay.as_secs_f64());
            self.next_update += self.update;
            if delay.is_zero() && self.control.p == 0.0 && self.next_update <= now && self.bytes() == 0 {
                // Nothing changes any more: whole periods are skipped.
                let periods = now.since(self.next_update).as_nanos() / self.update.as_nanos() + 1;
                self.next_update += Duration::from_nanos(periods * self.update.as_nanos());
            }
        }
    }

    /// The queue to serve, and what that changes in the credit per byte.
    fn choose(&self) -> Option<(bool, i64)> {
        match (self.l4s.is_empty(), self.classic.is_empty()) {
            (true, true) => None,
            (false, true) => Some((true, 0)),
            (true, false) => Some((false, 0)),
            (false, false) if self.credit <= 0 => Some((true, CLASSIC_WEIGHT)),
            (false, false) => Some((false, -L4S_WEIGHT)),
        }
    }

    /// A coin of probability `p`.
    fn coin(&mut self, p: f64) -> bool {
        self.stream.unit() < p
    }

    /// Marks a packet that leaves, if the rule selects it; returns false if it is to be dropped.
    fn pass(&mut self, stored: &Stored, is_l4s: bool, backlog: u64, fates: &mut Fates<'_>) -> bool {
        if backlog < 2 * self.max_packet {
            return true;
        }
        let p = self.control.p;
        let is_overload = K * p > 1.0;
        // RFC 9332 s2.5.1: the square, by two coins.
        if is_l4s {
            if is_overload && self.coin(p) && self.coin(p) {
                return false;
            }
            if is_overload || fates.now.since(stored.since) > self.step || self.coin(K * p) {
                fates.mark(&stored.packet);
            }
            return true;
        }
        !(self.coin(p) && self.coin(p)) || (!is_overload && fates.mark(&stored.packet))
    }
}

impl QueueDiscipline for DualPi2 {
    fn enqueue(&mut self, packet: SimPacket, fates: &mut Fates<'_>) {
        self.catch_up(fates.now);
        if !self.limit.has_room(self.l4s.len() + self.classic.len(), self.bytes(), packet.bytes) {
            return fates.drop(packet);
        }
        // RFC 9331 s5.1: ECT(1) and CE.
        let is_l4s = packet.kind.is_data()
            && matches!(
                fates.headers.get(packet.kind),
                Some(CongestionHeader::Ecn(EcnCode::CapableL4s | EcnCode::Experienced))
            );
        let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
        queue.push(fates.now, packet);
    }

    fn dequeue(&mut self, fates: &mut Fates<'_>) -> Option<Stored> {
        self.catch_up(fates.now);
        while let Some((is_l4s, credit)) = self.choose() {
            let backlog = self.bytes();
            let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
            let Some(stored) = queue.pop() else { break };
            if !self.pass(&stored, is_l4s, backlog, fates) {
                fates.drop(stored.packet);
                continue;
            }
            self.credit += credit * i64::from(stored.packet.bytes);
            if self.bytes() == 0 {
                self.credit = 0;
            }
            return Some(stored);
        }
        None
    }

    fn bytes(&self) -> u64 {
        self.l4s.bytes() + self.classic.bytes()
    }

    fn visit(&self, each: &mut dyn FnMut(&SimPacket)) {
        self.l4s.visit(each);
        self.classic.visit(each);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, ms};
    use super::*;
    use fairwave_scenario::random;

    fn bench() -> Bench<DualPi2> {
        let stream = random::stream(1, "dualpi2");
        Bench::new(DualPi2::new(&Aqm::default(), None, QueueBound::Packets(100_000), 1500, stream))
    }

    /// A bench at a fixed p', whose next update is never due.
    fn fixed(p: f64) -> Bench<DualPi2> {
        let mut bench = bench();
        bench.queue.control.p = p;
        bench.queue.next_update = Time::MAX;
        bench
    }

    /// Of 100 000 packets of a code that leave as they come, behind a standing queue: those dropped and marked.
    fn shares(p: f64, code: Option<EcnCode>) -> (f64, f64) {
        let mut bench = fixed(p);
        for _ in 0..100_000 {
            while bench.queue.bytes() < 50 * 1500 {
                bench.enqueue(Time::ZERO, 0, 0, 1500, code);
            }
            bench.dequeue(Time::ZERO).unwrap();
        }
        let passed = 100_000.0 + bench.dropped.len() as f64;
        (bench.dropped.len() as f64 / passed, bench.marked as f64 / passed)
    }

    #[test]
    fn update__first_step() {
        // 0 to 30 ms: .16 x .015 + 3.2 x .030 = .0984.
        let mut control = PiControl { target_s: 0.015, p: 0.0, old_delay_s: 0.0 };
        control.update(0.030);
        assert!((control.p - 0.0984).abs() < 1e-12, "{}", control.p);
        control.update(0.0);
        assert_eq!(control.p, 0.0); // .0984 - .0984
    }

    #[test]
    fn pass__classic_gets_the_square_and_l4s_twice_the_base() {
        // p' = 0.1: 1 % and 20 %. Standard errors 0.03 % and 0.13 %.
        let (dropped, marked) = shares(0.1, None);
        assert!((dropped - 0.01).abs() < 0.0015 && marked == 0.0, "{dropped} {marked}");
        let (dropped, marked) = shares(0.1, Some(EcnCode::Capable));
        assert!((marked - 0.01).abs() < 0.0015 && dropped == 0.0, "{dropped} {marked}");
        let (dropped, marked) = shares(0.1, Some(EcnCode::CapableL4s));
        assert!((marked - 0.2).abs() < 0.006 && dropped == 0.0, "{dropped} {marked}");
    }

    #[test]
    fn pass__overload_drops_in_both_queues() {
        // p' = 0.6: 36 % are dropped, whatever their code, and the rest of L4S is marked.
        for code in [None, Some(EcnCode::Capable), Some(EcnCode::CapableL4s)] {
            let (dropped, marked) = shares(0.6, code);
            assert!((dropped - 0.36).abs() < 0.007, "{code:?}: {dropped}");
            let expected = if code == Some(EcnCode::CapableL4s) { 1.0 - dropped } else { 0.0 };
            assert!((marked - expected).abs() < 1e-3, "{code:?}: {marked}");
        }
    }

    #[test]
    fn dequeue__serves_l4s_nine_times_of_ten() {
        let mut bench = fixed(0.0);
        for number in 0..5000 {
            bench.enqueue(Time::ZERO, 0, number, 1500, Some(EcnCode::CapableL4s));
            bench.enqueue(Time::ZERO, 1, number, 1500, None);
        }
        let l4s = (0..1000).filter(|_| bench.dequeue(Time::ZERO).unwrap().packet.flow == 0).count();
        assert_eq!(l4s, 900);
    }

    #[test]
    fn dequeue__l4s_is_marked_beyond_the_step_only() {
        let mut bench = fixed(0.0);
        for number in 0..10 {
            bench.enqueue(Time::ZERO, 0, number, 1500, Some(EcnCode::CapableL4s));
        }
        bench.dequeue(ms(1.0));
        assert_eq!(bench.marked, 0);
        bench.dequeue(ms(1.1));
        assert_eq!(bench.marked, 1);
        // RFC 9332: not with less than two packets of backlog.
        while bench.queue.bytes() > 1500 {
            bench.dequeue(ms(5.0));
        }
        let before = bench.marked;
        bench.dequeue(ms(9.0));
        assert_eq!(bench.marked, before);
    }

    #[test]
    fn catch_up__follows_the_head_of_the_queue() {
        let mut bench = bench();
        bench.enqueue(Time::ZERO, 0, 0, 1500, None);
        // At 16 ms the head has waited 16 ms: .16 x .001 + 3.2 x .016.
        bench.enqueue(ms(20.0), 0, 1, 1500, None);
        assert!((bench.queue.control.p - (0.000_16 + 0.0512)).abs() < 1e-12, "{}", bench.queue.control.p);
        let mut idle = self::bench();
        idle.queue.catch_up(Time::from_secs(1_000_000_000));
        assert_eq!(idle.queue.next_update.as_nanos() % 16_000_000, 0);
    }
}
