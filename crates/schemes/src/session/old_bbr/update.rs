//! The steps of a model for each event.

use fairwave_units::{Bytes, Rate, Time};

use super::super::delivery_rate::SentStamp;
use super::super::rate_sample::RateSample;
use super::control::PACING_SHARE;
use super::model::{Bbr, WindowFill};
use super::short_term::ShortTerm;
use super::slowdown::Slowdown;
use super::state::BbrState;

impl Bbr {
    /// A packet is sent, with the stamp that [`DeliveryRate::on_sent`] gave it.
    ///
    /// [`DeliveryRate::on_sent`]: super::super::DeliveryRate::on_sent
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, stamp: &SentStamp) {
        let in_flight = stamp.in_flight().get();
        // BBR s5.4: it is the only one in flight, after a pause of the application.
        if in_flight <= bytes.get() && stamp.is_app_limited() {
            self.is_idle_restart = true;
            self.aggregation.begin(now);
            if self.state.is_probe_bw() {
                self.set_pacing(1.0, Rate::ZERO);
            } else if self.state == BbrState::ProbeRtt {
                self.end_probe_rtt(now, stamp.delivered());
            }
        }
        // Whether another packet would not have fitted.
        self.fill.now |= in_flight.saturating_add(bytes.get()) > self.window;
    }

    /// Feedback: the sample of one acknowledgement or report.
    pub fn on_sample(&mut self, now: Time, sample: &RateSample) {
        let mut sample = *sample;
        // Deliveries of packets sent while the model was the limit do not measure the path (BBR s5.3.4.3,
        // HandleProbeRTT).
        match self.limited_until {
            Some(until) if sample.prior_delivered.get() <= until => sample.is_app_limited = true,
            _ if sample.has_arrivals => self.limited_until = None,
            _ => {}
        }
        self.delivered = sample.total_delivered.get();
        if self.min_rtt.least().is_none() && sample.rtt.is_some() {
            self.begin_pacing(sample.rtt);
        }
        let gain = self.state.pacing_gain() * PACING_SHARE;
        self.made_up.on_sample(sample.made_up, sample.newly_acked, gain, self.bdp_of(1.0, self.bandwidth.max()));
        self.on_losses(now, &sample);
        if sample.has_arrivals {
            self.update_model(now, &sample);
        }
        self.set_pacing(self.state.pacing_gain(), self.pace_of_start(&sample));
        self.set_window(&sample);
    }

    /// A timeout without feedback: all packets in flight count as lost, and one packet is sent.
    pub fn on_timeout(&mut self, in_flight: Bytes) {
        self.loss_window = None;
        // BBR s5.6.4.4, OnEnterRTO.
        self.save_window();
        self.window = in_flight.get().saturating_add(self.packet());
        // Until a packet arrives that is sent after one more arrived.
        self.recovery_until = Some(self.delivered.saturating_add(1));
    }

    /// BBR s5.2.3, UpdateModelAndState.
    fn update_model(&mut self, now: Time, sample: &RateSample) {
        self.end_recovery(sample);
        self.delivery.on_sample(sample);
        self.update_bandwidth(sample);
        self.answer_slowdown(sample);
        self.answer_congestion(now, sample);
        let bandwidth = self.bandwidth();
        let acked = sample.newly_acked.get();
        let is_full = self.full_pipe.was_reached;
        self.aggregation.on_sample(now, acked, bandwidth, self.window, self.rounds.count, is_full);
        if let Some(rate) = sample.delivery_rate.filter(|_| self.rounds.is_start && !sample.is_app_limited) {
            self.full_pipe.on_round(rate);
        }
        self.check_startup(sample);
        self.check_drain(now, sample);
        self.update_probe_cycle(now, sample);
        self.min_rtt.on_sample(now, sample.rtt, self.loss_window.is_some());
        self.check_probe_rtt(now, sample);
        self.delivery.advance(sample);
        self.is_idle_restart = false;
    }

    /// A slower path: packets in flight drain before more is sent, at the current delivery rate.
    fn answer_slowdown(&mut self, sample: &RateSample) {
        self.slowdown.is_draining &= self.state == BbrState::Drain;
        if self.slowdown.is_draining {
            if let Some(rate) = Slowdown::rate(sample, self.min_rtt.least()) {
                self.bandwidth.cut_to(rate);
            }
            return;
        }
        if !self.state.is_probe_bw() {
            self.slowdown.forget();
            return;
        }
        let bound = self.slowdown.bound(self.bandwidth(), self.neighbours.fill_queue());
        let Some(rate) = self.slowdown.on_sample(sample, bound, self.min_rtt.least(), self.rounds.count) else {
            return;
        };
        self.bandwidth.cut_to(rate);
        self.short_term = ShortTerm::default();
        self.loss_window = None;
        self.slowdown.forget();
        self.slowdown.is_draining = true;
        self.start_drain();
    }

    /// BBR s5.5.5, UpdateMaxBw, and the rounds (s5.5.1).
    fn update_bandwidth(&mut self, sample: &RateSample) {
        if self.rounds.on_sample(sample) {
            self.cycle.rounds_since_up += 1;
            self.fill = WindowFill { now: false, before: self.fill.now };
        }
        if let Some(rate) = sample.delivery_rate.filter(|rate| *rate > Rate::ZERO) {
            self.bandwidth.on_sample(rate, sample.is_app_limited);
        }
    }
}
