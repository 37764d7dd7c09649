//! Controllers by name, with the options that a scenario names.

use thiserror::Error;

use super::{
    Aecp, AecpSourceConfig, Aimd, AimdConfig, Bic, BicConfig, CongestionController, Cubic, CubicConfig, Fast,
    FastConfig, HighSpeed, HighSpeedConfig, Htcp, HtcpConfig, NewReno, Rcp, Scalable, ScalableConfig, SlowStart, Vcp,
    VcpSourceConfig, Vegas, VegasConfig, WindowConfig, WindowRule, Windowed, Xcp,
};
use crate::scheme::{self, OptionValue, Options};

/// Why there is no controller.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RuleError {
    /// The name is not that of a window-based session rule.
    #[error("\"{0}\" is no window-based session rule")]
    Unknown(String),
    /// HighSpeed TCP's line has to fall: a larger window at a lower loss rate.
    #[error(
        "hstcp's high_window of {high_window} packets at loss rate high_p = {high_p} must lie above its low_window of \
         {low_window} packets, and high_p below TCP's loss rate there, {low_p}"
    )]
    HighSpeedLine {
        /// The low window, packets.
        low_window: f64,
        /// TCP's loss rate there.
        low_p: f64,
        /// The high window, packets.
        high_window: f64,
        /// The loss rate there.
        high_p: f64,
    },
}

/// A new controller of the scheme `name` ("newreno", "sack", "hstcp", "htcp", "stcp", "aimd", "bic", "cubic", "vegas",
/// "fast"; "xcp", "ixcp", "pxcp", "aecp", "vcp", "rcp", which follow links) with the options that were named for it; the others have the scheme's defaults.
pub fn controller(name: &str, options: &Options) -> Result<Box<dyn CongestionController>, RuleError> {
    make(name, options, WindowConfig::from_options(options))
}

/// The same for a session that follows links, with where its rounding begins, 0 <= x < 1.
pub fn led_controller(
    name: &str,
    options: &Options,
    dither_packets: f64,
) -> Result<Box<dyn CongestionController>, RuleError> {
    make(name, options, WindowConfig { dither_packets, ..WindowConfig::from_options(options) })
}

/// The same with a first window and a first ssthresh in packets, fractions included, both at least one; ssthresh may be
/// infinite. Without a first window, the options' one.
pub fn controller_from(
    name: &str,
    options: &Options,
    initial_window_packets: Option<f64>,
    initial_ssthresh_packets: f64,
) -> Result<Box<dyn CongestionController>, RuleError> {
    // Rules that links drive say nothing by themselves.
    if !window_schemes().any(|known| known == name) {
        return Err(RuleError::Unknown(name.to_owned()));
    }
    let config = WindowConfig { initial_ssthresh_packets, ..WindowConfig::from_options(options) };
    let initial_window_packets = initial_window_packets.unwrap_or(config.initial_window_packets);
    make(name, options, WindowConfig { initial_window_packets, ..config })
}

/// The schemes that [`controller_from`] knows, in the order of the list: window-based, and by themselves.
pub fn window_schemes() -> impl Iterator<Item = &'static str> {
    let sessions = scheme::schemes().iter().filter(|scheme| scheme.kind == scheme::Kind::Session);
    sessions.map(|scheme| scheme.name).filter(|name| controller(name, &Options::default()).is_ok())
}

fn make(name: &str, options: &Options, window: WindowConfig) -> Result<Box<dyn CongestionController>, RuleError> {
    Ok(match name {
        "newreno" | "sack" => windowed(NewReno, window),
        "hstcp" => windowed(HighSpeed::new(HighSpeedConfig::from_options(options)?), window),
        "htcp" => windowed(Htcp::new(HtcpConfig::default()), window),
        "stcp" => windowed(Scalable::new(ScalableConfig::from_options(options)), window),
        "aimd" => windowed(Aimd::new(AimdConfig::from_options(options)), window),
        "bic" => windowed(Bic::new(BicConfig::from_options(options)), window),
        "cubic" => windowed(Cubic::new(CubicConfig::from_options(options)), window),
        "vegas" => Box::new(Vegas::new(VegasConfig::from_options(options), window)),
        "fast" => Box::new(Fast::new(FastConfig::from_options(options), window)),
        "xcp" | "endpoint-xcp" | "ixcp" | "pxcp" => Box::new(Xcp::new(window)),
        "aecp" => Box::new(Aecp::new(AecpSourceConfig::from_options(options), window)),
        "vcp" => Box::new(Vcp::new(VcpSourceConfig::from_options(options), window)),
        "rcp" => Box::new(Rcp::new(window)),
        _ => return Err(RuleError::Unknown(name.to_owned())),
    })
}

fn windowed<R: WindowRule + 'static>(rule: R, window: WindowConfig) -> Box<dyn CongestionController> {
    Box::new(Windowed::new(rule, window))
}

fn number(options: &Options, name: &str, default: f64) -> f64 {
    options.number(name).unwrap_or(default)
}

fn packets(options: &Options, name: &str, default: f64) -> f64 {
    options.packets(name).map_or(default, |packets| packets as f64)
}

