//! TCP Vegas (Brakmo & Peterson 1995): keeps a few packets queued in the network, estimated once per round trip from
//! the delay.

use fairwave_units::Duration;

use super::tcp_options::{NS2, TCP_OPTIONS, tcp};
use super::{Ack, CongestionController, CongestionWindow, Loss, MarkResponse, WindowConfig};
use crate::scheme::option::{POSITIVE, TypedOption, join, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};

/// Vegas' rule with its window.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: VegasConfig,
    window: CongestionWindow,
    /// The round trip that is being measured, and its samples.
    round: u64,
    rtt_sum_s: f64,
    rtt_samples: u32,
    /// Growth per acknowledged packet decided in the last round: a packet per round trip, or nothing.
    growth_packets: f64,
    /// In slow start the window grows in every other round only.
    is_growing_round: bool,
}

config! {
    /// Constants of Vegas, in packets queued. ns-2: 1, 3, 1. Linux and ns-3: 2, 4, 1.
    pub struct VegasConfig(options) {
        /// Below this the window grows by one per round trip.
        pub alpha_packets: f64 = ALPHA.of(options),
        /// Above this it shrinks by one.
        pub beta_packets: f64 = BETA.of(options),
        /// Above this slow start ends.
        pub gamma_packets: f64 = GAMMA.of(options),
    }
}

impl Vegas {
    /// A session's controller at its start.
    pub fn new(config: VegasConfig, window: WindowConfig) -> Self {
        Self {
            config,
            window: CongestionWindow::at_least(MIN_PACKETS, &window),
            round: 0,
            rtt_sum_s: 0.0,
            rtt_samples: 0,
            growth_packets: 0.0,
            is_growing_round: true,
        }
    }

    /// Packets queued in the network: w (1 - base RTT / RTT).
    pub fn queued_packets(window_packets: f64, base: Duration, rtt_s: f64) -> f64 {
        window_packets * (1.0 - base.as_secs_f64() / rtt_s)
    }

    /// Evaluates the round trip that ended.
    fn end_round(&mut self, ack: &Ack) {
        if self.rtt_samples == 0 {
            return;
        }
        let rtt_s = self.rtt_sum_s / f64::from(self.rtt_samples);
        // As in ns-2's tcp-vegas.cc: of the packets in flight, which exclude a window's fraction, and in whole packets:
        // between half a packet and three and a half the window stays.
        let in_flight = f64::from(ack.in_flight_packets);
        let queued = Self::queued_packets(in_flight, ack.min_rtt, rtt_s).round();
        self.growth_packets = 0.0;
        if self.window.packets() < self.window.ssthresh_packets {
            self.is_growing_round = !self.is_growing_round;
            // ns-2: evaluated before the window grows, in every other round.
            if self.is_growing_round && queued > self.config.gamma_packets {
                self.window.set_ssthresh(MIN_PACKETS);
                self.window.set(self.window.packets() * 0.875);
            }
        } else if queued < self.config.alpha_packets {
            // ns-2: the same for each acknowledgement, so that those of a round trip add up to a packet.
            self.growth_packets = 1.0 / self.window.packets();
        } else if queued > self.config.beta_packets {
            self.window.set(self.window.packets() - 1.0);
        }
    }
}

impl CongestionController for Vegas {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::AsLoss
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.round != self.round {
            if !ack.in_recovery {
                self.end_round(ack);
            }
            self.round = ack.round;
            self.rtt_sum_s = 0.0;
            self.rtt_samples = 0;
        }
        if let Some(rtt) = ack.rtt {
            self.rtt_sum_s += rtt.as_secs_f64();
            self.rtt_samples += 1;
        }
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        if self.window.packets() < self.window.ssthresh_packets {
            if self.is_growing_round {
                self.window.set(self.window.packets() + f64::from(ack.acked_packets.min(1)));
            }
        } else {
            self.window.set(self.window.packets() + self.growth_packets * f64::from(ack.acked_packets));
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        // Brakmo & Peterson 1995, section 3.1: a cut of a quarter, since Vegas rarely overshoots far.
        self.window.set(self.window.packets() * 0.75);
        self.window.set_ssthresh(self.window.packets().min(self.window.ssthresh_packets));
    }
}

