//! BIC-TCP (Xu, Harfoush & Rhee 2004, section VI): binary search for the window that the network can carry, additive
//! increase if that is far away, slow probing beyond it.

use super::event::{Ack, Loss};
use super::new_reno::NewReno;
use super::tcp_options::{TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use crate::scheme::entry;
use crate::scheme::option::{POSITIVE, TypedOption, UNIT, join, number, packets_only, word};
use crate::scheme::{OptionSpec, Options, Scheme};

/// BIC's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bic {
    config: BicConfig,
    /// The window at the last loss, or the midpoint of fast convergence; infinite before the first loss.
    max_packets: f64,
}

/// Constants of BIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BicConfig {
    /// Maximum growth in packets per round trip.
    pub s_max_packets: f64,
    /// Minimum growth in packets per round trip.
    pub s_min_packets: f64,
    /// Share of the window removed after a loss.
    pub beta: f64,
    /// Window below which it is NewReno.
    pub low_window_packets: f64,
    /// Growth as a function of the distance to the old maximum.
    pub form: BicForm,
}

/// The two forms of BIC in the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BicForm {
    /// The pseudo-code of Xu et al. 2004: half the gap per round trip; beyond the old maximum, by the excess over it.
    #[default]
    Paper,
    /// Linux's: a quarter of the gap per round trip, a plateau of 0.2 packets around the old maximum, a third of the
    /// excess beyond it; before the first loss at least 5 % per round trip.
    Linux,
}

impl Bic {
    /// A rule with these constants.
    pub fn new(config: BicConfig) -> Self {
        Self { config, max_packets: f64::INFINITY }
    }

    /// Growth in packets per round trip at this window.
    fn step(&self, window_packets: f64) -> f64 {
        let BicConfig { s_max_packets: most, s_min_packets: least, form, .. } = self.config;
        let gap = self.max_packets - window_packets;
        match form {
            // Xu et al. 2004, VI.C. At the old maximum itself the step is S_min.
            BicForm::Paper => (if gap > 0.0 { gap / 2.0 } else { -gap }).min(most).max(least),
            BicForm::Linux if gap > 0.0 => {
                let step = gap / LINUX_SEARCH;
                let step = if step <= 1.0 { LINUX_PLATEAU } else { step.min(most) };
                if gap.is_finite() { step } else { step.max(0.05 * window_packets) }
            }
            BicForm::Linux if -gap < LINUX_SEARCH => LINUX_PLATEAU,
            BicForm::Linux => (-gap / (LINUX_SEARCH - 1.0)).min(most),
        }
    }
}

/// Linux closes one fourth of the gap per round trip.
const LINUX_SEARCH: f64 = 4.0;
/// Linux's growth next to the old maximum: 4 / 20 packets per round trip.
const LINUX_PLATEAU: f64 = 0.2;

impl WindowRule for Bic {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        if window_packets < self.config.low_window_packets {
            return NewReno.increase(window_packets, ack);
        }
        self.step(window_packets) * f64::from(ack.acked_packets) / window_packets
    }

    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        let BicConfig { beta, low_window_packets, .. } = self.config;
        if window_packets < low_window_packets {
            return NewReno.decrease(window_packets, loss);
        }
        // Xu et al. 2004, VI.C: fast convergence uses the window before the cut. The first loss sets the maximum.
        let is_shrinking = self.max_packets.is_finite() && window_packets < self.max_packets;
        self.max_packets = if is_shrinking { window_packets * (2.0 - beta) / 2.0 } else { window_packets };
        window_packets * (1.0 - beta)
    }
}

impl BicConfig {
    /// Linux's constants: S_max 16, a fifth removed after a loss.
    pub fn linux() -> Self {
        Self { s_max_packets: 16.0, beta: 1.0 - 819.0 / 1024.0, form: BicForm::Linux, ..Self::default() }
    }
}

impl Default for BicConfig {
    /// Xu et al. 2004, section VII: S_max 32, S_min 0.01, beta 0.125, low window 14.
    fn default() -> Self {
        let none = &Options::default();
        Self {
            s_max_packets: S_MAX.of(none),
            s_min_packets: S_MIN.of(none),
            beta: BETA.of(none),
            low_window_packets: LOW_WINDOW.of(none) as f64,
            form: BicForm::Paper,
        }
    }
}