impl HighSpeedConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Result<Self, RuleError> {
        let default = Self::default();
        let config = Self {
            high_window_packets: packets(options, "high_window", default.high_window_packets),
            high_p: number(options, "high_p", default.high_p),
            high_decrease: number(options, "high_decrease", default.high_decrease),
            ..Self::from_low_window(packets(options, "low_window", default.low_window_packets))
        };
        let Self { low_window_packets: low_window, low_p, high_window_packets: high_window, high_p, .. } = config;
        if high_window <= low_window || high_p >= low_p {
            return Err(RuleError::HighSpeedLine { low_window, low_p, high_window, high_p });
        }
        Ok(config)
    }
}

impl ScalableConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            increase_packets: number(options, "increase", default.increase_packets),
            decrease: number(options, "decrease", default.decrease),
            low_window_packets: packets(options, "low_window", default.low_window_packets),
        }
    }
}

impl AimdConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            increase_packets: number(options, "increase", default.increase_packets),
            decrease: number(options, "decrease", default.decrease),
        }
    }
}

impl BicConfig {
    /// The constants that were named, else those of the form that was named.
    pub fn from_options(options: &Options) -> Self {
        let default = if options.word("constants") == Some("linux") { Self::linux() } else { Self::default() };
        Self {
            s_max_packets: number(options, "s_max", default.s_max_packets),
            s_min_packets: number(options, "s_min", default.s_min_packets),
            beta: number(options, "beta", default.beta),
            low_window_packets: packets(options, "low_window", default.low_window_packets),
            form: default.form,
        }
    }
}

impl CubicConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self { c: number(options, "c", default.c), beta: number(options, "beta", default.beta), ..default }
    }
}

impl VegasConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            alpha_packets: number(options, "alpha", default.alpha_packets),
            beta_packets: number(options, "beta", default.beta_packets),
            gamma_packets: number(options, "gamma", default.gamma_packets),
        }
    }
}

impl FastConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            alpha_packets: number(options, "alpha", default.alpha_packets),
            gamma: number(options, "gamma", default.gamma),
            ..default
        }
    }
}

impl AecpSourceConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        Self { alpha_per_s: number(options, "alpha", Self::default().alpha_per_s) }
    }
}

impl VcpSourceConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self { t_rho: options.time("t_rho").unwrap_or(default.t_rho), ..default }
    }
}

