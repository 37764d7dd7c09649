//! The model on a known path: every state, the transitions, and losses.

use std::collections::VecDeque;

use fairwave_units::{Bytes, Duration, Rate, Time};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

use super::super::delivery_rate::{DeliveryRate, SentStamp};
use super::super::rate_sample::{LossPoint, RateSample};
use super::config::BbrConfig;
use super::model::Bbr;
use super::short_term::ShortTerm;
use super::state::BbrState::{self, Drain, ProbeCruise, ProbeDown, ProbeRefill, ProbeRtt, ProbeUp, Startup};

const PACKET: u64 = 1000;
const RTT: Duration = Duration::from_millis(40);

/// A link of 8 Mb/s, a packet a millisecond, and 40 ms: a BDP of 40 packets.
struct Path {
    model: Bbr,
    rate: DeliveryRate,
    now_us: u64,
    next_us: u64,
    /// Time from which the link is free.
    free_us: u64,
    packet_us: u64,
    buffer_us: u64,
    /// Feedback by its time of arrival: send time of the packet, its stamp, and whether it arrived.
    news: VecDeque<(u64, u64, SentStamp, bool)>,
    /// Period of lost packets, in packets.
    lose_each: u64,
    sent: u64,
    /// The application pauses.
    is_idle: bool,
    states: Vec<BbrState>,
    lost: u64,
    delivered: u64,
    /// Interval of reports.
    report_us: u64,
    reported_us: u64,
}

impl Path {
    fn new(buffer_bdp: f64) -> Self {
        let config = BbrConfig { initial_rtt: Some(RTT), seed: 7, ..BbrConfig::new(Bytes::new(PACKET)) };
        Self {
            model: Bbr::new(Time::ZERO, config),
            rate: DeliveryRate::default(),
            now_us: 0,
            next_us: 0,
            free_us: 0,
            packet_us: 1000,
            buffer_us: (buffer_bdp * 40_000.0) as u64,
            news: VecDeque::new(),
            lose_each: u64::MAX,
            sent: 0,
            is_idle: false,
            states: vec![BbrState::Startup],
            lost: 0,
            delivered: 0,
            report_us: 0,
            reported_us: 0,
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now_us * 1000)
    }

    fn run_until(&mut self, end_s: f64) {
        let end_us = (end_s * 1e6) as u64;
        while self.now_us < end_us {
            self.now_us += 100;
            self.hear();
            self.send();
        }
    }

    fn hear(&mut self) {
        if self.now_us < self.reported_us + self.report_us {
            return;
        }
        let mut newest = None;
        while let Some(&(at, sent, stamp, arrived)) = self.news.front().filter(|news| news.0 <= self.now_us) {
            self.news.pop_front();
            self.reported_us = self.now_us;
            let sent_at = Time::from_nanos(sent * 1000);
            if arrived {
                self.rate.on_arrived(Bytes::new(PACKET), sent_at, stamp);
                self.delivered += 1;
            } else {
                self.rate.on_lost(Bytes::new(PACKET), stamp);
                self.lost += 1;
            }
            // Without the time that the packet waited for the report.
            newest = Some(at - sent);
        }
        let Some(rtt_us) = newest else { return };
        let sample = self.rate.sample(self.now(), Some(Duration::from_micros(rtt_us)));
        self.tell(&sample);
    }

    fn tell(&mut self, sample: &RateSample) {
        self.model.on_sample(self.now(), sample);
        let state = self.model.state();
        if self.states.last() != Some(&state) {
            self.states.push(state);
        }
    }

    fn send(&mut self) {
        while !self.is_idle && self.next_us <= self.now_us {
            if self.rate.in_flight().get() + PACKET > self.model.window_bytes().get() {
                return;
            }
            let stamp = self.rate.on_sent(self.now(), Bytes::new(PACKET));
            self.model.on_sent(self.now(), Bytes::new(PACKET), &stamp);
            self.sent += 1;
            let apart_us = (PACKET as f64 * 8e6 / self.model.pacing_rate().as_bps()) as u64;
            self.next_us = self.next_us.max(self.now_us.saturating_sub(1000)) + apart_us;
            let queued_us = self.free_us.saturating_sub(self.now_us);
            let is_lost = self.sent.is_multiple_of(self.lose_each) || queued_us > self.buffer_us + self.packet_us;
            if !is_lost {
                self.free_us = self.free_us.max(self.now_us) + self.packet_us;
            }
            self.news.push_back((self.free_us.max(self.now_us) + 40_000, self.now_us, stamp, !is_lost));
        }
    }

