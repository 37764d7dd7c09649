//! CUBIC's response (RFC 9438, section 5).

use fairwave_units::Duration;

use super::aimd;
use crate::session::CubicConfig;

impl CubicConfig {
    /// Mean window at a loss rate: (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4) (RFC 9438, Eq. 5), 1.054
    /// (RTT^3 / p^3)^(1/4) for the defaults; that of TCP if it is larger (s4.3).
    pub fn mean_window_packets(&self, loss_rate: f64, rtt: Duration) -> f64 {
        let Self { c, beta, .. } = *self;
        let cubic =
            libm::pow(c * (3.0 + beta) / (4.0 * (1.0 - beta)), 0.25) * libm::pow(rtt.as_secs_f64() / loss_rate, 0.75);
        // RFC 9438, Eq. 4: additive increase by alpha keeps TCP's mean window with CUBIC's cut.
        let alpha = 3.0 * (1.0 - beta) / (1.0 + beta);
        cubic.max(aimd(loss_rate, alpha, 1.0 - beta))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{close, reno};
    use super::*;

    #[test]
    fn mean_window_packets__meets_the_table_of_the_rfc() {
        let rule = CubicConfig::default();
        // RFC 8312, Table 1 (RTT 0.1 s, C = 0.4): p, packets; 1.054 x (0.1 / 10^-5)^0.75 = 1054.
        for (p, w) in [(1e-3, 38.0), (1e-4, 187.0), (1e-5, 1054.0), (1e-6, 5926.0), (1e-7, 33_325.0)] {
            close(rule.mean_window_packets(p, Duration::from_millis(100)), w, 0.02);
        }
    }

    #[test]
    fn mean_window_packets__is_at_least_that_of_tcp() {
        let rule = CubicConfig::default();
        // RFC 8312, Table 2 (RTT 0.01 s, C = 0.4): TCP's windows down to 10^-5, 379 packets.
        for p in [1e-2, 1e-3, 1e-4, 1e-5] {
            close(rule.mean_window_packets(p, Duration::from_millis(10)), reno(p), 1e-12);
        }
    }
}
