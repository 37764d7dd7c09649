//! While somebody else keeps the queue full: a window that goes by losses, as theirs.

use fairwave_units::{Rate, Time};

use super::super::rate_sample::RateSample;
use super::cycle::AckPhase;
use super::loss_window::LossWindow;
use super::model::{Bbr, rate_of};
use super::short_term::ShortTerm;
use super::state::BbrState;

/// Round trips over which the bandwidth is the largest delivery rate, and as many before.
const ROUNDS: u64 = 8;

impl Bbr {
    /// The window goes by losses from now on, and begins with what is in flight.
    pub(super) fn begin_loss_window(&mut self, sample: &RateSample) {
        let Some(rtt) = sample.rtt.or(self.min_rtt.least()) else { return };
        let in_flight = sample.in_flight.get().saturating_add(sample.newly_lost.get()).min(self.window);
        self.loss_window = Some(LossWindow::new(in_flight, self.packet(), rtt));
        self.short_term = ShortTerm::default();
        self.long_term = None;
        self.cycle.phase = AckPhase::Init;
        self.cycle.is_probe_sample = false;
        if self.state.is_probe_bw() {
            self.state = BbrState::ProbeCruise;
        }
        self.beside_round = self.rounds.count;
        self.neighbours.assume_filled();
    }

    /// The window by losses grows; whether there is one.
    pub(super) fn step_beside(&mut self, now: Time, sample: &RateSample) -> bool {
        let is_limited = self.is_window_limited() && !sample.is_app_limited && self.state == BbrState::ProbeCruise;
        let Some(window) = &mut self.loss_window else { return false };
        if self.state.is_probe_bw() {
            self.state = BbrState::ProbeCruise;
        }
        window.on_acked(now, sample.newly_acked, sample.rtt, is_limited);
        if self.rounds.count >= self.beside_round.saturating_add(ROUNDS) && !sample.is_app_limited {
            self.bandwidth.advance();
            self.beside_round = self.rounds.count;
        }
        if self.state == BbrState::ProbeCruise && !self.neighbours.fill_queue() {
            self.end_loss_window(now, sample.total_delivered.get());
        }
        true
    }

    /// The queue is empty at times: the model goes on.
    pub(super) fn end_loss_window(&mut self, now: Time, delivered: u64) {
        if self.loss_window.take().is_some() && self.state.is_probe_bw() {
            self.start_probe_down(now, delivered);
            self.state = BbrState::ProbeCruise;
        }
    }

    /// What the window by losses is paced at.
    pub(super) fn pace_of_losses(&self) -> Option<Rate> {
        let (bytes, rtt) = self.loss_window.filter(|_| self.state == BbrState::ProbeCruise)?.pace();
        Some(rate_of(bytes, rtt))
    }
}