    /// Packets per second over the next `seconds`.
    fn goodput(&mut self, seconds: f64) -> f64 {
        let before = self.delivered;
        self.run_until(self.now_us as f64 / 1e6 + seconds);
        (self.delivered - before) as f64 / seconds
    }

    fn has_followed(&self, states: &[BbrState]) -> bool {
        self.states.windows(states.len()).any(|some| some == states)
    }
}

#[test]
fn startup__ends_in_drain_and_the_cycle_follows() {
    let mut path = Path::new(5.0);
    path.run_until(4.9);
    // The queue has drained when drain ends: down ends immediately.
    assert_eq!(path.states[..5], [Startup, Drain, ProbeCruise, ProbeRefill, ProbeUp], "{:?}", path.states);
    assert!(path.has_followed(&[ProbeUp, ProbeDown, ProbeCruise]), "{:?}", path.states);
    let mbps = path.model.max_bandwidth().as_mbps();
    assert!((7.8..8.3).contains(&mbps), "{mbps}");
    assert!(path.model.min_rtt().unwrap() < Duration::from_millis(42));
}

#[test]
fn probe_rtt__follows_five_seconds_without_lower_rtt() {
    let mut path = Path::new(5.0);
    path.run_until(12.0);
    assert!(path.has_followed(&[ProbeRtt, ProbeCruise]), "{:?}", path.states);
    // With half a BDP in flight for 200 ms of five seconds and a tenth: a fiftieth; and 1 % of margin.
    let goodput = path.goodput(15.0);
    assert!(goodput > 950.0, "{goodput}");
}

#[test]
fn startup__ends_with_losses_in_a_queue_and_their_bound_stays() {
    let mut path = Path::new(0.3);
    path.run_until(3.0);
    assert!(path.model.is_path_full() && path.model.long_term_bound().is_some(), "{:?}", path.states);
    let goodput = path.goodput(10.0);
    assert!(goodput > 930.0, "{goodput}");
    assert!(path.lost * 50 < path.sent, "{} of {} lost", path.lost, path.sent);
}

/// Ten of about sixty packets are reported as lost while the model drains, which already answers the losses of startup.
#[test]
fn losses__of_startup_reported_late_set_no_bound() {
    let bounds_of_losses_sent_after = |delivered: u64| {
        let mut path = Path::new(1.0);
        path.model.config.is_told_late = true;
        while path.model.state() == Startup {
            path.run_until(path.now_us as f64 / 1e6 + 0.001);
        }
        let total_delivered = path.rate.delivered();
        let lost = RateSample {
            newly_lost: Bytes::new(10 * PACKET),
            lost_ranges: 10,
            lost_delivered: Bytes::new(total_delivered.get() + delivered),
            total_delivered,
            in_flight: path.rate.in_flight(),
            ..RateSample::default()
        };
        path.tell(&lost);
        assert_eq!(path.model.state(), Drain);
        path.run_until(path.now_us as f64 / 1e6 + 0.2);
        path.model.short_term
    };
    assert_eq!(bounds_of_losses_sent_after(0), ShortTerm::default());
    assert_ne!(bounds_of_losses_sent_after(PACKET), ShortTerm::default());
}

#[test]
fn losses__of_the_path_itself_leave_it_full() {
    for (lose_each, least) in [(100, 930.0), (20, 880.0), (3, 550.0)] {
        let mut path = Path::new(1.0);
        path.lose_each = lose_each;
        path.run_until(10.0);
        let goodput = path.goodput(20.0);
        assert!(goodput > least, "one of {lose_each} lost: {goodput}");
    }
}

#[test]
fn rate__follows_the_path_down_and_up() {
    let mut path = Path::new(1.0);
    path.run_until(10.0);
    path.packet_us = 5000; // a fifth
    path.run_until(18.0);
    let mbps = path.model.bandwidth().as_mbps();
    assert!((1.3..1.8).contains(&mbps), "{mbps}");
    path.packet_us = 1000;
    path.run_until(40.0);
    let mbps = path.model.bandwidth().as_mbps();
    assert!(mbps > 7.0, "{mbps}");
}

