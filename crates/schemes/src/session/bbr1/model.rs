//! The model and its modes.

use fairwave_units::{Bytes, Duration, Rate, Time};
use rand_pcg::Pcg32;

use super::super::bbr::{Aggregation, BbrConfig, MaxFilter, RoundCount, rate_of};
use super::super::delivery_rate::SentStamp;
use super::super::rate_sample::RateSample;
use super::super::two_slots::TwoSlots;
use super::bbr1_window::Window;
use super::cycle::{Cycle, PhaseFacts};
use super::min_rtt::MinRtt;
use super::policer::Policer;

/// Gain of startup for rate and window (bbr_high_gain): 2/ln 2, the smallest that doubles the rate each round trip.
pub(super) const HIGH_GAIN: f64 = 2.885;
/// Pacing gain of drain (bbr_drain_gain).
pub(super) const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Window gain of the cycle (bbr_cwnd_gain).
pub(super) const WINDOW_GAIN: f64 = 2.0;
/// Minimum packets in the window (bbr_cwnd_min_target), which are all in a probe for the round-trip time.
pub(super) const MIN_PACKETS: u64 = 4;
/// Share of the bandwidth that is sent (bbr_pacing_margin_percent).
const PACING_SHARE: f64 = 0.99;
/// Window of the bandwidth in rounds: a cycle of eight and two more (bbr_bw_rtts).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Growth of the bandwidth below which the path counts as full (bbr_full_bw_thresh),
const FULL_GROWTH: f64 = 1.25;
/// for so many round trips (bbr_full_bw_cnt).
const FULL_ROUNDS: u32 = 3;
/// Round trips of each of two slots of the maximum excess (bbr_extra_acked_win_rtts).
const EXTRA_ROUNDS: u64 = 5;
/// Time at the bandwidth that bounds the bytes added for aggregation (bbr_extra_acked_max_us).
const MAX_EXTRA: Duration = Duration::from_millis(100);
/// Packets added to every target: three bursts of two, as segmentation offload leaves them at low rates
/// (bbr_quantization_budget).
const BURST_PACKETS: u64 = 6;
/// Packets added in a probe, so that it exceeds a small bandwidth-delay product.
const PROBE_PACKETS: u64 = 2;
/// Minimum rate: a packet in this time.
const MIN_PERIOD: Duration = Duration::from_secs(1);

/// Mode of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bbr1Mode {
    /// Doubles the rate each round trip until the path is full.
    Startup,
    /// Drains the queue that startup made.
    Drain,
    /// Cycles through the gains.
    ProbeBw,
    /// Has four packets in flight.
    ProbeRtt,
}

/// Linux's model, driven as [`Bbr`](super::super::Bbr).
#[derive(Clone, Debug)]
pub struct Bbr1 {
    config: BbrConfig,
    mode: Bbr1Mode,
    rounds: RoundCount,
    bandwidth: MaxFilter<Rate>,
    min_rtt: MinRtt,
    full: Full,
    cycle: Cycle,
    policer: Policer,
    aggregation: Aggregation,
    extra: TwoSlots,
    window: Window,
    pacing: Rate,
    delivered: u64,
    is_idle_restart: bool,
    random: Pcg32,
}

/// Whether the bandwidth has stopped growing.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    base: Rate,
    rounds: u32,
    was_reached: bool,
}

impl Bbr1 {
    /// A path of which only `config` is known.
    pub fn new(now: Time, config: BbrConfig) -> Self {
        let mut model = Self {
            config,
            mode: Bbr1Mode::Startup,
            rounds: RoundCount::default(),
            bandwidth: MaxFilter::new(Rate::ZERO),
            min_rtt: MinRtt::new(now, config.initial_rtt),
            full: Full::default(),
            cycle: Cycle::new(now),
            policer: Policer::default(),
            aggregation: Aggregation::new(now),
            extra: TwoSlots::default(),
            window: Window::new(config.initial_window.get().max(config.packet.get())),
            pacing: Rate::ZERO,
            delivered: 0,
            is_idle_restart: false,
            random: Pcg32::new(config.seed, 0),
        };
        model.begin_pacing(config.initial_rtt.or(config.guessed_rtt));
        model
    }

    /// Maximum send rate.
    pub fn pacing_rate(&self) -> Rate {
        self.pacing
    }

    /// Maximum bytes in flight.
    pub fn window_bytes(&self) -> Bytes {
        Bytes::new(self.window.bytes())
    }

