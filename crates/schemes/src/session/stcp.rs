//! Scalable TCP (Kelly 2003): growth in proportion to the window, so that the time to recover from a loss does not
//! depend on the rate.

use super::event::{Ack, Loss};
use super::new_reno::NewReno;
use super::tcp_options::{LINUX_TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use crate::scheme::option::{POSITIVE, TypedOption, UNIT, join, number, packets_only};
use crate::scheme::{OptionSpec, Scheme, config, entry};

/// Scalable TCP's rule; below its low window it is NewReno.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalable {
    config: ScalableConfig,
}

config! {
    /// Constants of Scalable TCP. Kelly 2003: a = 0.01, b = 0.125, from 16 packets on.
    pub struct ScalableConfig(options) {
        /// Packets per acknowledged packet.
        pub increase_packets: f64 = INCREASE.of(options),
        /// Share of the window removed after a loss, 0 < decrease < 1.
        pub decrease: f64 = DECREASE.of(options),
        /// Window below which it is NewReno.
        pub low_window_packets: f64 = LOW_WINDOW.of(options) as f64,
    }
}

impl Scalable {
    /// A rule with these constants.
    pub fn new(config: ScalableConfig) -> Self {
        Self { config }
    }
}

impl WindowRule for Scalable {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        if window_packets < self.config.low_window_packets {
            return NewReno.increase(window_packets, ack);
        }
        self.config.increase_packets * f64::from(ack.acked_packets)
    }

    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        if window_packets < self.config.low_window_packets {
            return NewReno.decrease(window_packets, loss);
        }
        window_packets * (1.0 - self.config.decrease)
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "stcp",
    "Scalable TCP: recovery takes the same time at any rate",
    "Kelly 2003",
    &OPTIONS,
    |options, window| Ok(windowed(Scalable::new(ScalableConfig::from_options(options)), window)),
);
/// Kelly 2003 measured Linux.
const OPTIONS: [OptionSpec; TCP_OPTIONS + 3] = join(LINUX_TCP, [INCREASE.spec(), DECREASE.spec(), LOW_WINDOW.spec()]);
const INCREASE: TypedOption<f64> = number("increase", POSITIVE, "0.01", "packets added per acknowledged packet");
const DECREASE: TypedOption<f64> = number("decrease", UNIT, "0.125", "fraction removed at a loss");
const LOW_WINDOW: TypedOption<u64> = packets_only("low_window", "16 packets", "standard TCP up to this window");

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    #[test]
    fn recovery__takes_the_same_round_trips_at_any_window() {
        for start in [800.0, 8000.0, 80_000.0] {
            let mut rule = Scalable::new(ScalableConfig::default());
            let mut window = rule.decrease(start, &test_loss(start as u32));
            assert_eq!(window, start * 0.875);
            let mut round_trips = 0.0;
            while window < start {
                round_trips += 1.0 / window;
                window += rule.increase(window, &test_ack(1));
            }
            // d(ln w) = 0.01 per round trip of w acknowledgements: ln(8/7) / 0.01 = 13.35; in whole rounds
            // ln(8/7) / ln 1.01 = 13.42.
            assert!((13.3..13.45).contains(&round_trips), "{round_trips} from {start}");
        }
    }

    #[test]
    fn low_window__is_new_reno() {
        let mut rule = Scalable::new(ScalableConfig::default());
        assert_eq!(rule.increase(10.0, &test_ack(1)), 0.1);
        assert_eq!(rule.decrease(10.0, &test_loss(10)), 5.0);
    }
}