#[test]
fn rate__falls_within_a_second_despite_a_deep_queue() {
    let mut path = Path::new(20.0);
    path.run_until(10.0);
    let lost = path.lost;
    path.packet_us = 5000; // a fifth
    path.run_until(11.0);
    // The queue from a window of two BDPs would take it 0.36 s.
    let queue_us = path.free_us.saturating_sub(path.now_us);
    assert!(queue_us < 40_000 && path.lost == lost, "{queue_us} us");
    let mbps = path.model.bandwidth().as_mbps();
    assert!((1.5..1.7).contains(&mbps), "{mbps}");
    let goodput = path.goodput(4.0);
    assert!(goodput > 180.0, "{goodput}");
}

#[test]
fn reports__a_quarter_of_a_round_trip_apart_do_as_well() {
    let mut path = Path::new(1.0);
    path.report_us = 10_000;
    path.run_until(5.0);
    let goodput = path.goodput(20.0);
    assert!(goodput > 930.0, "{goodput}");
}

#[test]
fn on_sent__resumes_at_the_bandwidth_after_a_pause() {
    let mut path = Path::new(1.0);
    path.run_until(4.0);
    let before = path.model.bandwidth();
    path.is_idle = true;
    path.run_until(11.0);
    path.rate.mark_app_limited();
    path.is_idle = false;
    path.next_us = path.now_us;
    path.states.clear();
    path.run_until(11.2);
    assert!(!path.states.contains(&BbrState::ProbeRtt), "{:?}", path.states);
    assert!(path.model.bandwidth() >= before * 0.99, "{}", path.model.bandwidth());
}

#[test]
fn startup__continues_while_grants_limit_sending() {
    let mut path = Path::new(1.0);
    // One packet every 10 ms, and no more is granted, whatever the model allows.
    for step in 1..200_u64 {
        path.now_us = step * 10_000;
        path.hear();
        path.rate.mark_app_limited();
        path.next_us = path.now_us;
        let stamp = path.rate.on_sent(path.now(), Bytes::new(PACKET));
        path.model.on_sent(path.now(), Bytes::new(PACKET), &stamp);
        path.news.push_back((path.now_us + 40_000, path.now_us, stamp, true));
    }
    assert_eq!((path.model.state(), path.model.is_path_full()), (BbrState::Startup, false));
}

#[test]
fn on_sample__losses_that_were_late_are_undone() {
    let mut path = Path::new(1.0);
    path.run_until(3.0);
    let (window, bandwidth) = (path.model.window_bytes(), path.model.bandwidth());
    // A tenth of the packets in flight is reported as lost, and arrives 20 ms later.
    let stamp = path.rate.on_sent(path.now(), Bytes::new(PACKET));
    path.rate.on_lost(Bytes::new(5 * PACKET), stamp);
    let sample = path.rate.sample(path.now(), None);
    path.tell(&sample);
    path.run_until(3.02);
    path.rate.on_late(Bytes::new(5 * PACKET));
    let sample = path.rate.sample(path.now(), None);
    path.tell(&sample);
    assert!(path.model.bandwidth() >= bandwidth * 0.999, "{}", path.model.bandwidth());
    assert!(path.model.window_bytes().get() + 5 * PACKET >= window.get(), "{:?}", path.model.window_bytes());
}

#[test]
fn on_timeout__leaves_four_packets_until_something_arrives() {
    let mut path = Path::new(1.0);
    path.run_until(3.0);
    let window = path.model.window_bytes();
    path.model.on_timeout(Bytes::ZERO);
    assert!(path.model.window_bytes() <= Bytes::new(4 * PACKET));
    path.run_until(3.3);
    assert!(path.model.window_bytes().get() * 2 > window.get(), "{:?}", path.model.window_bytes());
}

#[test]
fn marks__in_most_packets_of_a_probe_end_it() {
    let mut path = Path::new(5.0);
    path.run_until(2.0);
    while path.model.state() != BbrState::ProbeUp {
        path.run_until(path.now_us as f64 / 1e6 + 0.001);
    }
    let begin_us = path.now_us;
    while path.model.state() == BbrState::ProbeUp {
        path.rate.on_marked(Bytes::new(PACKET));
        path.run_until(path.now_us as f64 / 1e6 + 0.001);
    }
    assert!(path.now_us - begin_us < 130_000, "{} us", path.now_us - begin_us);
    assert!(path.model.long_term_bound().is_some());
}

