//! Scalable TCP's response (Kelly 2003; Wu 2007, Eqs. II.7 and II.8).

use super::{aimd_on_loss, reno, reno_loss_rate};
use crate::session::ScalableConfig;

impl ScalableConfig {
    /// Mean window at a loss rate: (a / b)(1 - b / 2) / p, which is 0.075 / p; Reno's if that is below the low window.
    pub fn mean_window_packets(&self, loss_rate: f64) -> f64 {
        let scalable = self.increase_packets / self.decrease * (1.0 - self.decrease / 2.0) / loss_rate;
        if scalable > self.low_window_packets { scalable } else { reno(loss_rate) }
    }

    /// Loss rate at which it keeps a mean window above the low one: (a / (b w))(1 - b / 2) (Wu 2007, after Eq. II.8).
    pub fn loss_rate(&self, window_packets: f64) -> f64 {
        if window_packets <= self.low_window_packets {
            return reno_loss_rate(window_packets);
        }
        self.increase_packets / (self.decrease * window_packets) * (1.0 - self.decrease / 2.0)
    }

    /// Window after the acknowledgement of one packet: w + a (Wu 2007, Eq. II.7).
    pub fn window_after_ack(&self, window_packets: f64) -> f64 {
        window_packets + self.increase_packets
    }

    /// Window after a loss: w - b w (Wu 2007, Eq. II.8).
    pub fn window_after_loss(&self, window_packets: f64) -> f64 {
        aimd_on_loss(window_packets, self.decrease)
    }

    /// RTTs after a loss to recover the previous window: ln(1 / (1 - b)) / ln(1 + a), independent of the rate.
    pub fn recovery_rtts(&self) -> f64 {
        -libm::log(1.0 - self.decrease) / libm::log1p(self.increase_packets)
    }
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn mean_window_packets__is_0_075_over_p_above_the_low_window() {
        let rule = ScalableConfig::default();
        close(rule.mean_window_packets(1e-5), 7500.0, 1e-12);
        close(rule.mean_window_packets(1e-2), reno(1e-2), 1e-15);
        close(rule.loss_rate(7500.0), 1e-5, 1e-12);
        close(rule.recovery_rtts(), 13.42, 1e-3); // ln(800/700) / ln 1.01
    }
}
