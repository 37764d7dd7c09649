//! A loss-based window for the time in which other flows keep the queue full.

use fairwave_units::{Duration, Rate, Time};

use super::super::rate_sample::RateSample;
use super::cycle::AckPhase;
use super::loss_window::{LossWindow, recovery_time};
use super::model::{Bbr, rate_of};
use super::short_term::ShortTerm;
use super::state::BbrState;

/// Round trips over which the bandwidth is the maximum delivery rate, in each of two slots.
const ROUNDS: u64 = 8;
/// On a shorter path the owner of a queue cannot be identified: reports are less frequent than round trips, and packets
/// wait as long for the processor of a busy host. A loss-based window had 2 Gb/s of 25 there, between two hosts without
/// other flows.
const MIN_RTT: Duration = Duration::from_millis(2);

impl Bbr {
    /// Switches to a loss-based window, starting with the bytes in flight.
    pub(in super::super) fn start_loss_window(&mut self, sample: &RateSample) {
        if self.min_rtt.least().is_some_and(|least| least < MIN_RTT) {
            return;
        }
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

    /// Updates the loss-based window; returns whether there is one.
    pub(in super::super) fn step_with_others(&mut self, now: Time, sample: &RateSample) -> bool {
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
        let recovery = recovery_time(window.bytes() / self.config.packet.get().max(1));
        let is_empty = !self.neighbours.fill_queue() && self.neighbours.has_passed_since_cut(now, recovery);
        if self.state == BbrState::ProbeCruise && is_empty {
            self.end_loss_window(now, sample.total_delivered.get());
        }
        true
    }

    /// Returns to the model once the queue is empty at times, and the last cut is as long ago as a loss-based flow
    /// takes to grow back. A queue of less than a bandwidth-delay product is empty after each common cut. A model that
    /// returned at that point would keep its rate, while the others grow back from windows that are three tenths
    /// smaller: it had 80.6 % of 100 Mb/s against one CUBIC flow at 40 ms with half a bandwidth-delay product.
    pub(in super::super) fn end_loss_window(&mut self, now: Time, delivered: u64) {
        if self.loss_window.take().is_some() && self.state.is_probe_bw() {
            self.start_probe_down(now, delivered);
            self.state = BbrState::ProbeCruise;
        }
    }

    /// Pacing rate of the loss-based window.
    pub(in super::super) fn pace_of_losses(&self) -> Option<Rate> {
        let (bytes, rtt) = self.loss_window.filter(|_| self.state == BbrState::ProbeCruise)?.pace();
        Some(rate_of(bytes, rtt))
    }
}
