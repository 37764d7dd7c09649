//! The steps of a model for each event.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::super::delivery_rate::SentStamp;
use super::super::rate_sample::{LossPoint, RateSample};
use super::amend::{Amend, Draft};
use super::bbr_state::BbrState;
use super::config::{BbrConfig, Constants};
use super::model::Model;

/// Minimum lost ranges of packets within a round trip for losses to show that the path is full (BBR s5.3.1.3).
const LOST_RANGES: u32 = 6;
/// Round trips after which the queue is attributed to others (BBR s5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// A model of a path, and the resulting rate and window: the draft, or the draft with amendments.
///
/// The driver reports each packet sent ([`Bbr::on_sent`]) and all feedback by samples ([`Bbr::on_sample`]), both from
/// its [`DeliveryRate`](super::super::DeliveryRate); it keeps to [`Bbr::pacing_rate`] and [`Bbr::window_bytes`], and
/// reports when a timer expires without feedback ([`Bbr::on_timeout`]). Everything else is in the samples, including
/// losses that turn out to be late arrivals. One model may serve one session, or all sessions on one path.
#[derive(Clone, Debug)]
pub struct Bbr<A = Draft> {
    pub(crate) model: Model,
    pub(crate) amendments: A,
}

impl Bbr {
    /// The draft, on a path of which only `config` is known.
    pub fn new(now: Time, config: BbrConfig) -> Self {
        Self::amended(now, config, Constants::default(), Draft)
    }
}

impl<A: Amend> Bbr<A> {
    pub(crate) fn amended(now: Time, config: BbrConfig, constants: Constants, amendments: A) -> Self {
        Self { model: Model::new(now, config, constants), amendments }
    }

    /// Maximum send rate.
    pub fn pacing_rate(&self) -> Rate {
        self.model.pacing
    }

    /// Maximum bytes in flight.
    pub fn window_bytes(&self) -> Bytes {
        Bytes::new(self.model.window.bytes())
    }

    /// The current state.
    pub fn state(&self) -> BbrState {
        self.model.state
    }

    /// The path's delivery rate as far as known, limited by the short-term bound. Zero before the first sample.
    pub fn bandwidth(&self) -> Rate {
        self.model.bandwidth()
    }

