//! Competing by loss while other flows keep the queue full.

use fairwave_units::{Duration, Rate, Time};

use super::super::bbr::{AckPhase, BbrState, Model, ShortTerm, rate_of};
use super::super::rate_sample::RateSample;
use super::loss_window::{LossWindow, recovery_time};
use super::neighbours::Neighbours;

/// A loss-based window in place of the model's, for as long as other flows keep the queue full.
///
/// A model in the draft keeps twice what fills the path in flight, whatever others have in the queue, and takes what
/// they left at its next probe. If others fill the queue, its share is then its share of the bytes in flight, and
/// depends on the size of the queue: too little in a deep one, too much in a shallow one. As in Copa (Arun and
/// Balakrishnan, NSDI 2018, s4.1) and Nimbus (Goyal et al., SIGCOMM 2022), the model then behaves like the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compete {
    window: Option<LossWindow>,
    /// Round of its last look at the bandwidth.
    looked: u64,
    /// The window before an episode of losses that cut or started it.
    #[allow(clippy::option_option, reason = "there was no window, which is what comes back, or nothing was cut")]
    before: Option<Option<LossWindow>>,
}

/// Round trips over which the bandwidth is the maximum delivery rate, in each of two slots.
const ROUNDS: u64 = 8;
/// On a shorter path the owner of a queue cannot be identified: reports are less frequent than round trips, and packets
/// wait as long for the processor of a busy host. A loss-based window had 2 Gb/s of 25 there, between two hosts without
/// other flows.
const MIN_RTT: Duration = Duration::from_millis(2);
/// Interval of probes for the round-trip time: samples in between contain the queue of others.
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(10);
/// Lifetime of the minimum round-trip time, for the same reason.
pub(super) const MIN_RTT_WINDOW: Duration = Duration::from_secs(60);

impl Compete {
    pub(super) fn is_active(&self) -> bool {
        self.window.is_some()
    }

    /// Starts with the bytes in flight.
    pub(super) fn start(&mut self, model: &mut Model, neighbours: &mut Neighbours, sample: &RateSample) {
        if model.min_rtt.least().is_some_and(|least| least < MIN_RTT) {
            return;
        }
        let Some(rtt) = sample.rtt.or(model.min_rtt.least()) else { return };
        let in_flight = sample.in_flight.get().saturating_add(sample.newly_lost.get()).min(model.window.bytes());
        self.window = Some(LossWindow::new(in_flight, model.packet(), rtt));
        model.short_term = ShortTerm::default();
        model.long_term.set(None);
        model.cycle.phase = AckPhase::Init;
        model.cycle.is_probe_sample = false;
        if model.state.is_probe_bw() {
            model.state = BbrState::ProbeCruise;
        }
        self.looked = model.rounds.count;
        neighbours.assume_filled();
    }

    /// Updates the window; returns whether there is one.
    pub(super) fn step(&mut self, model: &mut Model, neighbours: &Neighbours, now: Time, sample: &RateSample) -> bool {
        let is_limit = model.window.is_limit() && !sample.is_app_limited && model.state == BbrState::ProbeCruise;
        let Some(window) = &mut self.window else { return false };
        if model.state.is_probe_bw() {
            model.state = BbrState::ProbeCruise;
        }
        window.on_acked(now, sample.newly_acked, sample.rtt, is_limit);
        if model.rounds.count >= self.looked.saturating_add(ROUNDS) && !sample.is_app_limited {
            model.bandwidth.advance();
            self.looked = model.rounds.count;
        }
        let recovery = recovery_time(window.bytes() / model.packet());
        let is_empty = !neighbours.fill_queue() && neighbours.has_passed_since_cut(now, recovery);
        if model.state == BbrState::ProbeCruise && is_empty {
            self.end(model, now, sample.total_delivered.get());
        }
        true
    }

