//! Response functions: the mean window of a loss-based scheme as a function of the loss rate, and the arithmetic of Wu
//! 2007, section II.4.
//!
//! [`Response`] is the function of a scheme with its options; [`window`] that of a scheme with its defaults. The
//! constants are those of the rules themselves ([`crate::session`]), and `tests/response.rs` drives the rules against
//! the functions.
//!
//! Windows are in packets, loss rates are loss events per packet (0 < p < 1). Outside that range the result is that of
//! the formula (infinite, NaN), never a panic. They use logarithms and powers, whose last bits may differ between
//! machines: they are for tables and plots, not for the state of a simulation.

mod arithmetic;
mod bic;
mod cubic;
mod htcp;
mod scalable;

use fairwave_units::Duration;
use thiserror::Error;

use crate::scheme::{self, Options};
use crate::session::{
    AimdConfig, BicConfig, BicForm, CubicConfig, HighSpeed, HighSpeedConfig, HtcpConfig, RuleError, ScalableConfig,
};

pub use arithmetic::{
    aimd, aimd_on_ack, aimd_on_loss, aimd_utilisation, bandwidth_delay_bytes, bandwidth_delay_packets, error_spacing_s,
    packet_spacing_s, reno, reno_loss_rate, reno_loss_rate_for, reno_rate_bps, reno_recovery_s, rtt_of_recovery_s,
};

/// The response function of a scheme by its name: mean window in packets at a loss rate, with the scheme's defaults.
/// `None` for schemes whose window also depends on other quantities.
pub fn window(scheme: &str, loss_rate: f64) -> Option<f64> {
    let response = Response::new(scheme, &Options::default()).ok()?;
    (!response.depends_on_rtt()).then(|| response.window_packets(loss_rate, Duration::ZERO))
}

/// The response function of a loss-based scheme with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// Additive increase, multiplicative decrease; TCP itself is AIMD(1, 1/2).
    Aimd(AimdConfig),
    /// HighSpeed TCP.
    HighSpeed(HighSpeed),
    /// Scalable TCP.
    Scalable(ScalableConfig),
    /// BIC, as analysed in its paper.
    Bic(BicConfig),
    /// CUBIC.
    Cubic(CubicConfig),
    /// H-TCP on a path with a constant round-trip time.
    Htcp(HtcpConfig),
}

/// The reason why a scheme has no response function.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NoResponse {
    /// Unknown scheme, or one without a window.
    #[error("\"{0}\" has no response function")]
    Unknown(String),
    /// Its window follows the delay.
    #[error("\"{0}\" has no response function: its window depends on the delay, not on the loss rate")]
    Delay(&'static str),
    /// BIC in the form of Linux.
    #[error("\"bic\" with constants = \"linux\" has no closed-form response function: use the paper's constants")]
    Linux,
    /// The options contradict each other.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl Response {
    /// The response function of a scheme with the given options.
    pub fn new(scheme: &str, options: &Options) -> Result<Self, NoResponse> {
        Ok(match scheme {
            "newreno" | "sack" => Self::Aimd(AimdConfig { increase_packets: 1.0, decrease: 0.5 }),
            "aimd" => Self::Aimd(AimdConfig::from_options(options)),
            "hstcp" => Self::HighSpeed(HighSpeed::new(HighSpeedConfig::from_options(options)?)),
            "stcp" => Self::Scalable(ScalableConfig::from_options(options)),
            "bic" => match BicConfig::from_options(options) {
                config if config.form == BicForm::Paper => Self::Bic(config),
                _ => return Err(NoResponse::Linux),
            },
            "cubic" => Self::Cubic(CubicConfig::from_options(options)),
            "htcp" => Self::Htcp(HtcpConfig::default()),
            "vegas" => return Err(NoResponse::Delay("vegas")),
            "fast" => return Err(NoResponse::Delay("fast")),
            _ => return Err(NoResponse::Unknown(scheme.to_owned())),
        })
    }

    /// The schemes that have one with their defaults, in the order of the registry.
    pub fn schemes() -> impl Iterator<Item = &'static str> {
        let has_one = |name: &&'static str| Self::new(name, &Options::default()).is_ok();
        scheme::schemes().iter().map(|scheme| scheme.name).filter(has_one)
    }

    /// Whether an option of the scheme changes the curve. The others concern the start and the sender.
    pub fn takes(scheme: &str, option: &str) -> bool {
        let has = |scheme: &str| scheme::find(scheme).is_some_and(|scheme| scheme.option(option).is_some());
        // Options of every TCP-like sender do not concern the rule.
        has(scheme) && !has("sack")
    }

    /// Whether the window also depends on the round-trip time, because growth follows a clock.
    pub const fn depends_on_rtt(&self) -> bool {
        matches!(self, Self::Cubic(_) | Self::Htcp(_))
    }

    /// Mean window in packets at a loss rate. The round-trip time matters if [`Self::depends_on_rtt`].
    pub fn window_packets(&self, loss_rate: f64, rtt: Duration) -> f64 {
        match self {
            Self::Aimd(config) => aimd(loss_rate, config.increase_packets, config.decrease),
            Self::HighSpeed(rule) => rule.mean_window_packets(loss_rate),
            Self::Scalable(config) => config.mean_window_packets(loss_rate),
            Self::Bic(config) => config.mean_window_packets(loss_rate),
            Self::Cubic(config) => config.mean_window_packets(loss_rate, rtt),
            Self::Htcp(config) => config.mean_window_packets(loss_rate, rtt),
        }
    }
}

