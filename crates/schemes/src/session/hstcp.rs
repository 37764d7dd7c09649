//! HighSpeed TCP (RFC 3649): growth and cut depend on the window, so that large windows recover in reasonable time.

use super::new_reno::NewReno;
use super::tcp_options::{TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use super::{Ack, Loss, RuleError};
use crate::scheme::entry;
use crate::scheme::option::{TypedOption, UNIT, join, number, packets_only};
use crate::scheme::{OptionSpec, Options, Scheme};

/// HighSpeed TCP's rule; up to its low window it is NewReno.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HighSpeed {
    low_window_packets: f64,
    /// Loss rate at the low window.
    low_p: f64,
    /// ln p(w) = p_at_1 + p_slope ln w, through (low window, low_p) and (high window, high_p).
    p_slope: f64,
    p_at_1: f64,
    /// b(w) = b_at_1 + b_slope ln w, through (low window, 0.5) and (high window, high_decrease).
    b_slope: f64,
    b_at_1: f64,
}

/// Constants of HighSpeed TCP (RFC 3649 s5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HighSpeedConfig {
    /// Window up to which it is NewReno.
    pub low_window_packets: f64,
    /// Loss rate at the low window. TCP's own is 1.5 / low window^2, so that the line starts where TCP's ends, as in
    /// ns-2. RFC 3649 s5 rounds it to 10^-3.
    pub low_p: f64,
    /// Window to reach at `high_p`, above the low window.
    pub high_window_packets: f64,
    /// Loss rate at the high window, below that at the low window.
    pub high_p: f64,
    /// Share of the window removed after a loss at the high window.
    pub high_decrease: f64,
}

impl HighSpeed {
    /// A rule with these constants.
    pub fn new(config: HighSpeedConfig) -> Self {
        let HighSpeedConfig { low_window_packets: low, low_p, high_window_packets: high, high_p, high_decrease } =
            config;
        let span = libm::log(high) - libm::log(low);
        let p_slope = (libm::log(high_p) - libm::log(low_p)) / span;
        let b_slope = (high_decrease - 0.5) / span;
        Self {
            low_window_packets: low,
            low_p,
            p_slope,
            p_at_1: libm::log(low_p) - p_slope * libm::log(low),
            b_slope,
            b_at_1: 0.5 - b_slope * libm::log(low),
        }
    }

    /// b(w): share of the window removed after a loss (RFC 3649 s5).
    pub fn decrease_share(&self, window_packets: f64) -> f64 {
        if window_packets <= self.low_window_packets {
            return 0.5;
        }
        // RFC 3649, Appendix B: the line continues beyond the high window, 0.09 at 94 717 packets. It would reach zero
        // at about half a million, and the growth with it, which the RFC does not mention.
        (self.b_at_1 + self.b_slope * libm::log(window_packets)).max(MIN_DECREASE)
    }

    /// a(w): packets per round trip (RFC 3649 s5): w^2 p(w) 2 b(w) / (2 - b(w)).
    pub fn increase_packets(&self, window_packets: f64) -> f64 {
        if window_packets <= self.low_window_packets {
            return 1.0;
        }
        let b = self.decrease_share(window_packets);
        (window_packets * window_packets * self.line(window_packets) * 2.0 * b / (2.0 - b)).max(1.0)
    }

    /// p(w): the loss rate at which it keeps a mean window, a line in log-log (RFC 3649 s5). Wu 2007, after Eq. II.6,
    /// gives it as 0.0789 / w^1.1976. TCP's up to the low window.
    pub fn loss_rate(&self, window_packets: f64) -> f64 {
        if window_packets <= self.low_window_packets {
            return 1.5 / (window_packets * window_packets);
        }
        self.line(window_packets)
    }

    /// The response function, w(p): the mean window at a loss rate; about 0.12 / p^0.835 below TCP's loss rate at the
    /// low window (RFC 3649 s5).
    pub fn mean_window_packets(&self, loss_rate: f64) -> f64 {
        if loss_rate >= self.low_p {
            return (1.5 / loss_rate).sqrt();
        }
        self.line_window_packets(loss_rate)
    }

