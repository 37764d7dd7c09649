//! The constants of Linux, and what they give on a link of 8 Mb/s and 40 ms: a packet a millisecond, a BDP of 40.

use std::collections::VecDeque;

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::super::bbr::BbrConfig;
use super::super::delivery_rate::{DeliveryRate, SentStamp};
use super::cycle::GAINS;
use super::min_rtt::{PROBE, WINDOW};
use super::model::{Bbr1, Bbr1Mode, DRAIN_GAIN, HIGH_GAIN, MIN_PACKETS, WINDOW_GAIN};

const PACKET: u64 = 1000;

struct Link {
    model: Bbr1,
    rate: DeliveryRate,
    now_us: u64,
    next_us: u64,
    free_us: u64,
    buffer_us: u64,
    news: VecDeque<(u64, u64, SentStamp, bool)>,
    lose_each: u64,
    sent: u64,
    delivered: u64,
    queue_us: u64,
    /// Modes with the time of their start.
    modes: Vec<(u64, Bbr1Mode)>,
    gains: Vec<(u64, f64)>,
}

impl Link {
    fn new(buffer_us: u64) -> Self {
        let initial_rtt = Some(Duration::from_millis(40));
        let model = Bbr1::new(Time::ZERO, BbrConfig { initial_rtt, seed: 3, ..BbrConfig::new(Bytes::new(PACKET)) });
        let (rate, news) = (DeliveryRate::default(), VecDeque::new());
        let (modes, gains) = (vec![(0, Bbr1Mode::Startup)], vec![(0, HIGH_GAIN)]);
        let (now_us, next_us, free_us, lose_each, sent, delivered, queue_us) = (0, 0, 0, u64::MAX, 0, 0, 0);
        Self {
            model,
            rate,
            now_us,
            next_us,
            free_us,
            buffer_us,
            news,
            lose_each,
            sent,
            delivered,
            queue_us,
            modes,
            gains,
        }
    }

    fn run_until(&mut self, end_s: f64) {
        while self.now_us < (end_s * 1e6) as u64 {
            self.now_us += 100;
            self.hear();
            self.send();
            self.queue_us = self.queue_us.max(self.free_us.saturating_sub(self.now_us));
        }
    }

    fn hear(&mut self) {
        let now = Time::from_nanos(self.now_us * 1000);
        while let Some((at, sent, stamp, arrived)) = self.news.front().copied().filter(|news| news.0 <= self.now_us) {
            self.news.pop_front();
            if arrived {
                self.rate.on_arrived(Bytes::new(PACKET), Time::from_nanos(sent * 1000), stamp);
                self.delivered += 1;
            } else {
                self.rate.on_lost(Bytes::new(PACKET), stamp);
            }
            let sample = self.rate.sample(now, arrived.then(|| Duration::from_micros(at - sent)));
            self.model.on_sample(now, &sample);
            if self.modes.last().is_some_and(|(_, mode)| *mode != self.model.mode()) {
                self.modes.push((self.now_us, self.model.mode()));
            }
            if self.gains.last().is_some_and(|(_, gain)| *gain != self.model.pacing_gain()) {
                self.gains.push((self.now_us, self.model.pacing_gain()));
            }
        }
    }

    fn send(&mut self) {
        let now = Time::from_nanos(self.now_us * 1000);
        while self.next_us <= self.now_us && self.rate.in_flight().get() + PACKET <= self.model.window_bytes().get() {
            let stamp = self.rate.on_sent(now, Bytes::new(PACKET));
            self.model.on_sent(now, Bytes::new(PACKET), &stamp);
            self.sent += 1;
            let apart_us = (PACKET as f64 * 8e6 / self.model.pacing_rate().as_bps()) as u64;
            self.next_us = self.next_us.max(self.now_us.saturating_sub(1000)) + apart_us;
            let waits_us = self.free_us.saturating_sub(self.now_us);
            let is_lost = self.sent.is_multiple_of(self.lose_each) || waits_us > self.buffer_us;
            if !is_lost {
                self.free_us = self.free_us.max(self.now_us) + 1000;
            }
            self.news.push_back((self.free_us.max(self.now_us) + 40_000, self.now_us, stamp, !is_lost));
        }
    }