    /// The current mode.
    pub fn mode(&self) -> Bbr1Mode {
        self.mode
    }

    /// The path's delivery rate: the policer's, if there is one.
    pub fn bandwidth(&self) -> Rate {
        self.policer.rate().unwrap_or(self.bandwidth.max())
    }

    /// The path's round-trip time without a queue; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.least()
    }

    /// A packet is sent.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        if stamp.in_flight() <= bytes && stamp.is_app_limited() {
            self.is_idle_restart = true;
            self.aggregation.begin(now);
            match self.mode {
                Bbr1Mode::ProbeBw => self.set_pacing(1.0),
                Bbr1Mode::ProbeRtt => self.end_probe_rtt(now, false),
                Bbr1Mode::Startup | Bbr1Mode::Drain => {}
            }
        }
    }

    /// Feedback: the sample of one acknowledgement.
    pub fn on_sample(&mut self, now: Time, sample: &RateSample) {
        let mut sample = *sample;
        self.min_rtt.mark(&mut sample);
        self.delivered = sample.total_delivered.get();
        if self.min_rtt.least().is_none() && sample.rtt.is_some() {
            self.begin_pacing(sample.rtt);
        }
        let is_probing_rtt = self.mode == Bbr1Mode::ProbeRtt;
        if self.window.on_sample(&sample, self.packet(), is_probing_rtt) {
            // The round trip of packet conservation starts now.
            self.rounds.begin(self.delivered);
        }
        self.update_bandwidth(now, &sample);
        if sample.has_arrivals {
            self.update_mode(now, &sample);
        }
        self.set_pacing(self.pacing_gain());
        self.set_window(&sample);
    }

    /// A timer expired: all packets in flight count as lost.
    pub fn on_timeout(&mut self, _in_flight: Bytes) {
        let packet = self.packet();
        self.window.on_timeout(packet, self.delivered);
        self.full.base = Rate::ZERO;
    }

    fn packet(&self) -> u64 {
        self.config.packet.get().max(1)
    }

    /// bbr_init_pacing_rate_from_rtt.
    fn begin_pacing(&mut self, rtt: Option<Duration>) {
        let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_millis(1));
        self.pacing = rate_of(self.config.initial_window.get(), rtt) * (HIGH_GAIN * PACING_SHARE);
    }

    /// bbr_update_bw.
    fn update_bandwidth(&mut self, now: Time, sample: &RateSample) {
        let is_round_start = sample.has_arrivals && self.rounds.on_sample(sample);
        if is_round_start {
            self.window.on_round();
        }
        if self.policer.on_sample(now, sample, is_round_start, self.mode == Bbr1Mode::ProbeBw) {
            self.cycle.begin(now, &mut self.random);
        }
        let Some(rate) = sample.delivery_rate else { return };
        if !sample.is_app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.on_sample(self.rounds.count, rate, BANDWIDTH_ROUNDS);
        }
    }

    /// The rest of bbr_update_model.
    fn update_mode(&mut self, now: Time, sample: &RateSample) {
        let (acked, window) = (sample.newly_acked.get(), self.window.bytes());
        let excess = self.aggregation.on_sample(now, acked, self.bandwidth(), window);
        self.extra.on_sample(self.rounds.count, excess, EXTRA_ROUNDS, true);
        if self.mode == Bbr1Mode::ProbeBw {
            // Without a pacing layer below, all packets in flight are in the network.
            let facts = PhaseFacts {
                in_flight: sample.in_flight.get().saturating_add(acked).saturating_add(sample.newly_lost.get()),
                target: self.in_flight(self.cycle.gain().max(1.0)),
                has_loss: sample.newly_lost > Bytes::ZERO,
            };
            self.cycle.step(now, self.min_rtt.least().unwrap_or(Duration::ZERO), facts);
        }
        if self.rounds.is_start && !sample.is_app_limited {
            self.full.on_round(self.bandwidth.max());
        }
        if self.mode == Bbr1Mode::Startup && self.full.was_reached {
            self.mode = Bbr1Mode::Drain;
        }
        if self.mode == Bbr1Mode::Drain && sample.in_flight.get() <= self.in_flight(1.0) {
            self.begin_cycle(now);
        }
        self.update_min_rtt(now, sample);
    }

    /// bbr_update_min_rtt.
    fn update_min_rtt(&mut self, now: Time, sample: &RateSample) {
        let is_expired = self.min_rtt.on_sample(now, sample.rtt);
        if is_expired && !self.is_idle_restart && self.mode != Bbr1Mode::ProbeRtt {
            self.mode = Bbr1Mode::ProbeRtt;
            self.window.save(true);
            self.min_rtt.begin_probe();
        }
        if self.mode == Bbr1Mode::ProbeRtt {
            if self.min_rtt.on_probe(now, sample, self.least_window(), self.rounds.is_start) {
                self.rounds.begin(sample.total_delivered.get());
            } else {
                self.end_probe_rtt(now, true);
            }
        }
        self.is_idle_restart = false;
    }

    fn end_probe_rtt(&mut self, now: Time, needs_round: bool) {
        if !self.min_rtt.ends_probe(now, needs_round) {
            return;
        }
        self.window.restore();
        if self.full.was_reached {
            self.begin_cycle(now);
        } else {
            self.mode = Bbr1Mode::Startup;
        }
    }

    fn begin_cycle(&mut self, now: Time) {
        self.mode = Bbr1Mode::ProbeBw;
        self.cycle.begin(now, &mut self.random);
    }

    /// bbr_update_gains.
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.mode {
            Bbr1Mode::Startup => HIGH_GAIN,
            Bbr1Mode::Drain => DRAIN_GAIN,
            Bbr1Mode::ProbeBw if self.policer.rate().is_none() => self.cycle.gain(),
            Bbr1Mode::ProbeBw | Bbr1Mode::ProbeRtt => 1.0,
        }
    }

    pub(super) fn window_gain(&self) -> f64 {
        match self.mode {
            Bbr1Mode::Startup | Bbr1Mode::Drain => HIGH_GAIN,
            Bbr1Mode::ProbeBw => WINDOW_GAIN,
            Bbr1Mode::ProbeRtt => 1.0,
        }
    }

    /// bbr_set_pacing_rate.
    fn set_pacing(&mut self, gain: f64) {
        let rate = self.bandwidth() * (gain * PACING_SHARE);
        if self.full.was_reached || rate > self.pacing {
            self.pacing = rate;
        }
        self.pacing = self.pacing.max(rate_of(self.packet(), MIN_PERIOD));
    }

    /// `gain` times the bandwidth-delay product.
    fn bdp(&self, gain: f64, bandwidth: Rate) -> u64 {
        let Some(rtt) = self.min_rtt.least() else { return self.config.initial_window.get() };
        // The cast saturates.
        (gain * bandwidth.as_bps() / 8.0 * rtt.as_secs_f64()) as u64
    }

    /// bbr_inflight, by the maximum bandwidth.
    fn in_flight(&self, gain: f64) -> u64 {
        self.with_bursts(self.bdp(gain, self.bandwidth.max()))
    }

    fn with_bursts(&self, bytes: u64) -> u64 {
        let is_probe = self.mode == Bbr1Mode::ProbeBw && self.cycle.is_probe();
        let packets = BURST_PACKETS + if is_probe { PROBE_PACKETS } else { 0 };
        bytes.saturating_add(packets.saturating_mul(self.packet()))
    }

    fn least_window(&self) -> u64 {
        MIN_PACKETS.saturating_mul(self.packet())
    }

    /// bbr_set_cwnd.
    fn set_window(&mut self, sample: &RateSample) {
        if sample.newly_acked > Bytes::ZERO {
            let extra = self.extra.max().min(self.extra_cap());
            let extra = if self.full.was_reached { extra } else { 0 };
            let target = self.with_bursts(self.bdp(self.window_gain(), self.bandwidth()).saturating_add(extra));
            let is_first = sample.total_delivered < self.config.initial_window;
            self.window.follow(sample, target, self.least_window(), self.full.was_reached, is_first);
        }
        if self.mode == Bbr1Mode::ProbeRtt {
            self.window.set(self.window.bytes().min(self.least_window()));
        }
    }

    fn extra_cap(&self) -> u64 {
        // The cast saturates.
        (self.bandwidth().as_bps() / 8.0 * MAX_EXTRA.as_secs_f64()) as u64
    }
}

impl Full {
    /// bbr_check_full_bw_reached.
    fn on_round(&mut self, bandwidth: Rate) {
        if self.was_reached {
            return;
        }
        if bandwidth >= self.base * FULL_GROWTH {
            (self.base, self.rounds) = (bandwidth, 0);
            return;
        }
        self.rounds += 1;
        self.was_reached = self.rounds >= FULL_ROUNDS;
    }
}