    /// The mean window on the line, also in TCP's range.
    pub fn line_window_packets(&self, loss_rate: f64) -> f64 {
        libm::exp((libm::log(loss_rate) - self.p_at_1) / self.p_slope)
    }

    /// p(w) on the line, also below the low window.
    fn line(&self, window_packets: f64) -> f64 {
        libm::exp(self.p_at_1 + self.p_slope * libm::log(window_packets))
    }
}

/// Minimum share of the window that a loss removes, for any window: a hundredth, so that there is a cut.
const MIN_DECREASE: f64 = 0.01;

impl Default for HighSpeed {
    /// With RFC 3649's constants.
    fn default() -> Self {
        Self::new(HighSpeedConfig::default())
    }
}

impl HighSpeedConfig {
    /// The constants as printed in RFC 3649, with 10^-3 at the low window, as in its tables.
    pub fn rfc_3649() -> Self {
        Self { low_p: 1e-3, ..Self::default() }
    }

    /// The defaults from another low window on, with TCP's loss rate there.
    pub fn from_low_window(low_window_packets: f64) -> Self {
        Self { low_window_packets, low_p: 1.5 / (low_window_packets * low_window_packets), ..Self::default() }
    }
}

impl WindowRule for HighSpeed {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.increase_packets(window_packets) * f64::from(ack.acked_packets) / window_packets
    }

    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        if window_packets <= self.low_window_packets {
            return NewReno.decrease(window_packets, loss);
        }
        window_packets * (1.0 - self.decrease_share(window_packets))
    }
}

impl Default for HighSpeedConfig {
    /// RFC 3649 s5 and ns-2: 38, TCP's loss rate there, 83 000, 10^-7, 0.1.
    fn default() -> Self {
        Self::of(&Options::default())
    }
}

impl HighSpeedConfig {
    /// The options that were set, else the defaults.
    pub fn from_options(options: &Options) -> Result<Self, RuleError> {
        let config = Self::of(options);
        let Self { low_window_packets: low_window, low_p, high_window_packets: high_window, high_p, .. } = config;
        if high_window <= low_window || high_p >= low_p {
            return Err(RuleError::HighSpeedLine { low_window, low_p, high_window, high_p });
        }
        Ok(config)
    }

    fn of(options: &Options) -> Self {
        let low_window_packets = LOW_WINDOW.of(options) as f64;
        Self {
            low_window_packets,
            low_p: 1.5 / (low_window_packets * low_window_packets),
            high_window_packets: HIGH_WINDOW.of(options) as f64,
            high_p: HIGH_P.of(options),
            high_decrease: HIGH_DECREASE.of(options),
        }
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "hstcp",
    "HighSpeed TCP: increase and decrease depend on the window",
    "RFC 3649",
    &OPTIONS,
    |options, window| Ok(windowed(HighSpeed::new(HighSpeedConfig::from_options(options)?), window)),
);
const OPTIONS: [OptionSpec; TCP_OPTIONS + 4] =
    join(TCP, [LOW_WINDOW.spec(), HIGH_WINDOW.spec(), HIGH_P.spec(), HIGH_DECREASE.spec()]);
const LOW_WINDOW: TypedOption<u64> = packets_only("low_window", "38 packets", "standard TCP up to this window");
const HIGH_WINDOW: TypedOption<u64> = packets_only("high_window", "83000 packets", "window at the loss rate high_p");
const HIGH_P: TypedOption<f64> = number("high_p", UNIT, "1e-7", "loss rate at high_window");
const HIGH_DECREASE: TypedOption<f64> =
    number("high_decrease", UNIT, "0.1", "fraction removed at a loss at high_window");

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    fn rule() -> HighSpeed {
        HighSpeed::new(HighSpeedConfig::default())
    }

    #[test]
    fn increase_packets__at_the_ends() {
        assert_eq!(rule().increase_packets(38.0), 1.0);
        // 83000^2 x 1e-7 x 2 x 0.1 / 1.9 = 72.5
        assert!((rule().increase_packets(83_000.0) - 72.515_789).abs() < 1e-5);
    }