    /// The path's round-trip time without a queue; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.model.min_rtt.least()
    }

    /// A packet is sent, with the stamp that [`DeliveryRate::on_sent`] gave it.
    ///
    /// [`DeliveryRate::on_sent`]: super::super::DeliveryRate::on_sent
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        let in_flight = stamp.in_flight().get();
        // BBR s5.4: it is the only one in flight, after a pause of the application.
        if in_flight <= bytes.get() && stamp.is_app_limited() {
            self.model.is_idle_restart = true;
            self.model.aggregation.begin(now);
            if self.model.state.is_probe_bw() {
                self.set_pacing(1.0, Rate::ZERO);
            } else if self.model.state == BbrState::ProbeRtt {
                self.end_probe_rtt(now, stamp.delivered());
            }
        }
        self.model.window.on_sent(in_flight, bytes.get());
    }

    /// Feedback: the sample of one acknowledgement or report.
    pub fn on_sample(&mut self, now: Time, sample: &RateSample) {
        let mut sample = *sample;
        self.model.probe_rtt.mark(&mut sample);
        self.model.delivered = sample.total_delivered.get();
        if self.model.min_rtt.least().is_none() && sample.rtt.is_some() {
            self.model.begin_pacing(sample.rtt);
        }
        self.amendments.before(&mut self.model, now, &sample);
        self.on_losses(now, &sample);
        if sample.has_arrivals {
            self.update_model(now, &sample);
        }
        self.amendments.before_control(&mut self.model, now);
        let least = self.amendments.least_rate(&self.model, &sample);
        self.set_pacing(self.model.state.pacing_gain(), least);
        self.set_window(&sample);
    }

    /// A timeout without feedback: all packets in flight count as lost, and one packet is sent.
    pub fn on_timeout(&mut self, in_flight: Bytes) {
        self.amendments.timed_out();
        let model = &mut self.model;
        // BBR s5.6.4.4, OnEnterRTO.
        model.save_state();
        model.window.set(in_flight.get().saturating_add(model.packet()));
        // Until a packet arrives that is sent after one more arrived.
        model.recovery.begin(model.delivered.saturating_add(1));
    }

    /// BBR s5.2.4 and s5.2.5: processes the sample's losses, and arrivals of packets reported as lost.
    fn on_losses(&mut self, now: Time, sample: &RateSample) {
        if sample.newly_lost.get() > 0 {
            self.note_loss(sample);
            if self.model.cycle.is_probe_sample
                && let Some(point) = sample.worst_loss.filter(|point| self.model.is_too_much(point.share()))
            {
                let in_flight = point.in_flight_at(self.model.constants.loss_threshold).get();
                self.on_too_high(now, in_flight, &point, sample);
            }
        }
        if sample.newly_late.get() > 0 && self.model.undo.on_late(sample.newly_late.get()) {
            self.model.undo_losses(sample.total_delivered.get());
            self.amendments.undone(&mut self.model);
        }
        let is_over = sample.has_arrivals && self.model.undo.on_arrival(sample.prior_delivered.get());
        self.amendments.after_losses(&mut self.model, sample, is_over);
    }

    /// BBR s5.5.10.2, NoteLoss.
    fn note_loss(&mut self, sample: &RateSample) {
        let model = &mut self.model;
        let delivered = sample.total_delivered.get();
        let is_answered = self.amendments.is_answered(model, sample);
        let is_first = !is_answered && model.delivery.on_loss(delivered, sample.lost_ranges);
        if is_first || !model.undo.is_open() {
            model.save_state();
        }
        model.undo.on_lost(sample.newly_lost.get(), delivered, sample.in_flight.get());
        model.recovery.begin(delivered);
    }

    /// Too much was in flight in a probe (BBR s5.5.10.2, HandleInflightTooHigh).
    fn on_too_high(&mut self, now: Time, in_flight: u64, point: &LossPoint, sample: &RateSample) {
        self.model.note_too_high(in_flight, point.is_app_limited);
        self.amendments.too_high(&mut self.model, now, sample);
        self.model.end_probe_up(now, sample.total_delivered.get());
    }

    /// BBR s5.2.3, UpdateModelAndState.
    fn update_model(&mut self, now: Time, sample: &RateSample) {
        let model = &mut self.model;
        if model.recovery.on_arrival(sample.prior_delivered.get()) {
            // BBR s5.6.4.4.
            model.window.restore();
        }
        model.delivery.on_sample(sample);
        model.update_bandwidth(sample);
        self.amendments.after_bandwidth(model, now, sample);
        if model.delivery.is_round_start {
            self.amendments.round(model, now, sample);
        }
        let excess = model.update_aggregation(now, sample);
        self.amendments.aggregated(model, excess);
        if let Some(rate) = sample.delivery_rate.filter(|_| model.rounds.is_start && !sample.is_app_limited) {
            model.full_pipe.on_round(rate);
        }
        self.check_startup(sample);
        self.check_drain(now, sample);
        self.update_probe_cycle(now, sample);
        self.amendments.before_rtt(&mut self.model, now, sample);
        self.model.min_rtt.on_sample(now, sample.rtt, &self.model.constants);
        self.check_probe_rtt(now, sample);
        self.model.delivery.advance(sample);
        self.model.is_idle_restart = false;
    }

    /// BBR s5.3.1.1, CheckStartupDone, and s5.3.1.3, CheckStartupHighLoss: too much is lost, in many places, a round
    /// trip after the first loss.
    fn check_startup(&mut self, sample: &RateSample) {
        let model = &mut self.model;
        if model.state == BbrState::Startup && model.delivery.is_round_start {
            let ranges = if model.config.has_selective_acks { LOST_RANGES } else { 1 };
            let is_lossy = model.delivery.lost_ranges >= ranges && model.is_too_much(sample.loss_share());
            let is_lossy = is_lossy && model.constants.losses_end_startup;
            if is_lossy {
                model.undo.state = Some(BbrState::Startup);
            }
            if is_lossy || self.amendments.ends_startup() {
                model.full_pipe.reach();
                model.long_term.set(Some(model.bdp(1.0).max(model.delivery.volume)));
            }
        }
        if model.delivery.is_round_start {
            model.delivery.lost_ranges = 0;
        }
        if model.state == BbrState::Startup && model.full_pipe.was_reached {
            model.probe_end = Some(sample.total_delivered.get());
            model.start_drain();
        }
    }

    /// BBR s5.3.2, CheckDrainDone.
    fn check_drain(&mut self, now: Time, sample: &RateSample) {
        let model = &mut self.model;
        let is_empty = sample.in_flight.get() <= model.in_flight_of(1.0, model.bandwidth());
        let is_over = is_empty || model.rounds.count > model.drain_round + DRAIN_ROUNDS;
        if model.state == BbrState::Drain && is_over {
            model.start_probe_down(now, sample.total_delivered.get());
        }
    }

    /// BBR s5.3.3.9, UpdateProbeBWCyclePhase.
    fn update_probe_cycle(&mut self, now: Time, sample: &RateSample) {
        let is_full = self.model.full_pipe.was_reached;
        if !is_full || self.amendments.step(&mut self.model, now, sample) || self.model.adapt_long_term(sample) {
            return;
        }
        let model = &mut self.model;
        let delivered = sample.total_delivered.get();
        let state = model.state;
        match state {
            BbrState::ProbeDown | BbrState::ProbeCruise if model.is_probe_due(now) => {
                model.start_probe_refill(delivered);
            }
            BbrState::ProbeDown if model.is_time_to_cruise(sample) => {
                model.state = BbrState::ProbeCruise;
                self.amendments.cruise_begun();
            }
            BbrState::ProbeRefill if model.rounds.is_start => model.start_probe_up(sample),
            BbrState::ProbeUp if model.is_time_to_go_down(sample) => {
                model.cycle.was_too_high = false;
                model.start_probe_down(now, delivered);
            }
            _ => {}
        }
    }

    /// BBR s5.3.4.3, CheckProbeRTT.
    fn check_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        let delivered = sample.total_delivered.get();
        let model = &mut self.model;
        if model.state != BbrState::ProbeRtt && model.min_rtt.is_due() && !model.is_idle_restart {
            model.start_probe_rtt(delivered);
        }
        if model.state != BbrState::ProbeRtt {
            return;
        }
        let most = model.probe_rtt_window();
        if model.probe_rtt.on_sample(now, sample, most, model.rounds.is_start) {
            model.rounds.begin(delivered);
        } else if model.probe_rtt.is_round_done {
            self.end_probe_rtt(now, delivered);
        }
    }

    /// BBR s5.3.4.3, CheckProbeRTTDone.
    fn end_probe_rtt(&mut self, now: Time, delivered: u64) {
        if self.model.probe_rtt.is_done(now) {
            self.model.restore_after_probe_rtt(now);
            self.amendments.rtt_probed(&mut self.model, now);
            self.model.leave_probe_rtt(now, delivered);
        }
    }

    fn set_pacing(&mut self, gain: f64, least: Rate) {
        match self.amendments.rate(&self.model) {
            Some(rate) => self.model.pacing = rate,
            None => self.model.set_pacing(gain, least),
        }
    }

    /// BBR s5.6.4.6, SetCwnd.
    fn set_window(&mut self, sample: &RateSample) {
        let amendments = &self.amendments;
        let model = &mut self.model;
        let probe_rtt = if model.state == BbrState::ProbeRtt { model.probe_rtt_window() } else { u64::MAX };
        if let Some(window) = amendments.window(model) {
            model.window.set(window.min(probe_rtt));
            return;
        }
        let most = model.max_in_flight();
        let acked = sample.newly_acked.get();
        let window = model.window.bytes();
        let window = if model.full_pipe.was_reached {
            window.saturating_add(acked).min(most)
        } else if window < most || sample.total_delivered.get() < amendments.first_bytes(model, sample) {
            window.saturating_add(acked).saturating_add(amendments.more_growth(model, sample))
        } else {
            window
        };
        model.window.set(window.max(model.least_window()).min(probe_rtt));
        let cap = amendments.window_cap(model);
        model.bound_window(cap);
    }
}