impl BicConfig {
    /// The options that were set, else the defaults of the form.
    pub fn from_options(options: &Options) -> Self {
        let default = if CONSTANTS.of(options) == "linux" { Self::linux() } else { Self::default() };
        Self {
            s_max_packets: S_MAX.given(options).unwrap_or(default.s_max_packets),
            s_min_packets: S_MIN.given(options).unwrap_or(default.s_min_packets),
            beta: BETA.given(options).unwrap_or(default.beta),
            low_window_packets: LOW_WINDOW.given(options).map_or(default.low_window_packets, |packets| packets as f64),
            form: default.form,
        }
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "bic",
    "BIC-TCP: binary search for the window before the last loss",
    "Xu et al. 2004, section VI",
    &OPTIONS,
    |options, window| Ok(windowed(Bic::new(BicConfig::from_options(options)), window)),
);
/// Xu et al., in March 2004: ns-2 with one second, like TCP.
const OPTIONS: [OptionSpec; TCP_OPTIONS + 5] =
    join(TCP, [S_MAX.spec(), S_MIN.spec(), BETA.spec(), LOW_WINDOW.spec(), CONSTANTS.spec()]);
const CONSTANTS: TypedOption<&str> = word(
    "constants",
    &["paper", "linux"],
    "paper",
    "the paper's constants or those of the Linux kernel, for options not set",
);
const S_MAX: TypedOption<f64> = number("s_max", POSITIVE, "32", "maximum increment per RTT in packets");
const S_MIN: TypedOption<f64> = number("s_min", POSITIVE, "0.01", "minimum increment per RTT in packets");
const BETA: TypedOption<f64> = number("beta", UNIT, "0.125", "fraction removed at a loss");
const LOW_WINDOW: TypedOption<u64> = packets_only("low_window", "14 packets", "standard TCP up to this window");

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    #[test]
    fn decrease__remembers_the_maximum_and_converges_fast() {
        let mut bic = Bic::new(BicConfig::default());
        assert_eq!(bic.decrease(1000.0, &test_loss(1000)), 875.0);
        assert_eq!(bic.max_packets, 1000.0);
        // A loss below the old maximum: aim at the middle of the cut, 950 x (2 - 0.125) / 2 = 890.625.
        assert_eq!(bic.decrease(950.0, &test_loss(950)), 831.25);
        assert_eq!(bic.max_packets, 890.625);
    }

    #[test]
    fn step__is_additive_then_a_binary_search_then_probing() {
        let mut bic = Bic::new(BicConfig::default());
        bic.decrease(1000.0, &test_loss(1000));
        assert_eq!(bic.step(875.0), 32.0); // 125 / 2 = 62.5, at most 32
        assert_eq!(bic.step(940.0), 30.0);
        assert_eq!(bic.step(999.0), 0.5);
        assert_eq!(bic.step(999.99), 0.01); // at least S_min
        assert_eq!(bic.step(1000.0), 0.01); // restart of the probing
        assert_eq!(bic.step(1000.5), 0.5); // doubles per round trip
        assert_eq!(bic.step(1100.0), 32.0);
    }

    #[test]
    fn step__linux_form() {
        let mut bic = Bic::new(BicConfig::linux());
        assert_eq!(bic.step(100.0), 16.0); // before the first loss: 5 % would be 5, S_max is more
        assert_eq!(bic.step(1000.0), 50.0); // 5 % of 1000
        bic.decrease(1000.0, &test_loss(1000));
        assert_eq!(bic.step(800.0), 16.0); // 200 / 4 = 50, at most 16
        assert_eq!(bic.step(960.0), 10.0);
        assert_eq!(bic.step(997.0), 0.2);
        assert_eq!(bic.step(1003.0), 0.2);
        assert_eq!(bic.step(1030.0), 10.0); // 30 / 3
        assert_eq!(bic.step(1100.0), 16.0);
    }

    #[test]
    fn low_window__is_new_reno() {
        let mut bic = Bic::new(BicConfig::default());
        assert_eq!(bic.increase(10.0, &test_ack(1)), 0.1);
        assert_eq!(bic.decrease(10.0, &test_loss(10)), 5.0);
    }
}
