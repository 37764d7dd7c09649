//! The rate and the window that a model sets (BBR s5.6).

use fairwave_units::{Duration, Rate};

use super::super::rate_sample::RateSample;
use super::model::{Bbr, rate_of};
use super::state::BbrState;

/// Share of the bandwidth that is sent, so that a queue can drain (BBR s2.5, PacingMarginPercent).
pub(in super::super) const PACING_SHARE: f64 = 0.99;
/// Minimum gain of the bandwidth-delay product for the window in cruise, if others keep a queue,
const GAIN_BESIDE: f64 = 1.25;
/// with room for packets to wait at least this long.
const WAIT_BESIDE: Duration = Duration::from_millis(20);
/// Minimum window in packets (BBR s2.8, MinPipeCwnd).
const MIN_PACKETS: u64 = 4;

impl Bbr {
    /// BBR s5.6.2, SetPacingRateWithGain. Startup sends at least at `pace_of_start`.
    pub(in super::super) fn set_pacing(&mut self, gain: f64, pace_of_start: Rate) {
        if let Some(rate) = self.pace_of_losses() {
            self.pacing = rate;
            return;
        }
        // Ours: as long as no queue shows, random losses of the path are compensated, so that the bandwidth arrives.
        let has_queue = self.loss_floor.has_queue(self.min_rtt.least());
        let arriving = if has_queue { 1.0 } else { 1.0 - self.loss_floor.share() };
        let rate = self.bandwidth() * (gain * PACING_SHARE / arriving);
        let rate = rate.max(pace_of_start);
        if self.full_pipe.was_reached || rate > self.pacing {
            self.pacing = rate;
        }
        // Ours: at least a packet per second, so that the path's state becomes known.
        self.pacing = self.pacing.max(rate_of(self.packet(), Duration::from_secs(1)));
    }

