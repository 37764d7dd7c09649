//! The model of a path: its parts, what follows from them, and the transitions between its states.

use fairwave_units::{Duration, Rate, Time};
use rand_pcg::Pcg32;

use super::super::rate_sample::RateSample;
use super::aggregation::Aggregation;
use super::bandwidth::Bandwidth;
use super::bbr_state::BbrState;
use super::config::{BETA, BbrConfig, Constants, PACING_SHARE};
use super::cycle::{AckPhase, ProbeCycle};
use super::delivery::Delivery;
use super::full_pipe::FullPipe;
use super::long_term::LongTerm;
use super::max_filter::MaxFilter;
use super::min_rtt::MinRtt;
use super::probe_rtt::RttProbe;
use super::recovery::Recovery;
use super::round_count::RoundCount;
use super::short_term::ShortTerm;
use super::undo::Undo;
use super::window::Window;

/// The state of a model. [`Bbr`](super::Bbr) has the steps that change it.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) config: BbrConfig,
    pub(crate) constants: Constants,
    pub(crate) state: BbrState,
    pub(crate) rounds: RoundCount,
    pub(crate) bandwidth: Bandwidth,
    pub(crate) min_rtt: MinRtt,
    pub(crate) full_pipe: FullPipe,
    pub(super) aggregation: Aggregation,
    excesses: MaxFilter<u64>,
    /// The window is larger by this excess of aggregated arrivals, in bytes.
    pub(crate) extra_acked: u64,
    pub(crate) delivery: Delivery,
    pub(crate) short_term: ShortTerm,
    pub(crate) long_term: LongTerm,
    pub(crate) cycle: ProbeCycle,
    pub(super) probe_rtt: RttProbe,
    pub(super) drain_round: u64,
    /// Bytes that had been delivered when startup or the last probe ended.
    pub(crate) probe_end: Option<u64>,
    pub(crate) undo: Undo,
    pub(crate) recovery: Recovery,
    /// Bytes delivered, as of the last sample.
    pub(super) delivered: u64,
    /// Whether sending resumes after a pause of the application.
    pub(super) is_idle_restart: bool,
    pub(crate) window: Window,
    pub(crate) pacing: Rate,
    random: Pcg32,
}

/// Minimum window in packets (BBR s2.8, MinPipeCwnd).
const MIN_PACKETS: u64 = 4;
/// Time at the pacing rate that leaves in one burst (BBR s5.6.3).
const QUANTUM: Duration = Duration::from_millis(1);
/// Maximum bytes of a burst, and minimum packets (BBR s5.6.3).
const MAX_QUANTUM: u64 = 64_000;
const MIN_QUANTUM_PACKETS: u64 = 2;

/// Rounds over which the maximum excess is kept once the path was full (BBR s2.12, ExtraAckedFilterLen).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Maximum time between two packets.
const MIN_PERIOD: Duration = Duration::from_secs(1);

impl Model {
    /// A path of which only `config` is known.
    pub(crate) fn new(now: Time, config: BbrConfig, constants: Constants) -> Self {
        let window = config.initial_window.get().max(config.packet.get());
        let mut model = Self {
            config,
            constants,
            state: BbrState::Startup,
            rounds: RoundCount::default(),
            bandwidth: Bandwidth::new(),
            min_rtt: MinRtt::new(now, config.initial_rtt),
            full_pipe: FullPipe::new(),
            aggregation: Aggregation::new(now),
            excesses: MaxFilter::new(0),
            extra_acked: 0,
            delivery: Delivery::new(),
            short_term: ShortTerm::default(),
            long_term: LongTerm::new(),
            cycle: ProbeCycle::new(now),
            probe_rtt: RttProbe::default(),
            drain_round: 0,
            probe_end: None,
            undo: Undo::default(),
            recovery: Recovery::default(),
            delivered: 0,
            is_idle_restart: false,
            window: Window::new(window),
            pacing: Rate::ZERO,
            random: Pcg32::new(config.seed, 0),
        };
        model.begin_pacing(config.initial_rtt.or(config.guessed_rtt));
        model
    }