    /// Returns to the model once the queue is empty at times, and the last cut is as long ago as a loss-based flow
    /// takes to grow back. A queue of less than a bandwidth-delay product is empty after each common cut. A model that
    /// returned at that point would keep its rate, while the others grow back from windows that are three tenths
    /// smaller: it had 80.6 % of 100 Mb/s against one CUBIC flow at 40 ms with half a bandwidth-delay product.
    fn end(&mut self, model: &mut Model, now: Time, delivered: u64) {
        if self.window.take().is_some() && model.state.is_probe_bw() {
            model.start_probe_down(now, delivered);
            model.state = BbrState::ProbeCruise;
        }
    }

    /// The queue is empty, or the link became slower: the model is right again.
    pub(super) fn give_up(&mut self) {
        self.window = None;
    }

    /// A queue overflowed: cuts the window if `is_due`.
    pub(super) fn cut(&mut self, now: Time, before: Self, is_due: bool) {
        self.before.get_or_insert(before.window);
        if let Some(window) = self.window.as_mut().filter(|_| is_due) {
            window.cut(now);
        }
    }

    /// An episode of losses is over; if none of it was lost, its cut is undone.
    pub(super) fn on_episode(&mut self, was_lost: bool) {
        let before = self.before.take();
        if let Some(window) = before.filter(|_| !was_lost) {
            self.window = window;
        }
    }

    /// Pacing rate of the window.
    pub(super) fn rate(&self, model: &Model) -> Option<Rate> {
        let (bytes, rtt) = self.window.filter(|_| model.state == BbrState::ProbeCruise)?.pace();
        Some(rate_of(bytes, rtt))
    }

    /// Maximum bytes in flight.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.window.map(|window| window.bytes())
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::super::super::bbr::{BbrConfig, Constants};
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn cruising(rtt: Duration) -> Model {
        let config = BbrConfig { initial_rtt: Some(rtt), ..BbrConfig::new(Bytes::new(1000)) };
        let mut model = Model::new(Time::ZERO, config, Constants::default());
        model.window.set(100_000);
        model.state = BbrState::ProbeCruise;
        model
    }

    #[test]
    fn step__model_resumes_a_recovery_after_a_cut() {
        let (mut model, mut neighbours, mut compete) = (cruising(RTT), Neighbours::default(), Compete::default());
        let sample = RateSample { in_flight: Bytes::new(100_000), rtt: Some(RTT), ..RateSample::default() };
        compete.start(&mut model, &mut neighbours, &sample);
        assert!(neighbours.may_cut(Time::from_secs(10), 5, 0));
        let mut has_window_at = |ms: u64| {
            assert!(compete.step(&mut model, &neighbours, Time::from_nanos(ms * 1_000_000), &sample));
            // A round trip without a queue.
            neighbours.on_cruise(false, false);
            compete.is_active()
        };
        // The queue counts as full for five rounds more, (7/8)^5 = 0.513. K of 100 packets is cbrt(75) = 4.217 s.
        for ms in [10_040, 10_400, 11_000, 12_000, 13_000, 14_000, 14_217] {
            assert!(has_window_at(ms), "{ms} ms");
        }
        assert!(!has_window_at(14_218));
    }

    #[test]
    fn start__not_on_paths_too_short_to_see_a_queue() {
        let is_active = |least_us| {
            let mut model = cruising(Duration::from_micros(least_us));
            let waits = Some(Duration::from_millis(9));
            let mut compete = Compete::default();
            let sample = RateSample { rtt: waits, ..RateSample::default() };
            compete.start(&mut model, &mut Neighbours::default(), &sample);
            compete.is_active()
        };
        assert_eq!([60, 1999, 2000].map(is_active), [false, false, true]);
    }

    #[test]
    fn step__a_queue_that_stays_full_keeps_the_window() {
        let (mut model, mut neighbours, mut compete) = (cruising(RTT), Neighbours::default(), Compete::default());
        let sample = RateSample { in_flight: Bytes::new(100_000), rtt: Some(RTT), ..RateSample::default() };
        assert!(!compete.step(&mut model, &neighbours, Time::ZERO, &sample));
        compete.start(&mut model, &mut neighbours, &sample);
        for second in 0..60 {
            assert!(compete.step(&mut model, &neighbours, Time::from_secs(second), &sample) && compete.is_active());
            neighbours.on_cruise(true, true);
        }
    }
}
