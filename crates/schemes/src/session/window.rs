//! A session's congestion window.

use super::slow_start::SlowStart;

/// The start of a TCP-like session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowConfig {
    /// First window, in packets. Two, as in the papers' simulations (RFC 5681; RFC 6928 allows ten).
    pub initial_window_packets: f64,
    /// First ssthresh: infinite, so that slow start ends with the first loss.
    pub initial_ssthresh_packets: f64,
    /// Maximum window, in packets.
    pub max_window_packets: f64,
    /// How the window grows below ssthresh.
    pub slow_start: SlowStart,
    /// Initial fraction of rules that carry the fraction of a window from one round trip to the next, 0 <= x < 1.
    /// Sessions with equal fractions round together.
    pub dither_packets: f64,
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

/// A session's congestion window, its bounds, and ssthresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionWindow {
    packets: f64,
    least_packets: f64,
    most_packets: f64,
    pub(super) ssthresh_packets: f64,
}

impl CongestionWindow {
    /// A session's window at its start: at least one packet.
    pub fn new(config: &WindowConfig) -> Self {
        Self::at_least(1.0, config)
    }

    /// A session's window at its start, at least `least_packets`.
    pub(super) fn at_least(least_packets: f64, config: &WindowConfig) -> Self {
        let most_packets = config.max_window_packets.max(least_packets);
        Self {
            packets: config.initial_window_packets.clamp(least_packets, most_packets),
            least_packets,
            most_packets,
            ssthresh_packets: config.initial_ssthresh_packets,
        }
    }

    /// The window, in packets.
    pub fn packets(&self) -> f64 {
        self.packets
    }

    /// The maximum window, in packets; infinite without a bound.
    pub fn most_packets(&self) -> f64 {
        self.most_packets
    }

    /// Sets the window, in packets, within its bounds.
    pub fn set(&mut self, packets: f64) {
        // NaN cannot come from a rule; if it did, the minimum window would be the safe one.
        self.packets = packets.max(self.least_packets).min(self.most_packets);
    }

    /// Cuts the window after a loss; ssthresh has the same value.
    pub fn cut_to(&mut self, packets: f64) {
        self.set_ssthresh(packets);
        self.set(self.ssthresh_packets);
    }

    /// Undoes a cut for a loss that did not happen: the window and ssthresh are at least those before it (Linux,
    /// tcp_undo_cwnd_reduction).
    pub fn undo(&mut self, before: &Self) {
        self.set(self.packets.max(before.packets));
        self.ssthresh_packets = self.ssthresh_packets.max(before.ssthresh_packets);
    }

    /// Restarts with the minimum window after a time-out; slow start ends at this ssthresh.
    pub fn begin_again(&mut self, ssthresh_packets: f64) {
        self.set_ssthresh(ssthresh_packets);
        self.set(self.least_packets);
    }

    pub(super) fn set_ssthresh(&mut self, packets: f64) {
        // RFC 5681, Eq. 4: ssthresh is at least two packets.
        self.ssthresh_packets = packets.max(2.0);
    }
}