/// The point between `low` and `high`, both above zero, at which a growing function passes `target`; the nearer end if
/// it does not. Bisects on a logarithmic scale.
fn passes(target: f64, mut low: f64, mut high: f64, growing: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = low.sqrt() * high.sqrt();
        if growing(middle) < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
fn close(ours: f64, expected: f64, share: f64) {
    assert!((ours / expected - 1.0).abs() <= share, "{ours} is not within {share} of {expected}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::OptionValue;

    #[test]
    fn window__exists_for_schemes_that_follow_the_loss_rate() {
        assert_eq!(window("hstcp", 1e-5), Some(HighSpeed::default().mean_window_packets(1e-5)));
        assert_eq!(window("aimd", 1e-6), Some(aimd(1e-6, 32.0, 0.125)));
        for other in ["vegas", "fast", "cubic", "htcp", "gtp", "cbr", "no-such"] {
            assert_eq!(window(other, 1e-5), None, "{other}");
        }
    }

    #[test]
    fn schemes__are_the_loss_based_ones() {
        let names: Vec<_> = Response::schemes().collect();
        assert_eq!(names, ["newreno", "sack", "hstcp", "htcp", "stcp", "aimd", "bic", "cubic"]);
    }

    #[test]
    fn new__options_move_the_curve() {
        let with = |scheme: &str, name: &str, value: f64| {
            let mut options = Options::default();
            let option = crate::scheme::find(scheme).unwrap().option(name).unwrap();
            options.set(option, OptionValue::Number(value));
            Response::new(scheme, &options).unwrap().window_packets(1e-5, Duration::from_millis(100))
        };
        close(with("aimd", "increase", 8.0), aimd(1e-5, 8.0, 0.125), 1e-15);
        close(with("stcp", "increase", 0.02), 15_000.0, 1e-12); // 0.02 / 0.125 x 0.9375 / 1e-5
        assert!(with("bic", "s_max", 64.0) > with("bic", "s_max", 32.0));
        assert!(with("cubic", "c", 4.0) > with("cubic", "c", 0.4));
        assert!(with("hstcp", "high_p", 1e-6) > with("hstcp", "high_p", 1e-7));
    }

    #[test]
    fn takes__only_the_rules_own_options() {
        assert!(Response::takes("bic", "s_max"));
        assert!(!Response::takes("bic", "initial_window"));
        assert!(!Response::takes("newreno", "sack"));
        assert!(!Response::takes("newreno", "s_max"));
    }

    #[test]
    fn new__explains_missing_functions() {
        let no = |scheme: &str, options: &Options| Response::new(scheme, options).unwrap_err().to_string();
        assert!(no("vegas", &Options::default()).contains("delay"));
        assert!(no("gtp", &Options::default()).contains("\"gtp\" has no response function"));
        let mut linux = Options::default();
        linux.set(crate::scheme::find("bic").unwrap().option("constants").unwrap(), OptionValue::Word("linux"));
        assert!(no("bic", &linux).contains("linux"));
    }
}