impl WindowConfig {
    /// What all TCP-like schemes take: the first and the largest window, and the form of slow start.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        let slow_start = match options.get("max_ssthresh") {
            Some(OptionValue::Packets(max)) => {
                let max_ssthresh_packets = max as f64;
                if options.word("limited_slow_start") == Some("ns2") {
                    SlowStart::LimitedNs2 { max_ssthresh_packets }
                } else {
                    SlowStart::Limited { max_ssthresh_packets }
                }
            }
            _ => SlowStart::Standard,
        };
        Self {
            initial_window_packets: packets(options, "initial_window", default.initial_window_packets),
            max_window_packets: packets(options, "max_window", default.max_window_packets),
            slow_start,
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Ack, Feedback, Sending, test_ack, test_loss};
    use super::*;
    use crate::header::{AecpHeader, CongestionHeader, LoadCode, RcpHeader, XcpHeader};
    use crate::scheme::{find, schemes};
    use fairwave_units::{Duration, Time};

    /// Those that links drive.
    const DRIVEN: [&str; 4] = ["xcp", "aecp", "vcp", "rcp"];
    const NAMES: [&str; 10] = ["newreno", "sack", "hstcp", "htcp", "stcp", "aimd", "bic", "cubic", "vegas", "fast"];

    /// The defaults of the list, spelled out, make the same controller as no options at all.
    #[test]
    fn controller__the_listed_defaults_are_the_defaults() {
        for name in NAMES {
            let mut spelled = Options::default();
            for option in find(name).unwrap().options {
                spelled.set(option.name, option.default_value());
            }
            let mut by_default = controller(name, &Options::default()).unwrap();
            let mut by_list = controller(name, &spelled).unwrap();
            for step in 0..2000_u64 {
                let ack = Ack { now: Time::from_nanos(step * 1_000_000), round: step / 20, ..test_ack(1) };
                by_default.on_ack(&ack);
                by_list.on_ack(&ack);
                if step % 500 == 499 {
                    by_default.on_loss(&test_loss(100));
                    by_list.on_loss(&test_loss(100));
                }
                assert_eq!(by_default.allowance(), by_list.allowance(), "{name} at step {step}");
            }
        }
    }

    #[test]
    fn controller__a_line_that_does_not_fall_is_refused() {
        for (name, value) in [
            ("low_window", OptionValue::Packets(83_000)),
            ("high_window", OptionValue::Packets(38)),
            ("high_p", OptionValue::Number(0.5)),
        ] {
            let mut options = Options::default();
            options.set(name, value);
            assert!(matches!(controller("hstcp", &options), Err(RuleError::HighSpeedLine { .. })), "{name}");
        }
    }

    #[test]
    fn controller_from__starts_where_it_is_told() {
        let rule = controller_from("cubic", &Options::default(), Some(100.5), 70.0).unwrap();
        assert_eq!((rule.allowance().window_packets, rule.ssthresh_packets()), (100.5, 70.0));
        let rule = controller_from("cubic", &Options::default(), None, f64::INFINITY).unwrap();
        assert_eq!(rule.allowance().window_packets, 2.0);
    }

    #[test]
    fn window_schemes__are_those_that_run() {
        let mut names: Vec<_> = window_schemes().collect();
        let mut expected = NAMES.to_vec();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }

    #[test]
    fn controller__other_names_are_refused() {
        for scheme in schemes().iter().filter(|scheme| !NAMES.contains(&scheme.name)) {
            let alone = controller_from(scheme.name, &Options::default(), None, f64::INFINITY);
            assert!(alone.is_err(), "{}", scheme.name);
        }
    }

    proptest! {
        /// Whatever happens: at least one packet, never NaN.
        #[test]
        fn window__stays_a_window(
            name in 0..NAMES.len(),
            steps in proptest::collection::vec((0_u8..10, 0_u64..2_000_000_000, 0_u32..100_000, 0_u64..400_000_000), 1..300),
        ) {
            let mut rule = controller(NAMES[name], &Options::default()).unwrap();
            let mut now = Time::ZERO;
            for (what, wait, packets, rtt) in steps {
                now += Duration::from_nanos(wait);
                let loss = super::super::Loss { now, in_flight_packets: packets };
                match what {
                    0 => rule.on_loss(&loss),
                    1 => rule.on_timeout(&loss),
                    _ => rule.on_ack(&Ack {
                        now,
                        acked_packets: packets % 1000,
                        rtt: (what > 2).then(|| Duration::from_nanos(rtt)),
                        min_rtt: Duration::from_nanos(rtt / 2),
                        smoothed_rtt: Duration::from_nanos(rtt),
                        round: now.as_nanos() / 100_000_000,
                        in_recovery: what == 3,
                        ..test_ack(1)
                    }),
                }
                let window = rule.allowance().window_packets;
                prop_assert!((1.0..=1e300).contains(&window), "{}: {window}", NAMES[name]);
                prop_assert!(rule.ssthresh_packets() >= 2.0, "{}", NAMES[name]);
            }
        }

        /// Whatever links say and whatever is lost: at least one packet, never NaN.
        #[test]
        fn driven_window__stays_a_window(
            name in 0..DRIVEN.len(),
            steps in proptest::collection::vec(
                (0_u8..10, 0_u64..2_000_000_000, 0_u32..100_000, 1_u64..400_000_000, -9.0..12.0_f64), 1..300,
            ),
        ) {
            let mut rule = controller(DRIVEN[name], &Options::default()).unwrap();
            let mut now = Time::ZERO;
            for (what, wait, packets, rtt, power) in steps {
                now += Duration::from_nanos(wait);
                let smoothed_rtt = Duration::from_nanos(rtt);
                let loss = super::super::Loss { now, in_flight_packets: packets };
                match what {
                    0 => rule.on_loss(&loss),
                    1 => rule.on_timeout(&loss),
                    _ => {
                        let sending = Sending { smoothed_rtt: Some(smoothed_rtt), window_packets: u64::from(packets) };
                        let header = answered(rule.header(&sending).unwrap(), 10_f64.powf(power), what);
                        rule.on_ack(&Ack { now, acked_packets: packets, smoothed_rtt, ..test_ack(1) });
                        let window_limited = what > 3;
                        rule.on_feedback(&Feedback { now, header, smoothed_rtt, packet_bytes: 1000, window_limited });
                    }
                }
                let allowance = rule.allowance();
                prop_assert!((1.0..=1e300).contains(&allowance.window_packets), "{}: {allowance:?}", DRIVEN[name]);
                prop_assert!(allowance.pacing.is_none_or(|rate| rate.as_bps() > 0.0), "{}: {allowance:?}", DRIVEN[name]);
                prop_assert!(rule.ssthresh_packets() >= 2.0, "{}", DRIVEN[name]);
            }
        }
    }

    /// A header as links may have left it, with this rate where it has one.
    fn answered(sent: CongestionHeader, rate_bps: f64, what: u8) -> CongestionHeader {
        match sent {
            CongestionHeader::Xcp(header) => {
                let sign = if what.is_multiple_of(2) { 1.0 } else { -1.0 };
                CongestionHeader::Xcp(XcpHeader { change_bps: sign * rate_bps, ..header })
            }
            CongestionHeader::Aecp(_) => CongestionHeader::Aecp(AecpHeader { rate_factor_bps: rate_bps }),
            CongestionHeader::Vcp(_) => {
                CongestionHeader::Vcp([LoadCode::Low, LoadCode::High, LoadCode::Overload][usize::from(what) % 3])
            }
            CongestionHeader::Rcp(header) => CongestionHeader::Rcp(RcpHeader { rate_bps, ..header }),
        }
    }
}
