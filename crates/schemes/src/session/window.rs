//! What all TCP-like rules share: a window, a slow start, and a rule that differs in two small functions.

use super::slow_start::SlowStart;
use super::{Ack, Allowance, CongestionController, Loss};

/// How a TCP-like rule differs from the others: its growth beyond slow start and its cut.
pub trait WindowRule: Send {
    /// Growth of the window, in packets, for one acknowledgement outside slow start and recovery. May be below zero
    /// for rules that watch the delay.
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64;

    /// The window after a loss, in packets.
    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64;

    /// The retransmission timer ran out at this window: ssthresh, in packets. The window itself becomes one packet.
    fn time_out(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        let _ = window_packets;
        // RFC 5681, Eq. 4: half of what was in flight.
        f64::from(loss.in_flight_packets) / 2.0
    }
}

/// The start of a TCP-like session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowConfig {
    /// First window, in packets. Two, as the papers' simulations had it (RFC 5681; RFC 6928 allows ten).
    pub initial_window_packets: f64,
    /// First ssthresh: infinite, so that slow start ends with the first loss.
    pub initial_ssthresh_packets: f64,
    /// Window at the most, in packets.
    pub max_window_packets: f64,
    /// How the window grows below ssthresh.
    pub slow_start: SlowStart,
    /// For rules that carry the fraction of a window from one round trip to the next: where they begin, 0 <= x < 1. Sessions
    /// that begin alike round alike.
    pub dither_packets: f64,
}

/// A TCP-like rule with its window.
#[derive(Clone, Debug)]
pub struct Windowed<R> {
    rule: R,
    config: WindowConfig,
    window_packets: f64,
    ssthresh_packets: f64,
    /// No loss since the start or since a time-out: the ns-2 form of limited slow start stays on.
    is_probing: bool,
}

impl<R: WindowRule> Windowed<R> {
    /// A session's controller at its start.
    pub fn new(rule: R, config: WindowConfig) -> Self {
        let limit = config.max_window_packets.max(1.0);
        Self {
            rule,
            config,
            window_packets: config.initial_window_packets.clamp(1.0, limit),
            ssthresh_packets: config.slow_start.first_ssthresh(config.initial_ssthresh_packets),
            is_probing: true,
        }
    }

    /// The rule itself.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    fn set(&mut self, window_packets: f64) {
        // NaN cannot come from a rule; were it to, one packet is the safe window.
        self.window_packets = window_packets.max(1.0).min(self.config.max_window_packets.max(1.0));
    }
}

impl<R: WindowRule> CongestionController for Windowed<R> {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let window = self.window_packets;
        let growth = if window < self.ssthresh_packets {
            self.config.slow_start.increase(window, ack)
        } else {
            let growth = self.rule.increase(window, ack);
            if self.is_probing { growth.max(self.config.slow_start.floor_while_probing(window, ack)) } else { growth }
        };
        self.set(window + growth);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let window = self.rule.decrease(self.window_packets, loss);
        // RFC 5681, Eq. 4: ssthresh is at least two packets.
        self.ssthresh_packets = window.max(2.0);
        self.is_probing = false;
        self.set(self.ssthresh_packets);
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.ssthresh_packets = self.rule.time_out(self.window_packets, loss).max(2.0);
        self.is_probing = true;
        self.set(1.0);
    }

    fn allowance(&self) -> Allowance {
        Allowance { window_packets: self.window_packets, pacing: None }
    }

    fn ssthresh_packets(&self) -> f64 {
        self.ssthresh_packets
    }

    fn set_window_packets(&mut self, window_packets: f64) {
        self.set(window_packets);
    }
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            initial_window_packets: 2.0,
            initial_ssthresh_packets: f64::INFINITY,
            max_window_packets: f64::INFINITY,
            slow_start: SlowStart::Standard,
            dither_packets: 0.0,
        }
    }
}