    fn goodput(&mut self, seconds: f64) -> f64 {
        let before = self.delivered;
        self.run_until(self.now_us as f64 / 1e6 + seconds);
        (self.delivered - before) as f64 / seconds
    }
}

#[test]
fn constants__are_those_of_linux() {
    // BBR_UNIT is 256: 2885/1000 and a rounding step more; 88/256.
    assert!((HIGH_GAIN - 739.0 / 256.0).abs() < 1.0 / 256.0 && (DRAIN_GAIN - 88.0 / 256.0).abs() < 1.0 / 256.0);
    assert!((HIGH_GAIN - 2.0 / 2.0_f64.ln()).abs() < 0.001);
    assert_eq!((WINDOW_GAIN, MIN_PACKETS), (2.0, 4));
    assert_eq!(GAINS, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(GAINS.iter().sum::<f64>(), 8.0);
    assert_eq!((WINDOW, PROBE), (Duration::from_secs(10), Duration::from_millis(200)));
}

#[test]
fn startup__fills_the_path_and_drain_empties_its_queue() {
    let mut link = Link::new(400_000);
    link.run_until(3.0);
    let modes: Vec<_> = link.modes.iter().map(|(_, mode)| *mode).collect();
    assert_eq!(modes, [Bbr1Mode::Startup, Bbr1Mode::Drain, Bbr1Mode::ProbeBw]);
    let mbps = link.model.bandwidth().as_mbps();
    assert!((7.8..8.3).contains(&mbps), "{mbps}");
    // A window of 2.885 BDPs, six packets for bursts, and a tenth for a bandwidth that is overestimated.
    assert!(link.queue_us < 100_000, "{} us", link.queue_us);
}

#[test]
fn cycle__phases_last_a_minimum_round_trip() {
    let mut link = Link::new(400_000);
    link.run_until(9.0);
    let probes: Vec<_> = link.gains.windows(3).filter(|gains| gains[0].1 == 1.25).collect();
    assert!(probes.len() > 15, "{:?}", link.gains);
    for gains in &probes {
        assert_eq!((gains[1].1, gains[2].1), (0.75, 1.0));
    }
    let apart: Vec<_> = probes.windows(2).map(|pair| pair[1][0].0 - pair[0][0].0).collect();
    // Eight phases of 40 ms; draining may be shorter, and a probe waits for its bytes in flight.
    assert!(apart.iter().all(|us| (280_000..450_000).contains(us)), "{apart:?}");
}

#[test]
fn probe_rtt__has_four_packets_for_200_ms_after_ten_seconds() {
    let mut link = Link::new(400_000);
    link.run_until(13.0);
    let at = link.modes.iter().position(|(_, mode)| *mode == Bbr1Mode::ProbeRtt).expect("the minimum expired");
    let (start, end) = (link.modes[at].0, link.modes[at + 1].0);
    assert!(start > 10_000_000 && (200_000..400_000).contains(&(end - start)), "{start} to {end}");
    // A fiftieth of the time, and 1 % of margin.
    let goodput = link.goodput(20.0);
    assert!(goodput > 940.0, "{goodput}");
}

#[test]
fn loss__of_a_seventh_leaves_it_full_and_of_a_quarter_does_not() {
    let goodput_at = |lose_each| {
        let mut link = Link::new(400_000);
        link.lose_each = lose_each;
        link.run_until(5.0);
        link.goodput(20.0)
    };
    let [seventh, third] = [7, 3].map(goodput_at);
    // 1.25 x 6/7 is above one, 1.25 x 2/3 below.
    assert!(seventh > 700.0 && third < seventh / 2.0, "{seventh} and {third}");
}

#[test]
fn on_timeout__leaves_one_packet_and_restores_the_window() {
    let mut link = Link::new(400_000);
    link.run_until(3.0);
    let window = link.model.window_bytes();
    link.model.on_timeout(Bytes::ZERO);
    assert_eq!(link.model.window_bytes(), Bytes::new(PACKET));
    link.run_until(3.2);
    assert!(link.model.window_bytes().get() * 10 >= window.get() * 9, "{:?}", link.model.window_bytes());
    assert!(link.model.pacing_rate() > Rate::mbps(5.0));
}
