//! A link of 8 Mb/s and 40 ms for tests of models: a packet a millisecond, and a BDP of 40 packets.

use std::collections::VecDeque;

use fairwave_units::{Bytes, Duration, Time};

use super::super::delivery_rate::{DeliveryRate, SentStamp};
use super::super::rate_sample::RateSample;
use super::amend::Amend;
use super::bbr_state::BbrState;
use super::config::BbrConfig;
use super::steps::Bbr;

pub(crate) const PACKET: u64 = 1000;
pub(crate) const RTT: Duration = Duration::from_millis(40);

/// A model and a source of unlimited data on that link.
pub(crate) struct World<A> {
    pub(crate) model: Bbr<A>,
    pub(crate) rate: DeliveryRate,
    pub(crate) now_us: u64,
    pub(crate) next_us: u64,
    /// Time from which the link is free.
    pub(crate) free_us: u64,
    pub(crate) packet_us: u64,
    pub(crate) buffer_us: u64,
    /// Packets in the bucket of a policer, its depth, and its rate in packets per millisecond; no policer if infinite.
    pub(crate) tokens: f64,
    pub(crate) depth: f64,
    pub(crate) tokens_per_ms: f64,
    /// Feedback by its time of arrival: send time of the packet, its stamp, and whether it arrived.
    pub(crate) news: VecDeque<(u64, u64, SentStamp, bool)>,
    /// Period of lost packets, in packets.
    pub(crate) lose_each: u64,
    pub(crate) sent: u64,
    /// The application pauses.
    pub(crate) is_idle: bool,
    /// Time between two packets of the application, if it is slower than the model.
    pub(crate) application_us: Option<u64>,
    pub(crate) states: Vec<BbrState>,
    pub(crate) lost: u64,
    pub(crate) delivered: u64,
    /// Interval of feedback.
    pub(crate) report_us: u64,
    pub(crate) reported_us: u64,
    /// Whether round-trip times contain the wait for the feedback, as with aggregation on the path.
    pub(crate) waits_count: bool,
}

/// The initial state of the models.
pub(crate) fn config() -> BbrConfig {
    BbrConfig { initial_rtt: Some(RTT), seed: 7, ..BbrConfig::new(Bytes::new(PACKET)) }
}

impl<A: Amend> World<A> {
    pub(crate) fn new(model: Bbr<A>, buffer_bdp: f64) -> Self {
        Self {
            model,
            rate: DeliveryRate::default(),
            now_us: 0,
            next_us: 0,
            free_us: 0,
            packet_us: 1000,
            buffer_us: (buffer_bdp * 40_000.0) as u64,
            tokens: f64::INFINITY,
            depth: f64::INFINITY,
            tokens_per_ms: 0.0,
            news: VecDeque::new(),
            lose_each: u64::MAX,
            sent: 0,
            is_idle: false,
            application_us: None,
            states: vec![BbrState::Startup],
            lost: 0,
            delivered: 0,
            report_us: 0,
            reported_us: 0,
            waits_count: false,
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.now_us * 1000)
    }

    pub(crate) fn run_until(&mut self, end_s: f64) {
        let end_us = (end_s * 1e6) as u64;
        while self.now_us < end_us {
            self.step();
        }
    }

    pub(crate) fn run_for(&mut self, seconds: f64) {
        self.run_until(self.now_us as f64 / 1e6 + seconds);
    }

    /// Runs until the model is in this state, at most a minute.
    pub(crate) fn run_to(&mut self, state: BbrState) {
        let end_us = self.now_us + 60_000_000;
        while self.model.state() != state {
            assert!(self.now_us < end_us, "{state:?} is not reached: {:?}", self.states);
            self.step();
        }
    }

    fn step(&mut self) {
        self.now_us += 100;
        self.tokens = (self.tokens + self.tokens_per_ms / 10.0).min(self.depth);
        self.hear();
        self.send();
    }

    pub(crate) fn hear(&mut self) {
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
                newest = Some(if self.waits_count { self.now_us } else { at } - sent);
            } else {
                self.rate.on_lost(Bytes::new(PACKET), stamp);
                self.lost += 1;
                newest = newest.or(Some(u64::MAX));
            }
        }
        let Some(rtt_us) = newest else { return };
        let rtt = (rtt_us < u64::MAX).then(|| Duration::from_micros(rtt_us));
        let sample = self.rate.sample(self.now(), rtt);
        self.tell(&sample);
    }

    pub(crate) fn tell(&mut self, sample: &RateSample) {
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
            self.send_packet();
            let mut apart_us = (PACKET as f64 * 8e6 / self.model.pacing_rate().as_bps()) as u64;
            if let Some(slower_us) = self.application_us.filter(|application_us| *application_us > apart_us) {
                self.rate.mark_app_limited();
                apart_us = slower_us;
            }
            self.next_us = self.next_us.max(self.now_us.saturating_sub(1000)) + apart_us;
        }
    }

    fn send_packet(&mut self) {
        let stamp = self.rate.on_sent(self.now(), Bytes::new(PACKET));
        self.model.on_sent(self.now(), Bytes::new(PACKET), &stamp);
        self.sent += 1;
        let queued_us = self.free_us.saturating_sub(self.now_us);
        let is_lost = self.sent.is_multiple_of(self.lose_each)
            || queued_us > self.buffer_us + self.packet_us
            || self.tokens < 1.0;
        if !is_lost {
            self.tokens -= 1.0;
            self.free_us = self.free_us.max(self.now_us) + self.packet_us;
        }
        self.news.push_back((self.free_us.max(self.now_us) + 40_000, self.now_us, stamp, !is_lost));
    }

    /// Stops the application until `end_s`, and resumes.
    pub(crate) fn pause_until(&mut self, end_s: f64) {
        self.is_idle = true;
        self.run_until(end_s);
        self.rate.mark_app_limited();
        self.is_idle = false;
        self.next_us = self.now_us;
    }

    /// Packets of the flight are reported as lost, the newest of them sent now.
    pub(crate) fn lose(&mut self, packets: u64) {
        let stamp = self.rate.on_sent(self.now(), Bytes::new(PACKET));
        self.rate.on_lost(Bytes::new(packets * PACKET), stamp);
        let sample = self.rate.sample(self.now(), None);
        self.tell(&sample);
    }

    /// Packets that were reported as lost arrive.
    pub(crate) fn find(&mut self, packets: u64) {
        self.rate.on_late(Bytes::new(packets * PACKET));
        let sample = self.rate.sample(self.now(), None);
        self.tell(&sample);
    }

    /// Packets per second over the next `seconds`.
    pub(crate) fn goodput(&mut self, seconds: f64) -> f64 {
        let before = self.delivered;
        self.run_for(seconds);
        (self.delivered - before) as f64 / seconds
    }

    pub(crate) fn has_followed(&self, states: &[BbrState]) -> bool {
        self.states.windows(states.len()).any(|some| some == states)
    }
}