    /// BBR s5.6.2, InitPacingRate: the initial window in a round trip, or in a millisecond if that is unknown.
    pub(super) fn begin_pacing(&mut self, rtt: Option<Duration>) {
        let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_millis(1));
        self.pacing = rate_of(self.config.initial_window.get(), rtt) * self.constants.first_pacing_gain;
    }

    /// The maximum delivery rate, limited by the short-term bound (BBR s5.5.10.3, BoundBWForModel).
    pub(crate) fn bandwidth(&self) -> Rate {
        let most = self.bandwidth.max();
        self.short_term.rate.map_or(most, |bound| bound.min(most))
    }

    pub(crate) fn packet(&self) -> u64 {
        self.config.packet.get().max(1)
    }

    /// `gain` times the bandwidth-delay product, in bytes (BBR s5.6.4.2, BDPMultiple).
    pub(crate) fn bdp(&self, gain: f64) -> u64 {
        self.bdp_of(gain, self.bandwidth())
    }

    pub(crate) fn bdp_of(&self, gain: f64, bandwidth: Rate) -> u64 {
        let Some(rtt) = self.min_rtt.least() else { return self.config.initial_window.get() };
        // The cast saturates.
        (gain * bandwidth.as_bps() / 8.0 * rtt.max(self.constants.floor_rtt).as_secs_f64()) as u64
    }

    /// BBR s5.6.4.2, Inflight.
    pub(crate) fn in_flight_of(&self, gain: f64, bandwidth: Rate) -> u64 {
        self.with_quanta(self.bdp_of(gain, bandwidth))
    }

    /// BBR s5.6.4.2, UpdateMaxInflight.
    pub(super) fn max_in_flight(&self) -> u64 {
        let is_still = matches!(self.state, BbrState::ProbeCruise | BbrState::ProbeDown);
        let gain = if is_still { self.constants.still_gain } else { self.state.window_gain() };
        self.with_quanta(self.bdp(gain).saturating_add(self.extra_acked))
    }

    /// BBR s5.6.4.2, QuantizationBudget: room for packets that leave in one burst (s5.5.8, s5.6.3).
    fn with_quanta(&self, bytes: u64) -> u64 {
        let quantum = (self.pacing.as_bps() / 8.0 * QUANTUM.as_secs_f64()) as u64;
        let quantum = quantum.min(MAX_QUANTUM).max(self.packet().saturating_mul(MIN_QUANTUM_PACKETS));
        let bytes = bytes.max(quantum).max(self.least_window());
        if self.state == BbrState::ProbeUp { bytes.saturating_add(self.packet().saturating_mul(2)) } else { bytes }
    }

    /// BBR s5.3.3.8.3, TargetInflight.
    pub(crate) fn target_in_flight(&self) -> u64 {
        self.bdp(1.0).min(self.window.bytes())
    }

    /// BBR s5.6.4.5, ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(BbrState::ProbeRtt.window_gain()).max(self.least_window())
    }

    pub(super) fn least_window(&self) -> u64 {
        MIN_PACKETS.saturating_mul(self.packet())
    }

    /// The long-term bound minus the headroom for others (BBR s5.3.3.9, InflightWithHeadroom).
    pub(super) fn long_term_with_headroom(&self) -> Option<u64> {
        let bound = self.long_term.with_headroom(self.packet())?.max(self.least_window());
        let filled = if self.constants.headroom_below_bdp { 0 } else { self.bdp_of(1.0, self.bandwidth.max()) };
        Some(bound.max(filled))
    }

    /// BBR s5.6.2, SetPacingRateWithGain.
    pub(super) fn set_pacing(&mut self, gain: f64, least: Rate) {
        let rate = self.bandwidth() * (gain * PACING_SHARE / self.constants.arriving);
        let rate = rate.max(least);
        if self.full_pipe.was_reached || rate > self.pacing {
            self.pacing = rate;
        }
        // The draft leaves open how a rate of zero ends: at least a packet per second, so that the path's state becomes
        // known.
        self.pacing = self.pacing.max(rate_of(self.packet(), MIN_PERIOD));
    }

    /// BBR s5.6.4.7, BoundCwndForModel.
    pub(super) fn bound_window(&mut self, cap: Option<u64>) {
        let long_term = match self.state {
            BbrState::ProbeCruise | BbrState::ProbeRtt => self.long_term_with_headroom(),
            state if state.is_probe_bw() => self.long_term.bytes(),
            _ => None,
        };
        let most = [long_term, cap, self.short_term.in_flight].into_iter().flatten().min().unwrap_or(u64::MAX);
        self.window.set(self.window.bytes().min(most.max(self.least_window())));
    }

    /// BBR s5.6.4.4, SaveCwnd.
    pub(super) fn save_window(&mut self) {
        self.window.save(self.recovery.is_open() || self.state == BbrState::ProbeRtt);
    }

    /// BBR s5.5.11.1, SaveStateUponLoss.
    pub(super) fn save_state(&mut self) {
        self.save_window();
        self.undo.short_term = self.short_term;
        self.undo.long_term = self.long_term.bytes();
        self.undo.state = None;
    }

    /// A round trip with losses (BBR s5.5.10.3, InitLowerBounds and LossLowerBounds).
    pub(crate) fn answer_loss(&mut self) {
        self.short_term.begin(self.bandwidth.max(), self.window.bytes());
        self.short_term.on_loss(self.delivery.rate, self.delivery.volume, BETA);
    }

    /// Too many bytes were in flight in a probe: its bound, unless the application was the limit (BBR s5.5.10.2,
    /// HandleInflightTooHigh).
    pub(crate) fn note_too_high(&mut self, in_flight: u64, is_app_limited: bool) {
        self.cycle.was_too_high = true;
        // Once per probe.
        self.cycle.is_probe_sample = false;
        if !is_app_limited {
            let least = (self.target_in_flight() as f64 * BETA) as u64;
            self.long_term.set(Some(in_flight.max(least)));
        }
    }

    /// Whether so large a share of the bytes in flight was lost that these were too many (BBR s5.5.10.2,
    /// IsInflightTooHigh).
    pub(crate) fn is_too_much(&self, loss_share: f64) -> bool {
        loss_share > self.constants.loss_threshold || (loss_share > 0.0 && !self.config.has_selective_acks)
    }

    /// BBR s5.5.1, UpdateRound, and s5.5.5, UpdateMaxBw.
    pub(super) fn update_bandwidth(&mut self, sample: &RateSample) {
        if self.rounds.on_sample(sample) {
            self.cycle.rounds_since_up += 1;
            self.window.on_round();
        }
        if let Some(rate) = sample.delivery_rate.filter(|rate| *rate > Rate::ZERO) {
            self.bandwidth.on_sample(rate, sample.is_app_limited);
        }
    }

    /// BBR s5.5.9, UpdateACKAggregation; returns the excess of this sample.
    pub(super) fn update_aggregation(&mut self, now: Time, sample: &RateSample) -> u64 {
        let (bandwidth, window) = (self.bandwidth(), self.window.bytes());
        let excess = self.aggregation.on_sample(now, sample.newly_acked.get(), bandwidth, window);
        let rounds = if self.full_pipe.was_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.excesses.on_sample(self.rounds.count, excess, rounds);
        self.extra_acked = self.excesses.max();
        excess
    }

    /// BBR s5.3.3.8.3, IsTimeToProbeBW.
    pub(super) fn is_probe_due(&self, now: Time) -> bool {
        self.cycle.is_probe_due(now, self.target_in_flight() / self.packet())
    }

    /// BBR s5.3.3.9, IsTimeToCruise.
    pub(super) fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = sample.in_flight.get();
        let has_headroom = self.long_term_with_headroom().is_none_or(|most| in_flight <= most);
        has_headroom && in_flight <= self.in_flight_of(1.0, self.bandwidth.max())
    }

    /// BBR s5.3.3.9, IsTimeToGoDown.
    pub(super) fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        if self.cycle.was_too_high && self.long_term.is_reached(sample.in_flight.get()) {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.is_limited_by_long_term() {
            // The bound is the limit, and not the path.
            self.full_pipe.look(sample.delivery_rate.unwrap_or(Rate::ZERO));
            return false;
        }
        self.full_pipe.is_now
    }

    fn is_limited_by_long_term(&self) -> bool {
        self.window.is_limit() && self.long_term.is_reached(self.window.bytes())
    }

    /// BBR s5.3.3.9, AdaptLongTermModel; returns whether it entered another state.
    pub(super) fn adapt_long_term(&mut self, sample: &RateSample) -> bool {
        if self.rounds.is_start && self.cycle.phase == AckPhase::Starting {
            self.cycle.phase = AckPhase::Feedback;
        }
        if self.rounds.is_start && self.cycle.phase == AckPhase::Stopping {
            self.cycle.is_probe_sample = false;
            self.cycle.phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.is_app_limited {
                    self.bandwidth.advance();
                }
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    self.start_probe_refill(sample.total_delivered.get());
                    return true;
                }
            }
        }
        if !self.is_too_much(sample.loss_share()) {
            self.long_term.raise_to(sample.tx_in_flight.get());
            // BBR s5.3.3.9, ProbeInflightLongtermUpward.
            if self.state == BbrState::ProbeUp && self.is_limited_by_long_term() {
                self.long_term.grow(sample.newly_acked.get(), self.packet());
                if self.rounds.is_start {
                    self.long_term.raise_slope(self.window.bytes(), self.packet());
                }
            }
        }
        false
    }

    /// Ends a probe that lost too much.
    pub(crate) fn end_probe_up(&mut self, now: Time, delivered: u64) {
        if self.state == BbrState::ProbeUp {
            self.undo.state = Some(BbrState::ProbeUp);
            self.start_probe_down(now, delivered);
        }
    }

    /// All losses of an episode arrived late: nothing was lost (BBR s5.5.11.2, HandleSpuriousLossDetection).
    pub(super) fn undo_losses(&mut self, delivered: u64) {
        let before = std::mem::take(&mut self.undo);
        self.window.restore();
        self.delivery.has_loss = false;
        self.full_pipe.look(Rate::ZERO);
        self.short_term.widen(before.short_term);
        self.long_term.widen(before.long_term);
        match before.state {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full_pipe.was_reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.state = BbrState::Startup;
                }
            }
            Some(BbrState::ProbeUp) if self.state != BbrState::ProbeUp && self.state != BbrState::ProbeRtt => {
                self.start_probe_refill(delivered);
            }
            _ => {}
        }
    }

    pub(crate) fn start_drain(&mut self) {
        self.state = BbrState::Drain;
        self.drain_round = self.rounds.count;
    }

    pub(crate) fn start_probe_down(&mut self, now: Time, delivered: u64) {
        if self.state.is_probing() {
            self.probe_end = Some(delivered);
        }
        self.delivery.reset();
        self.long_term.stop();
        self.cycle.begin(now, &mut self.random, self.constants.least_wait);
        self.rounds.begin(delivered);
        self.state = BbrState::ProbeDown;
    }

    pub(super) fn start_probe_refill(&mut self, delivered: u64) {
        self.short_term = ShortTerm::default();
        self.long_term.begin_refill();
        self.cycle.was_precautionary = false;
        self.cycle.phase = AckPhase::Refilling;
        self.rounds.begin(delivered);
        self.state = BbrState::ProbeRefill;
    }

    pub(super) fn start_probe_up(&mut self, sample: &RateSample) {
        self.cycle.is_probe_sample = true;
        self.cycle.phase = AckPhase::Starting;
        self.rounds.begin(sample.total_delivered.get());
        self.full_pipe.look(sample.delivery_rate.unwrap_or(Rate::ZERO));
        self.state = BbrState::ProbeUp;
        self.long_term.raise_slope(self.window.bytes(), self.packet());
    }

    pub(super) fn start_probe_rtt(&mut self, delivered: u64) {
        self.state = BbrState::ProbeRtt;
        self.save_window();
        self.probe_rtt.begin();
        self.cycle.phase = AckPhase::Stopping;
        self.rounds.begin(delivered);
    }

    /// BBR s5.3.4.3, CheckProbeRTTDone.
    pub(super) fn restore_after_probe_rtt(&mut self, now: Time) {
        self.min_rtt.put_off(now);
        self.window.restore();
        self.short_term = ShortTerm::default();
    }

    /// BBR s5.3.4.4, ExitProbeRTT.
    pub(super) fn leave_probe_rtt(&mut self, now: Time, delivered: u64) {
        if self.full_pipe.was_reached {
            self.start_probe_down(now, delivered);
            self.state = BbrState::ProbeCruise;
        } else {
            self.state = BbrState::Startup;
        }
    }
}

/// `bytes` over a time span.
pub(crate) fn rate_of(bytes: u64, span: Duration) -> Rate {
    Rate::nearest_bps(bytes as f64 * 8.0 / span.as_secs_f64())
}
