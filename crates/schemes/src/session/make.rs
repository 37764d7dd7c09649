//! Controllers by name, with the options that a scenario names.

use thiserror::Error;

use super::{
    Aimd, AimdConfig, Bic, BicConfig, CongestionController, Cubic, CubicConfig, Fast, FastConfig, HighSpeed,
    HighSpeedConfig, Htcp, HtcpConfig, NewReno, Scalable, ScalableConfig, SlowStart, Vegas, VegasConfig, WindowConfig,
    WindowRule, Windowed,
};
use crate::scheme::{OptionValue, Options};

/// The name is not that of a window-based session rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no window-based session rule")]
pub struct UnknownRule(pub String);

/// A new controller of the scheme `name` ("newreno", "sack", "hstcp", "htcp", "stcp", "aimd", "bic", "cubic", "vegas",
/// "fast") with the options that were named for it; the others have the scheme's defaults.
pub fn controller(name: &str, options: &Options) -> Result<Box<dyn CongestionController>, UnknownRule> {
    let window = window_config(options);
    let number = |name: &str, default: f64| options.number(name).unwrap_or(default);
    let packets = |name: &str, default: f64| options.packets(name).map_or(default, |packets| packets as f64);
    Ok(match name {
        "newreno" | "sack" => windowed(NewReno, window),
        "hstcp" => {
            let default = HighSpeedConfig::default();
            let config = HighSpeedConfig {
                low_window_packets: packets("low_window", default.low_window_packets),
                high_window_packets: packets("high_window", default.high_window_packets),
                high_p: number("high_p", default.high_p),
                high_decrease: number("high_decrease", default.high_decrease),
            };
            windowed(HighSpeed::new(config), window)
        }
        "htcp" => windowed(Htcp::new(HtcpConfig::default()), window),
        "stcp" => {
            let default = ScalableConfig::default();
            let config = ScalableConfig {
                increase_packets: number("increase", default.increase_packets),
                decrease: number("decrease", default.decrease),
                low_window_packets: packets("low_window", default.low_window_packets),
            };
            windowed(Scalable::new(config), window)
        }
        "aimd" => {
            let default = AimdConfig::default();
            let config = AimdConfig {
                increase_packets: number("increase", default.increase_packets),
                decrease: number("decrease", default.decrease),
            };
            windowed(Aimd::new(config), window)
        }
        "bic" => {
            let default =
                if options.word("constants") == Some("linux") { BicConfig::linux() } else { BicConfig::default() };
            let config = BicConfig {
                s_max_packets: number("s_max", default.s_max_packets),
                s_min_packets: number("s_min", default.s_min_packets),
                beta: number("beta", default.beta),
                low_window_packets: packets("low_window", default.low_window_packets),
                form: default.form,
            };
            windowed(Bic::new(config), window)
        }
        "cubic" => {
            let default = CubicConfig::default();
            let config =
                CubicConfig { c: number("c", default.c), beta: number("beta", default.beta), ..CubicConfig::default() };
            windowed(Cubic::new(config), window)
        }
        "vegas" => {
            let default = VegasConfig::default();
            let config = VegasConfig {
                alpha_packets: number("alpha", default.alpha_packets),
                beta_packets: number("beta", default.beta_packets),
                gamma_packets: number("gamma", default.gamma_packets),
            };
            Box::new(Vegas::new(config, window))
        }
        "fast" => {
            let default = FastConfig::default();
            let config = FastConfig {
                alpha_packets: number("alpha", default.alpha_packets),
                gamma: number("gamma", default.gamma),
                ..default
            };
            Box::new(Fast::new(config, window))
        }
        _ => return Err(UnknownRule(name.to_owned())),
    })
}

fn windowed<R: WindowRule + 'static>(rule: R, window: WindowConfig) -> Box<dyn CongestionController> {
    Box::new(Windowed::new(rule, window))
}

/// What all TCP-like schemes take: the first and the largest window, and the form of slow start.
fn window_config(options: &Options) -> WindowConfig {
    let default = WindowConfig::default();
    let packets = |name: &str, default: f64| options.packets(name).map_or(default, |packets| packets as f64);
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
    WindowConfig {
        initial_window_packets: packets("initial_window", default.initial_window_packets),
        max_window_packets: packets("max_window", default.max_window_packets),
        slow_start,
        ..default
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Ack, test_ack, test_loss};
    use super::*;
    use crate::scheme::{find, schemes};
    use fairwave_units::{Duration, Time};

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
    fn controller__other_names_are_refused() {
        for scheme in schemes().iter().filter(|scheme| !NAMES.contains(&scheme.name)) {
            assert!(controller(scheme.name, &Options::default()).is_err(), "{}", scheme.name);
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
    }
}