    /// BBR s5.6.4.6, SetCwnd.
    pub(in super::super) fn set_window(&mut self, sample: &RateSample) {
        if let Some(window) = self.loss_window {
            let most = if self.state == BbrState::ProbeRtt { self.probe_rtt_window() } else { u64::MAX };
            self.window = window.bytes().min(most);
            return;
        }
        let most = self.max_in_flight();
        let acked = sample.newly_acked.get();
        if self.full_pipe.was_reached {
            self.window = self.window.saturating_add(acked).min(most);
        } else if self.window < most || sample.total_delivered.get() < self.first_bytes(sample) {
            self.window = self.window.saturating_add(acked).saturating_add(self.growth_of_start(sample));
        }
        self.window = self.window.max(self.least_window());
        if self.state == BbrState::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// BBR s5.6.4.7, BoundCwndForModel.
    fn bound_window(&mut self) {
        let long_term = match self.state {
            BbrState::ProbeCruise | BbrState::ProbeRtt => self.long_term_with_headroom(),
            state if state.is_probe_bw() => self.long_term,
            BbrState::Drain if self.slowdown.is_draining => Some(self.in_flight_of(1.0, self.bandwidth())),
            _ => None,
        };
        let most = long_term.unwrap_or(u64::MAX).min(self.short_term.in_flight.unwrap_or(u64::MAX));
        self.window = self.window.min(most.max(self.least_window()));
    }

    /// The long-term bound minus the headroom for others (BBR s5.3.3.9, InflightWithHeadroom).
    pub(in super::super) fn long_term_with_headroom(&self) -> Option<u64> {
        let bound = self.long_term?;
        let headroom = ((bound as f64 * self.config.headroom) as u64).max(self.packet());
        let bound = bound.saturating_sub(headroom).max(self.least_window());
        // Ours: without other flows on a short buffer, the bytes that fill the path are not given away, as no one would
        // use them.
        Some(if self.neighbours.are_there() { bound } else { bound.max(self.bdp_of(1.0, self.bandwidth.max())) })
    }

    /// BBR s5.6.4.2, UpdateMaxInflight.
    fn max_in_flight(&self) -> u64 {
        let is_still = matches!(self.state, BbrState::ProbeCruise | BbrState::ProbeDown);
        let gain = self.state.window_gain();
        let gain = if is_still && self.neighbours.fill_queue() { gain.min(self.gain_with_others()) } else { gain };
        let bytes = self.bdp(gain).saturating_add(self.aggregation.extra());
        self.with_quanta(bytes)
    }

    /// Ours: if others keep a queue, and while it does not probe, little more than fills the path. With twice that,
    /// shares of models stay as they are: each has in the queue what its share allows, and a probe of the smaller one,
    /// a quarter more, gains it next to nothing. On a short path a quarter is a shorter queue than that of a neighbour
    /// with a longer round trip, against which the window would hold the model down.
    fn gain_with_others(&self) -> f64 {
        let rtt = self.min_rtt.least().unwrap_or(Duration::ZERO).as_secs_f64();
        (1.0 + WAIT_BESIDE.as_secs_f64() / rtt).max(GAIN_BESIDE)
    }

    /// BBR s5.6.4.2, Inflight, for a bandwidth.
    pub(in super::super) fn in_flight_of(&self, gain: f64, bandwidth: Rate) -> u64 {
        self.with_quanta(self.bdp_of(gain, bandwidth))
    }

    /// `gain` times the bandwidth-delay product, in bytes.
    pub(in super::super) fn bdp(&self, gain: f64) -> u64 {
        self.bdp_of(gain, self.bandwidth())
    }

    pub(in super::super) fn bdp_of(&self, gain: f64, bandwidth: Rate) -> u64 {
        let Some(rtt) = self.min_rtt.least() else { return self.config.initial_window.get() };
        // Ours: twice that is the window.
        let rtt = rtt.max(Duration::from_nanos(self.config.report_every.as_nanos() / 2));
        // The cast saturates.
        (gain * bandwidth.as_bps() / 8.0 * rtt.as_secs_f64()) as u64
    }

    /// Bytes that the path delivers between two reports, if these take longer than a round trip.
    pub(in super::super) fn between_reports(&self) -> u64 {
        let every = self.config.report_every;
        let is_long = self.min_rtt.least().is_some_and(|rtt| rtt < every);
        // The cast saturates.
        if is_long { (self.bandwidth.max().as_bps() / 8.0 * every.as_secs_f64()) as u64 } else { 0 }
    }

    /// BBR s5.6.4.2, QuantizationBudget: room for packets that leave in one burst (s5.5.8, s5.6.3).
    fn with_quanta(&self, bytes: u64) -> u64 {
        let quantum = ((self.pacing.as_bps() / 8.0 * 1e-3) as u64).min(64_000).max(self.packet().saturating_mul(2));
        let bytes = bytes.max(quantum).max(self.least_window());
        if self.state == BbrState::ProbeUp { bytes.saturating_add(self.packet().saturating_mul(2)) } else { bytes }
    }

    /// BBR s5.3.3.8.3, TargetInflight.
    pub(in super::super) fn target_in_flight(&self) -> u64 {
        self.bdp(1.0).min(self.window)
    }

    /// BBR s5.6.4.5, ProbeRTTCwnd.
    pub(in super::super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(BbrState::ProbeRtt.window_gain()).max(self.least_window())
    }

    /// BBR s5.6.4.4, SaveCwnd.
    pub(in super::super) fn save_window(&mut self) {
        let is_good = self.recovery_until.is_none() && self.state != BbrState::ProbeRtt;
        self.prior_window = if is_good { self.window } else { self.prior_window.max(self.window) };
    }

    /// BBR s5.6.4.4, RestoreCwnd.
    pub(in super::super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// BBR s2.2, C.is_cwnd_limited.
    pub(in super::super) fn is_window_limited(&self) -> bool {
        self.fill.now || self.fill.before
    }

    fn least_window(&self) -> u64 {
        MIN_PACKETS.saturating_mul(self.packet())
    }
}
