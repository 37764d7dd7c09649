//! FAST TCP (Jin, Wei & Low 2004): keeps `alpha` packets queued in the network and approaches that in one smooth step.

use std::collections::VecDeque;

use fairwave_units::{Duration, Time};

use super::tcp_options::{LINUX_TCP, TCP_OPTIONS};
use super::{Ack, CongestionController, CongestionWindow, Loss, MarkResponse, WindowConfig};
use crate::scheme::option::{HALF_OPEN_UNIT, POSITIVE, TypedOption, join, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};

/// FAST's rule with its window.
#[derive(Clone, Debug)]
pub struct Fast {
    config: FastConfig,
    window: CongestionWindow,
    mean_rtt_s: Option<f64>,
    next_update: Time,
    /// Windows of the last round trip, oldest first.
    past: VecDeque<(Time, f64)>,
}

config! {
    /// Constants of FAST. Jin, Wei & Low 2004 and ns-2: 100 packets, 0.5, 10 ms, 0.75 ms.
    pub struct FastConfig(options) {
        /// Packets that each session keeps queued.
        pub alpha_packets: f64 = ALPHA.of(options),
        /// Share of the way to the new window per update, 0 < gamma <= 1.
        pub gamma: f64 = GAMMA.of(options),
        /// Time between updates.
        pub update_period: Duration = Duration::from_millis(10),
        /// Queueing delay below which the window doubles per round trip.
        pub doubling_below: Duration = Duration::from_micros(750),
    }
}

impl Fast {
    /// A session's controller at its start.
    pub fn new(config: FastConfig, window: WindowConfig) -> Self {
        Self {
            config,
            window: CongestionWindow::new(&window),
            mean_rtt_s: None,
            next_update: Time::ZERO,
            past: VecDeque::new(),
        }
    }

    /// Jin, Wei & Low 2004, Eq. 5: w <- min(2w, (1 - gamma) w + gamma (base RTT / RTT w_old + alpha)).
    fn update(&mut self, now: Time, base: Duration, mean_rtt_s: f64) {
        let round_trip = Duration::from_secs_f64(mean_rtt_s).unwrap_or(Duration::MAX);
        self.past.push_back((now, self.window.packets()));
        while self.past.len() > 1 && now.since(self.past[1].0) >= round_trip {
            self.past.pop_front();
        }
        let old = self.past.front().map_or(self.window.packets(), |(_, window)| *window);
        let FastConfig { alpha_packets, gamma, .. } = self.config;
        let wanted =
            (1.0 - gamma) * self.window.packets() + gamma * (base.as_secs_f64() / mean_rtt_s * old + alpha_packets);
        self.window.set(wanted.min(2.0 * self.window.packets()));
    }
}

impl CongestionController for Fast {
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
        if let Some(rtt) = ack.rtt {
            // The mean follows a round trip's worth of samples: weight 3/w, at most 1/4.
            let weight = (3.0 / self.window.packets()).min(0.25);
            let sample = rtt.as_secs_f64();
            self.mean_rtt_s = Some(self.mean_rtt_s.map_or(sample, |mean| mean + weight * (sample - mean)));
        }
        let Some(mean_rtt_s) = self.mean_rtt_s else { return };
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let queueing_s = mean_rtt_s - ack.min_rtt.as_secs_f64();
        if self.window.packets() < self.window.ssthresh_packets && queueing_s < self.config.doubling_below.as_secs_f64()
        {
            self.window.set(self.window.packets() + f64::from(ack.acked_packets.min(1)));
        } else if ack.now >= self.next_update {
            self.next_update = ack.now.saturating_add(self.config.update_period);
            self.update(ack.now, ack.min_rtt, mean_rtt_s);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.past.clear();
        self.window.cut_to(loss.half_of_flight_packets());
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.past.clear();
        self.window.begin_again(loss.half_of_flight_packets());
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "fast",
    "FAST TCP: keeps alpha packets queued, by delay",
    "Jin, Wei & Low 2004",
    &OPTIONS,
    |options, window| Ok(Box::new(Fast::new(FastConfig::from_options(options), window))),
);
/// Jin, Wei & Low 2004 measured Linux.
const OPTIONS: [OptionSpec; TCP_OPTIONS + 2] = join(LINUX_TCP, [ALPHA.spec(), GAMMA.spec()]);
const ALPHA: TypedOption<f64> = number("alpha", POSITIVE, "100", "packets queued in equilibrium");
const GAMMA: TypedOption<f64> = number("gamma", HALF_OPEN_UNIT, "0.5", "weight of the new window in the average");

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    #[test]
    fn equilibrium__keeps_alpha_packets_queued() {
        let window =
            WindowConfig { initial_window_packets: 500.0, initial_ssthresh_packets: 2.0, ..WindowConfig::default() };
        let mut fast = Fast::new(FastConfig::default(), window);
        // A pipe of 1000 packets: RTT = 100 ms x max(1, w / 1000).
        for step in 0..20_000_u64 {
            let rtt_s = 0.1 * (fast.window.packets() / 1000.0).max(1.0);
            let rtt = Duration::from_secs_f64(rtt_s);
            fast.on_ack(&Ack { now: Time::from_nanos(step * 10_000_000), rtt, ..test_ack(1) });
        }
        assert!((fast.window.packets() - 1100.0).abs() < 1.0, "{}", fast.window.packets());
    }
}