#[test]
fn seed__decides_when_it_probes() {
    let waits = |seed: u64| {
        let config = BbrConfig { seed, ..BbrConfig::new(Bytes::new(PACKET)) };
        let mut model = Bbr::new(Time::ZERO, config);
        (0..3)
            .map(|_| {
                model.start_probe_down(Time::ZERO, 0);
                model.cycle.wait
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
    assert!(waits(3).iter().all(|wait| (2.0..3.0).contains(&wait.as_secs_f64())));
    assert!(Rate::ZERO < Bbr::new(Time::ZERO, BbrConfig::new(Bytes::new(PACKET))).pacing_rate());
}

/// For any samples a model keeps a rate and a window. It stopped if the path took a packet in centuries.
#[test]
fn on_sample__takes_any_sample() {
    let mut random = Pcg32::new(1, 0);
    for run in 0..2000 {
        let most = [1_u64, 2000, 1 << 20, 1 << 40, u64::MAX][run % 5];
        let number = |random: &mut Pcg32| {
            let wide = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
            match random.next_u32() % 6 {
                0 => 0,
                1 => u64::MAX,
                2 => 1,
                3 => wide >> (random.next_u32() % 64),
                _ => wide % most.max(1),
            }
        };
        let config = BbrConfig {
            initial_window: Bytes::new(number(&mut random)),
            starts_by_window: run.is_multiple_of(2),
            is_told_late: run.is_multiple_of(3),
            initial_rtt: (run.is_multiple_of(4)).then(|| Duration::from_nanos(number(&mut random))),
            guessed_rtt: (run % 4 == 1).then(|| Duration::from_nanos(number(&mut random))),
            report_every: Duration::from_nanos(number(&mut random)),
            seed: run as u64,
            ..BbrConfig::new(Bytes::new(number(&mut random)))
        };
        let mut model = Bbr::new(Time::from_nanos(number(&mut random)), config);
        let mut rate = DeliveryRate::default();
        let mut now = 0_u64;
        for _ in 0..200 {
            now = now.saturating_add(number(&mut random));
            let at = Time::from_nanos(if random.next_u32().is_multiple_of(8) { number(&mut random) } else { now });
            let bytes = Bytes::new(number(&mut random));
            let stamp = rate.on_sent(at, bytes);
            model.on_sent(at, bytes, &stamp);
            let mut sample = RateSample::default();
            if random.next_u32().is_multiple_of(2) {
                rate.on_arrived(Bytes::new(number(&mut random)), Time::from_nanos(number(&mut random)), stamp);
                rate.on_lost(Bytes::new(number(&mut random)), stamp);
                rate.on_late(Bytes::new(number(&mut random)));
                rate.on_marked(Bytes::new(number(&mut random)));
                let rtt = (!random.next_u32().is_multiple_of(3)).then(|| Duration::from_nanos(number(&mut random)));
                sample = rate.sample(at, rtt);
            } else {
                let mut of = || Bytes::new(number(&mut random));
                sample.newly_acked = of();
                sample.newly_lost = of();
                sample.newly_late = of();
                sample.newly_marked = of();
                sample.lost_delivered = of();
                sample.total_delivered = of();
                sample.prior_delivered = of();
                sample.delivered = of();
                sample.lost = of();
                sample.tx_in_flight = of();
                sample.in_flight = of();
                sample.made_up = of();
                sample.has_arrivals = !random.next_u32().is_multiple_of(4);
                sample.is_app_limited = random.next_u32().is_multiple_of(4);
                sample.lost_ranges = random.next_u32();
                sample.interval = Duration::from_nanos(number(&mut random));
                sample.sending = Duration::from_nanos(number(&mut random));
                sample.rtt = (!random.next_u32().is_multiple_of(3)).then(|| Duration::from_nanos(number(&mut random)));
                sample.delivery_rate =
                    (!random.next_u32().is_multiple_of(3)).then(|| Rate::nearest_bps(number(&mut random) as f64));
                if random.next_u32().is_multiple_of(2) {
                    sample.worst_loss = Some(LossPoint {
                        bytes: Bytes::new(number(&mut random)),
                        lost: Bytes::new(number(&mut random)),
                        tx_in_flight: Bytes::new(number(&mut random)),
                        is_app_limited: random.next_u32().is_multiple_of(2),
                    });
                }
            }
            model.on_sample(at, &sample);
            if random.next_u32().is_multiple_of(50) {
                model.on_timeout(Bytes::new(number(&mut random)));
            }
            let pacing = model.pacing_rate().as_bps();
            assert!(pacing.is_finite() && pacing > 0.0, "{run}: {pacing} {config:?} {sample:?}");
            assert!(model.window_bytes() > Bytes::ZERO);
        }
    }
}