/// Vegas never goes below two packets: one would wait for a delayed acknowledgement.
const MIN_PACKETS: f64 = 2.0;

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "vegas",
    "TCP Vegas: keeps a few packets queued, by delay",
    "Brakmo & Peterson 1995",
    &OPTIONS,
    |options, window| Ok(Box::new(Vegas::new(VegasConfig::from_options(options), window))),
);
/// As in ns-2, like its constants.
const OPTIONS: [OptionSpec; TCP_OPTIONS + 3] = join(tcp("true", NS2), [ALPHA.spec(), BETA.spec(), GAMMA.spec()]);
const ALPHA: TypedOption<f64> = number("alpha", POSITIVE, "1", "grow while fewer packets than this are queued");
const BETA: TypedOption<f64> = number("beta", POSITIVE, "3", "shrink while more packets than this are queued");
const GAMMA: TypedOption<f64> =
    number("gamma", POSITIVE, "1", "leave slow start when more packets than this are queued");

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    fn vegas(window_packets: f64, ssthresh_packets: f64) -> Vegas {
        let window = WindowConfig {
            initial_window_packets: window_packets,
            initial_ssthresh_packets: ssthresh_packets,
            ..WindowConfig::default()
        };
        Vegas::new(VegasConfig::default(), window)
    }

    /// One round trip of acknowledgements with this RTT over a base of 100 ms.
    fn round(vegas: &mut Vegas, number: u64, rtt_ms: u64) {
        for _ in 0..vegas.window.packets() as u32 {
            let rtt = Some(Duration::from_millis(rtt_ms));
            vegas.on_ack(&Ack { round: number, rtt, in_flight_packets: vegas.window.packets() as u32, ..test_ack(1) });
        }
    }

    #[test]
    fn queued_packets__from_the_delay() {
        // 38 x (1 - 100/106) = 2.15
        let queued = Vegas::queued_packets(38.0, Duration::from_millis(100), 0.106);
        assert!((queued - 2.150_943).abs() < 1e-6);
    }

    #[test]
    fn end_round__counts_whole_packets() {
        // ns-2, tcp-vegas.cc: delta = int(queued + 0.5), then delta < 1 and delta > 3. Of 38 packets, over 100 ms: 0.4,
        // 0.7, 3.3 and 3.6 in the queue.
        for (queued, change) in [(0.4, 1.0), (0.7, 0.0), (3.3, 0.0), (3.6, -1.0)] {
            let rtt = Duration::from_secs_f64(0.1 / (1.0 - queued / 38.0));
            let mut vegas = vegas(38.0, 2.0);
            for number in 1..=2 {
                for _ in 0..vegas.window.packets() as u32 {
                    vegas.on_ack(&Ack {
                        round: number,
                        rtt,
                        in_flight_packets: vegas.window.packets() as u32,
                        ..test_ack(1)
                    });
                }
            }
            let got = vegas.window.packets() - 38.0;
            assert!((got - change).abs() < 0.05, "at {queued} queued: {got}");
        }
    }

    #[test]
    fn end_round__grows_holds_and_shrinks() {
        for (rtt_ms, change) in [(101, 1.0), (106, 0.0), (115, -1.0)] {
            let mut vegas = vegas(38.0, 2.0);
            round(&mut vegas, 1, rtt_ms);
            round(&mut vegas, 2, rtt_ms);
            let got = vegas.window.packets() - 38.0;
            assert!((got - change).abs() < 0.05, "at {rtt_ms} ms: {got}");
        }
    }

    #[test]
    fn slow_start__doubles_every_other_round_until_a_queue() {
        let mut vegas = vegas(4.0, f64::INFINITY);
        for number in 1..=3 {
            round(&mut vegas, number, 100);
        }
        assert_eq!(vegas.window.packets(), 16.0); // grows in rounds 1 and 3
        round(&mut vegas, 4, 120);
        round(&mut vegas, 5, 120);
        assert_eq!(vegas.ssthresh_packets(), 2.0);
    }
}
