//! CARD: congestion avoidance using round-trip delay (Jain 1989), as textbooks give it: every two round trips the window
//! moves, down if window and delay moved the same way, else up.
//!
//! It has no slow start and no rule for losses: a loss halves the window (ours).

use super::event::{Ack, Loss};
use super::tcp_options::LINUX_TCP;
use super::windowed::{WindowRule, windowed};
use crate::scheme::{Scheme, entry};

/// The window and delay of two round trips ago, and the least delay since. A mean would also hold what packets of one
/// burst wait for each other: on an idle path it grows with the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Card {
    /// Window in packets and least round-trip time in nanoseconds at the last decision.
    before: Option<(f64, u64)>,
    /// Round trip of the last decision. Delays of the first round trip after it still belong to the old window.
    decided_in: u64,
    least_rtt_ns: Option<u64>,
}

/// Part of the window by which it shrinks (Jain 1989).
const SHRINK: f64 = 1.0 / 8.0;
/// Growth in packets.
const GROWTH_PACKETS: f64 = 1.0;

impl Card {
    fn decide(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        if let Some(rtt) = ack.rtt.filter(|_| ack.round > self.decided_in) {
            self.least_rtt_ns = Some(self.least_rtt_ns.map_or(rtt.as_nanos(), |least| least.min(rtt.as_nanos())));
        }
        let Some(rtt_ns) = self.least_rtt_ns.filter(|_| ack.round >= self.decided_in + 2) else { return 0.0 };
        let moved_together = self
            .before
            .is_some_and(|(window, before_ns)| (window_packets - window) * (rtt_ns as f64 - before_ns as f64) > 0.0);
        *self = Self { before: Some((window_packets, rtt_ns)), decided_in: ack.round, ..Self::default() };
        if moved_together { -SHRINK * window_packets } else { GROWTH_PACKETS }
    }
}

impl WindowRule for Card {
    fn slow_start(&mut self, window_packets: f64, ack: &Ack) -> Option<f64> {
        Some(self.decide(window_packets, ack))
    }

    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.decide(window_packets, ack)
    }

    fn decrease(&mut self, _window_packets: f64, loss: &Loss) -> f64 {
        loss.half_of_flight_packets()
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "card",
    "the window moves every two round trips, down if the delay moved with it",
    "Jain 1989; Peterson & Davie",
    &LINUX_TCP,
    |_, window| Ok(windowed(Card::default(), window)),
);

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;
    use fairwave_units::Duration;

    /// The growth at a window and a delay, after others two round trips before.
    fn growth(before: (f64, u64), now: (f64, u64)) -> f64 {
        let mut rule = Card { before: Some(before), ..Card::default() };
        let ack = Ack { round: 2, rtt: Some(Duration::from_nanos(now.1)), ..test_ack(1) };
        rule.decide(now.0, &ack)
    }

    #[test]
    fn decide__down_if_window_and_delay_moved_the_same_way() {
        assert_eq!(growth((15.0, 100), (16.0, 110)), -2.0);
        assert_eq!(growth((17.0, 120), (16.0, 110)), -2.0);
        assert_eq!(growth((15.0, 120), (16.0, 110)), 1.0);
        assert_eq!(growth((17.0, 100), (16.0, 110)), 1.0);
        for still in [growth((16.0, 100), (16.0, 110)), growth((15.0, 110), (16.0, 110))] {
            assert_eq!(still, 1.0);
        }
    }

    #[test]
    fn decide__alone_saws_around_the_bandwidth_delay_product() {
        // Exact delays: max(1, W / B). The numbers are those of the rule in Python, over decisions 200 to 399.
        for (bdp, least, most, mean) in [(16.0, 12.26, 16.99, 0.912), (100.0, 76.57, 100.70, 0.884)] {
            let (mut rule, mut window) = (Card::default(), 1.0_f64);
            let (mut low, mut high, mut sum, mut count) = (f64::INFINITY, 0.0_f64, 0.0, 0.0);
            // A decision every other round trip.
            for round in 0..800 {
                let rtt = Duration::from_nanos((1e8 * (window / bdp).max(1.0)).round() as u64);
                window = (window + rule.decide(window, &Ack { round, rtt: Some(rtt), ..test_ack(1) })).max(1.0);
                if round > 400 {
                    (low, high) = (low.min(window), high.max(window));
                    sum += (window / bdp).min(1.0);
                    count += 1.0;
                }
            }
            assert!((low - least).abs() < 0.01 && (high - most).abs() < 0.01, "{bdp}: {low} to {high}");
            assert!((sum / count - mean).abs() < 0.001, "{bdp}: {}", sum / count);
        }
    }
}
