//! H-TCP's response on a path whose round-trip time does not change.

use fairwave_units::Duration;

use super::{passes, reno};
use crate::session::HtcpConfig;

impl HtcpConfig {
    /// Mean window at a loss rate: packets of a cycle over its RTTs, for a cycle of 1/p packets.
    ///
    /// The round-trip time is assumed to be constant, so that the share kept after a loss is its maximum (0.8): with a
    /// queue it would be the ratio of the minimum to the maximum round-trip time. The growth per RTT, integrated over
    /// time, is a polynomial (Leith & Shorten 2004, Eq. 3).
    pub fn mean_window_packets(&self, loss_rate: f64, rtt: Duration) -> f64 {
        let (target, rtt_s) = (1.0 / loss_rate, rtt.as_secs_f64());
        if !target.is_finite() || target <= 0.0 || rtt_s <= 0.0 {
            return reno(loss_rate);
        }
        let packets = |cycle_s: f64| {
            let (grown, area) = self.growth(cycle_s);
            // The window at the start is kept / (1 - kept) times the growth, which is grown / rtt; packets / RTT is the
            // integral of the window.
            let kept = self.kept.1;
            (kept / (1.0 - kept) * grown * cycle_s + area) / (rtt_s * rtt_s)
        };
        // Growth is at least one packet an RTT: a cycle is at most as long as TCP's with the same cut.
        let cycle_s = passes(target, 1e-9, rtt_s * target.max(1.0), packets);
        packets(cycle_s) * rtt_s / cycle_s
    }

    /// Integral, over `seconds` after a loss, of the packets added per round trip, and the integral of that.
    fn growth(&self, seconds: f64) -> (f64, f64) {
        let scale = 2.0 * (1.0 - self.kept.1);
        // With x the time beyond the low period: scale (1 + 10 x + x^2 / 4), but at least one, up to x = `linear`.
        let low_s = self.low_period.as_secs_f64();
        let linear = 2.0 * ((100.0 - (1.0 - 1.0 / scale)).sqrt() - 10.0).max(0.0);
        let turn_s = low_s + linear;
        if seconds <= turn_s {
            return (seconds, seconds * seconds / 2.0);
        }
        let once = |x: f64| scale * (x + 5.0 * x * x + x * x * x / 12.0);
        let twice = |x: f64| scale * (x * x / 2.0 + 5.0 * x * x * x / 3.0 + x * x * x * x / 48.0);
        let (x, beyond_s) = (seconds - low_s, seconds - turn_s);
        let offset = turn_s - once(linear);
        (once(x) + offset, turn_s * turn_s / 2.0 + beyond_s * offset + twice(x) - twice(linear))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{aimd, close};
    use super::*;

    #[test]
    fn growth__is_the_integral_of_the_rule() {
        let rule = HtcpConfig::default();
        let at = |seconds: f64| {
            let x = (seconds - 1.0).max(0.0);
            if seconds <= 1.0 { 1.0 } else { (0.4 * (1.0 + 10.0 * x + x * x / 4.0)).max(1.0) }
        };
        let (mut grown, mut area, step) = (0.0, 0.0, 1e-4);
        for k in 0..50_000 {
            area += (grown + at((f64::from(k) + 0.5) * step) * step / 2.0) * step;
            grown += at((f64::from(k) + 0.5) * step) * step;
        }
        close(rule.growth(5.0).0, grown, 1e-6);
        close(rule.growth(5.0).1, area, 1e-6);
        assert_eq!(rule.growth(0.5), (0.5, 0.125));
    }

    #[test]
    fn mean_window_packets__is_aimd_within_the_low_period() {
        // A cycle of sqrt(2 x 0.2 / 1.8 / p) = 15 RTTs at 1e-3: 0.15 s of 10 ms.
        let (rule, rtt) = (HtcpConfig::default(), Duration::from_millis(10));
        close(rule.mean_window_packets(1e-3, rtt), aimd(1e-3, 1.0, 0.2), 1e-9);
    }
}