    #[test]
    fn increase_packets__close_to_the_table_of_rfc_3649() {
        // RFC 3649, Appendix B: w up to which a(w) holds, a(w), b(w). The table rounds up and starts from p = 10^-3, 4
        // % below TCP's own response.
        for (window, a, b) in [
            (118.0, 2.0, 0.44),
            (221.0, 3.0, 0.41),
            (347.0, 4.0, 0.38),
            (495.0, 5.0, 0.37),
            (663.0, 6.0, 0.35),
            (851.0, 7.0, 0.34),
            (1058.0, 8.0, 0.33),
            (1284.0, 9.0, 0.32),
            (1529.0, 10.0, 0.31),
        ] {
            let (ours_a, ours_b) = (rule().increase_packets(window), rule().decrease_share(window));
            assert!((ours_a - a).abs() <= 0.05 * a + 1.0, "a({window}) = {ours_a}, table {a}");
            assert!((ours_b - b).abs() <= 0.01, "b({window}) = {ours_b}, table {b}");
        }
    }

    #[test]
    fn mean_window_packets__meets_the_table_of_rfc_3649() {
        // RFC 3649, Table 2: loss rate, packets. Its slopes are rounded.
        for (p, w) in [(1e-3, 38.0), (1e-4, 263.0), (1e-5, 1795.0), (1e-6, 12_279.0), (1e-7, 83_981.0)] {
            let ours = rule().mean_window_packets(p);
            assert!((ours / w - 1.0).abs() < 0.04, "{ours} packets at {p}, table {w}");
        }
        let rfc = HighSpeed::new(HighSpeedConfig::rfc_3649());
        for (p, w) in [(1e-5, 1795.0), (1e-8, 574_356.0)] {
            let ours = rfc.mean_window_packets(p);
            assert!((ours / w - 1.0).abs() < 0.02, "{ours} packets at {p}, table {w}");
        }
        for w in [20.0, 38.0, 39.0, 1000.0, 83_000.0, 1e6] {
            let p = rule().loss_rate(w);
            assert!((rule().mean_window_packets(p) / w - 1.0).abs() < 1e-9, "{w} packets at {p}");
        }
        // ns-2 at w = 1000: p = 1.0388e-3 x (1000 / 38)^-1.2028
        assert!((rule().loss_rate(1000.0) - 2.0337e-5).abs() < 1e-9, "{}", rule().loss_rate(1000.0));
    }

    #[test]
    fn decrease__uses_the_share_of_the_window() {
        let window = rule().decrease(83_000.0, &test_loss(83_000));
        assert!((window - 74_700.0).abs() < 1e-6, "{window}"); // 0.9 x 83 000
        assert_eq!(rule().decrease(30.0, &test_loss(30)), 15.0);
    }

    #[test]
    fn increase_packets__beyond_high_window_follows_the_table() {
        // RFC 3649, Appendix B: the last rows of Table 12, w, a(w) and b(w). Its p(w) is rounded to 0.078 / w^1.2, 2 to
        // 3 % below the line through its own two points.
        for (window, a, b) in
            [(75_401.0, 69.0, 0.10), (84_035.0, 71.0, 0.10), (89_053.0, 72.0, 0.10), (94_717.0, 73.0, 0.09)]
        {
            for rule in [rule(), HighSpeed::new(HighSpeedConfig::rfc_3649())] {
                let (ours_a, ours_b) = (rule.increase_packets(window), rule.decrease_share(window));
                assert!((ours_a / a - 1.0).abs() < 0.03, "a({window}) = {ours_a}, table {a}");
                assert!((ours_b - b).abs() <= 0.0051, "b({window}) = {ours_b}, table {b}");
            }
            // With the rounded p(w) the row is the table's own.
            let b_w = rule().decrease_share(window);
            let rounded = window * window * 0.078 / window.powf(1.2) * 2.0 * b_w / (2.0 - b_w);
            assert!((rounded - a).abs() < 0.5, "{rounded}, table {a}");
        }
    }

    #[test]
    fn beyond_the_high_window__still_grows_and_shrinks() {
        let mut rule = rule();
        assert_eq!(rule.decrease_share(1e6), MIN_DECREASE);
        assert!(rule.increase(1e6, &test_ack(1)) > 0.0);
    }
}
