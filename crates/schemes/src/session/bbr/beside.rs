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
    pub(super) fn start_loss_window(&mut self, sample: &RateSample) {
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
    pub(super) fn step_with_others(&mut self, now: Time, sample: &RateSample) -> bool {
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
    pub(super) fn end_loss_window(&mut self, now: Time, delivered: u64) {
        if self.loss_window.take().is_some() && self.state.is_probe_bw() {
            self.start_probe_down(now, delivered);
            self.state = BbrState::ProbeCruise;
        }
    }

    /// Pacing rate of the loss-based window.
    pub(super) fn pace_of_losses(&self) -> Option<Rate> {
        let (bytes, rtt) = self.loss_window.filter(|_| self.state == BbrState::ProbeCruise)?.pace();
        Some(rate_of(bytes, rtt))
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::{Bytes, Duration};

    use super::super::config::BbrConfig;
    use super::*;

    #[test]
    fn step_with_others__model_resumes_a_recovery_after_a_cut() {
        let rtt = Some(Duration::from_millis(40));
        let config = BbrConfig { initial_rtt: rtt, ..BbrConfig::new(Bytes::new(1000)) };
        let mut model = Bbr::new(Time::ZERO, config);
        (model.window, model.state) = (100_000, BbrState::ProbeCruise);
        let sample = RateSample { in_flight: Bytes::new(100_000), rtt, ..RateSample::default() };
        model.start_loss_window(&sample);
        assert!(model.neighbours.may_cut(Time::from_secs(10), 5, 0));
        let mut has_window_at = |ms: u64| {
            assert!(model.step_with_others(Time::from_nanos(ms * 1_000_000), &sample));
            let has_window = model.loss_window.is_some();
            // A round trip without a queue.
            model.neighbours.on_cruise(false, false);
            has_window
        };
        // The queue counts as full for five rounds more, (7/8)^5 = 0.513. K of 100 packets is cbrt(75) = 4.217 s.
        for ms in [10_040, 10_400, 11_000, 12_000, 13_000, 14_000, 14_217] {
            assert!(has_window_at(ms), "{ms} ms");
        }
        assert!(!has_window_at(14_218));
    }

    #[test]
    fn start_loss_window__not_on_paths_too_short_to_see_a_queue() {
        let has_window = |least_us| {
            let rtt = Some(Duration::from_micros(least_us));
            let config = BbrConfig { initial_rtt: rtt, ..BbrConfig::new(Bytes::new(1000)) };
            let mut model = Bbr::new(Time::ZERO, config);
            let waits = Some(Duration::from_millis(9));
            model.start_loss_window(&RateSample { rtt: waits, ..RateSample::default() });
            model.loss_window.is_some()
        };
        assert_eq!([60, 1999, 2000].map(has_window), [false, false, true]);
    }

    #[test]
    fn step_with_others__a_queue_that_stays_full_keeps_the_window() {
        let mut model = Bbr::new(Time::ZERO, BbrConfig::new(Bytes::new(1000)));
        (model.window, model.state) = (100_000, BbrState::ProbeCruise);
        let rtt = Some(Duration::from_millis(40));
        let sample = RateSample { in_flight: Bytes::new(100_000), rtt, ..RateSample::default() };
        assert!(!model.step_with_others(Time::ZERO, &sample));
        model.start_loss_window(&sample);
        for second in 0..60 {
            assert!(model.step_with_others(Time::from_secs(second), &sample) && model.loss_window.is_some());
            model.neighbours.on_cruise(true, true);
        }
    }
}
