//! AIMD(a, b): `increase` packets per round trip, a share `decrease` removed after a loss (Xu et al. 2004, section
//! III).

use super::event::{Ack, Loss};
use super::tcp_options::{TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use crate::scheme::option::{POSITIVE, TypedOption, UNIT, join, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};

/// Additive increase, multiplicative decrease with any constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    config: AimdConfig,
}

config! {
    /// Constants of AIMD. Xu et al. 2004: AIMD(32, 1/8).
    pub struct AimdConfig(options) {
        /// Packets per round trip.
        pub increase_packets: f64 = INCREASE.of(options),
        /// Share of the window removed after a loss, 0 < decrease < 1.
        pub decrease: f64 = DECREASE.of(options),
    }
}

impl Aimd {
    /// A rule with these constants.
    pub fn new(config: AimdConfig) -> Self {
        Self { config }
    }
}

impl WindowRule for Aimd {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.config.increase_packets * f64::from(ack.acked_packets) / window_packets
    }

    fn decrease(&mut self, window_packets: f64, _loss: &Loss) -> f64 {
        window_packets * (1.0 - self.config.decrease)
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "aimd",
    "additive increase, multiplicative decrease, with configurable constants",
    "Xu et al. 2004",
    &OPTIONS,
    |options, window| Ok(windowed(Aimd::new(AimdConfig::from_options(options)), window)),
);
/// Xu et al., in March 2004: ns-2 with one second, like TCP.
const OPTIONS: [OptionSpec; TCP_OPTIONS + 2] = join(TCP, [INCREASE.spec(), DECREASE.spec()]);
const INCREASE: TypedOption<f64> = number("increase", POSITIVE, "32", "packets added per RTT");
const DECREASE: TypedOption<f64> = number("decrease", UNIT, "0.125", "fraction removed at a loss");

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    #[test]
    fn epoch__takes_four_round_trips() {
        let mut aimd = Aimd::new(AimdConfig::default());
        let mut window = aimd.decrease(1000.0, &test_loss(1000));
        assert_eq!(window, 875.0);
        let mut acks = 0.0;
        let mut round_trips = 0.0;
        while window < 1000.0 {
            window += aimd.increase(window, &test_ack(1));
            acks += 1.0;
            round_trips += 1.0 / window;
        }
        // 125 / 32 = 3.9 round trips of some 937 packets each.
        assert!((3.8..4.0).contains(&round_trips), "{round_trips} round trips, {acks} acknowledgements");
    }
}
