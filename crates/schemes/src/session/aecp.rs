//! AECP's source (Huang et al. 2010, Eqs. 43 and 44): once per round-trip time its rate moves towards the smallest rate
//! factor on its path, by a fixed share of the logarithmic gap.

use fairwave_units::{Duration, Rate, Time};

use super::{Ack, Allowance, CongestionController, CongestionWindow, Feedback, Loss, Sending, WindowConfig};
use crate::header::{AecpHeader, CongestionHeader};
use crate::scheme::config;
use crate::scheme::option::{POSITIVE, TypedOption, number};

/// AECP's rate.
#[derive(Clone, Debug)]
pub struct Aecp {
    config: AecpSourceConfig,
    /// Its bounds and ssthresh; the limit of bytes in flight follows from the rate.
    window: CongestionWindow,
    initial_window_packets: f64,
    /// The rate in bit/s; `None` until the first round-trip time is known.
    rate_bps: Option<f64>,
    /// The newest rate factor in bit/s.
    rate_factor_bps: f64,
    smoothed_rtt: Duration,
    packet_bits: f64,
    next_update: Time,
}

config! {
    /// Constants of AECP's sources. Huang et al. 2010, section V: 2/s.
    pub struct AecpSourceConfig(options) {
        /// Gain in 1/s: the share of the logarithmic gap that is closed per second.
        pub alpha_per_s: f64 = ALPHA.of(options),
    }
}

impl Aecp {
    /// A session's controller at its start: the initial window of packets, then the links' rates.
    pub fn new(config: AecpSourceConfig, window: WindowConfig) -> Self {
        Self {
            config,
            window: CongestionWindow::new(&window),
            initial_window_packets: window.initial_window_packets.max(1.0),
            rate_bps: None,
            rate_factor_bps: f64::INFINITY,
            smoothed_rtt: Duration::ZERO,
            packet_bits: 0.0,
            next_update: Time::ZERO,
        }
    }

    /// Huang et al. 2010, Eq. 44: x <- x^(1 - alpha tau) r^(alpha tau).
    fn update(&mut self, rate_bps: f64) -> f64 {
        let rtt_s = self.smoothed_rtt.as_secs_f64();
        // Differs from the paper: from half a second on the exponent of x would be negative.
        let share = (self.config.alpha_per_s * rtt_s).min(MAX_SHARE);
        let least_bps = self.packet_bits / rtt_s;
        (libm::pow(rate_bps, 1.0 - share) * libm::pow(self.rate_factor_bps, share)).max(least_bps)
    }
}

impl CongestionController for Aecp {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn header(&self, _: &Sending) -> Option<CongestionHeader> {
        Some(CongestionHeader::Aecp(AecpHeader { rate_factor_bps: f64::INFINITY }))
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        let CongestionHeader::Aecp(AecpHeader { rate_factor_bps }) = feedback.header else { return };
        if !rate_factor_bps.is_finite() || feedback.smoothed_rtt.is_zero() {
            return;
        }
        self.rate_factor_bps = rate_factor_bps.max(1.0);
        self.smoothed_rtt = feedback.smoothed_rtt;
        self.packet_bits = f64::from(feedback.packet_bytes) * 8.0;
        let first = || self.initial_window_packets * self.packet_bits / self.smoothed_rtt.as_secs_f64();
        let rate_bps = self.rate_bps.unwrap_or_else(first);
        if feedback.now >= self.next_update {
            self.next_update = feedback.now.saturating_add(self.smoothed_rtt);
            self.rate_bps = Some(self.update(rate_bps));
        }
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, loss: &Loss) {
        // Lost packets are sent again; only the links determine the rate.
        self.window.set_ssthresh(f64::from(loss.in_flight_packets));
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    fn allowance(&self) -> Allowance {
        let Some(rate_bps) = self.rate_bps else {
            return Allowance {
                window_packets: self.initial_window_packets.min(self.window.most_packets()),
                pacing: None,
            };
        };
        // The rate is the limit; the window bounds the case that acknowledgements stop.
        let window = 2.0 * rate_bps * self.smoothed_rtt.as_secs_f64() / self.packet_bits + 2.0;
        let window_packets = window.max(self.initial_window_packets).min(self.window.most_packets());
        Allowance { window_packets, pacing: Rate::from_bps(rate_bps).ok() }
    }

    fn set_window_packets(&mut self, window_packets: f64) {
        self.initial_window_packets = window_packets.max(1.0);
        if !self.smoothed_rtt.is_zero() {
            self.rate_bps = Some(window_packets.max(1.0) * self.packet_bits / self.smoothed_rtt.as_secs_f64());
        }
    }
}

/// Maximum step, as a share of the logarithmic gap.
const MAX_SHARE: f64 = 0.9;

/// Gain of the source.
pub(crate) const ALPHA: TypedOption<f64> = number("alpha", POSITIVE, "2", "gain of the source in 1/s");

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate after feedback at these instants, from 1 Mb/s, with a rate factor of 100 Mb/s and packets of 1000 bits.
    fn rate_bps(rtt: Duration, instants_ms: &[u64]) -> f64 {
        let mut aecp = Aecp::new(AecpSourceConfig::default(), WindowConfig::default());
        (aecp.rate_bps, aecp.smoothed_rtt, aecp.packet_bits) = (Some(1e6), rtt, 1000.0);
        for ms in instants_ms {
            aecp.on_feedback(&Feedback {
                now: Time::from_nanos(ms * 1_000_000),
                header: CongestionHeader::Aecp(AecpHeader { rate_factor_bps: 100e6 }),
                smoothed_rtt: rtt,
                packet_bytes: 125,
                window_limited: true,
            });
        }
        aecp.rate_bps.expect("a rate was set")
    }

    #[track_caller]
    fn close(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 1e-12, "{got}, not {expected}");
    }

    #[test]
    fn on_feedback__closes_a_share_of_the_log_gap_each_round_trip() {
        // alpha tau = 2/s x 50 ms = 0.1 of ln 100: 10^6 x 100^0.1, once per round trip however often feedback arrives.
        let rtt = Duration::from_millis(50);
        close(rate_bps(rtt, &[0, 10, 49]), 1e6 * 100.0_f64.powf(0.1));
        close(rate_bps(rtt, &[0, 10, 50]), 1e6 * 100.0_f64.powf(0.19)); // 1 - 0.9^2
    }

    #[test]
    fn on_feedback__never_oversteps_after_a_long_round_trip() {
        // alpha tau = 2: 10^6 x 100^2 would be a hundred times the rate factor. The maximum is 0.9 of the logarithm.
        close(rate_bps(Duration::from_secs(1), &[0]), 1e6 * 100.0_f64.powf(0.9));
    }

    #[test]
    fn on_feedback__sends_at_least_a_packet_a_round_trip() {
        let mut aecp = Aecp::new(AecpSourceConfig::default(), WindowConfig::default());
        (aecp.smoothed_rtt, aecp.packet_bits, aecp.rate_factor_bps) = (Duration::from_millis(100), 1000.0, 1.0);
        close(aecp.update(1.0), 10_000.0);
    }
}
