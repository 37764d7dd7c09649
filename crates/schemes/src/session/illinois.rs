//! TCP Illinois (Liu, Basar & Srikant 2006; Linux, `tcp_illinois.c`): loss decides when the window falls, and delay how
//! fast it grows and how far it falls.

use super::event::{Ack, Loss};
use super::tcp_options::LINUX_TCP;
use super::windowed::{WindowRule, windowed};
use crate::scheme::{Scheme, entry};

/// Growth and cut as functions of the mean queueing delay of a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Illinois {
    /// Packets per round trip.
    alpha: f64,
    /// Share of the window removed after a loss.
    beta: f64,
    round: u64,
    rtt_sum_s: f64,
    rtt_samples: u32,
    /// Longest round-trip time.
    max_rtt_s: f64,
    /// Whether the delay has been above the lowest hundredth, and the round trips since then that were not.
    was_above: bool,
    rounds_low: u32,
}

/// Bounds of the growth in packets per round trip, and of the cut (Liu et al. 2006, s3).
const ALPHA: [f64; 2] = [0.3, 10.0];
const BETA: [f64; 2] = [0.125, 0.5];
/// Below this window it is TCP (W_thresh in the paper).
const TCP_BELOW_PACKETS: f64 = 15.0;
/// Round trips of low delay after which the growth returns to its maximum (theta).
const THETA: u32 = 5;

impl Default for Illinois {
    /// Linux: the maximum growth, and TCP's cut.
    fn default() -> Self {
        Self {
            alpha: ALPHA[1],
            beta: BETA[1],
            round: 0,
            rtt_sum_s: 0.0,
            rtt_samples: 0,
            max_rtt_s: 0.0,
            was_above: false,
            rounds_low: 0,
        }
    }
}

impl Illinois {
    /// A round trip ended with this mean and this maximum of the queueing delay.
    fn on_round(&mut self, mean_s: f64, most_s: f64) {
        self.alpha = self.growth(mean_s, most_s);
        self.beta = cut(mean_s, most_s);
    }

    fn growth(&mut self, mean_s: f64, most_s: f64) -> f64 {
        let low_s = most_s / 100.0;
        if mean_s <= low_s {
            if self.was_above {
                self.rounds_low += 1;
                if self.rounds_low < THETA {
                    return self.alpha;
                }
                (self.was_above, self.rounds_low) = (false, 0);
            }
            return ALPHA[1];
        }
        self.was_above = true;
        // Liu et al. 2006, Eq. 3: k1 / (k2 + delay), from the maximum at low_s to the minimum at most_s.
        let (mean_s, most_s) = (mean_s - low_s, most_s - low_s);
        most_s * ALPHA[1] / (most_s + mean_s * (ALPHA[1] - ALPHA[0]) / ALPHA[0])
    }
}

/// Liu et al. 2006, Eq. 4: linear between a tenth and eight tenths of the maximum delay.
fn cut(mean_s: f64, most_s: f64) -> f64 {
    let (from_s, to_s) = (most_s * 0.1, most_s * 0.8);
    if mean_s <= from_s {
        BETA[0]
    } else if mean_s >= to_s {
        BETA[1]
    } else {
        BETA[0] + (BETA[1] - BETA[0]) * (mean_s - from_s) / (to_s - from_s)
    }
}

impl WindowRule for Illinois {
    fn slow_start(&mut self, _window_packets: f64, ack: &Ack) -> Option<f64> {
        self.sample(ack);
        None
    }

    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.sample(ack);
        let alpha = if window_packets < TCP_BELOW_PACKETS { 1.0 } else { self.alpha };
        alpha * f64::from(ack.acked_packets) / window_packets
    }

    fn decrease(&mut self, window_packets: f64, _loss: &Loss) -> f64 {
        let beta = if window_packets < TCP_BELOW_PACKETS { BETA[1] } else { self.beta };
        window_packets * (1.0 - beta)
    }

    fn time_out(&mut self, _window_packets: f64, loss: &Loss) -> f64 {
        // Linux: TCP's constants until the next round trip is measured.
        (self.alpha, self.beta, self.was_above, self.rounds_low) = (1.0, BETA[1], false, 0);
        loss.half_of_flight_packets()
    }
}

impl Illinois {
    fn sample(&mut self, ack: &Ack) {
        if ack.round != self.round {
            let base_s = ack.min_rtt.as_secs_f64();
            if self.rtt_samples > 0 {
                let mean_s = self.rtt_sum_s / f64::from(self.rtt_samples) - base_s;
                self.on_round(mean_s.max(0.0), self.max_rtt_s - base_s);
            }
            (self.round, self.rtt_sum_s, self.rtt_samples) = (ack.round, 0.0, 0);
        }
        if let Some(rtt) = ack.rtt {
            self.rtt_sum_s += rtt.as_secs_f64();
            self.rtt_samples += 1;
            self.max_rtt_s = self.max_rtt_s.max(rtt.as_secs_f64());
        }
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "illinois",
    "TCP Illinois: growth and cut by the queueing delay",
    "Liu, Basar & Srikant 2006; Linux",
    &LINUX_TCP,
    |_, window| Ok(windowed(Illinois::default(), window)),
);

#[cfg(test)]
mod tests {
    use super::super::test_loss;
    use super::*;

    #[test]
    fn on_round__growth_falls_and_cut_rises_with_the_delay() {
        let mut rule = Illinois::default();
        // Of 100 ms at most. Growth: 10 at 1 ms, 0.3 at 100 ms; in the middle 99 x 10 / (99 + 49.5 x 32.33) = 0.5825.
        // Cut: 0.125 up to 10 ms, 0.5 from 80 ms on, in the middle 0.125 + 0.375 x 40.5 / 70 = 0.3420.
        for (mean_ms, alpha, beta) in [(1.0, 10.0, 0.125), (50.5, 0.5825, 0.3420), (100.0, 0.3, 0.5)] {
            rule.on_round(mean_ms / 1e3, 0.1);
            assert!((rule.alpha - alpha).abs() < 1e-4, "{mean_ms} ms: {}", rule.alpha);
            assert!((rule.beta - beta).abs() < 1e-4, "{mean_ms} ms: {}", rule.beta);
        }
        assert_eq!(rule.decrease(100.0, &test_loss(1)), 50.0);
    }

    #[test]
    fn on_round__returns_to_fast_growth_after_five_round_trips_of_low_delay() {
        let mut rule = Illinois::default();
        rule.on_round(0.1, 0.1);
        for round in 1..5 {
            rule.on_round(0.0, 0.1);
            assert!((rule.alpha - 0.3).abs() < 1e-12, "{round}");
        }
        rule.on_round(0.0, 0.1);
        assert_eq!(rule.alpha, 10.0);
    }

    #[test]
    fn decrease__a_small_window_is_tcps() {
        let mut rule = Illinois::default();
        rule.on_round(0.0, 0.1);
        assert_eq!((rule.decrease(14.0, &test_loss(1)), rule.decrease(16.0, &test_loss(1))), (7.0, 14.0));
    }
}
