//! Controllers by name, with a scenario's options.

use super::{CongestionController, RuleError, WindowConfig};
use crate::scheme::{self, Options};

/// A new controller of the scheme `name` ([`window_schemes`], and those that follow links) with the given options; the
/// others have the scheme's defaults.
pub fn controller(name: &str, options: &Options) -> Result<Box<dyn CongestionController>, RuleError> {
    make(name, options, WindowConfig::from_options(options))
}

/// A new controller of a session that follows links, whose rounding starts at `dither_packets`, 0 <= x < 1.
pub fn led_controller(
    name: &str,
    options: &Options,
    dither_packets: f64,
) -> Result<Box<dyn CongestionController>, RuleError> {
    make(name, options, WindowConfig { dither_packets, ..WindowConfig::from_options(options) })
}

/// A new controller with a first window and a first ssthresh in packets, fractions included, both at least one;
/// ssthresh may be infinite. Without a first window, that of the options.
pub fn controller_from(
    name: &str,
    options: &Options,
    initial_window_packets: Option<f64>,
    initial_ssthresh_packets: f64,
) -> Result<Box<dyn CongestionController>, RuleError> {
    // Rules that links drive do nothing by themselves.
    if !window_schemes().any(|known| known == name) {
        return Err(RuleError::Unknown(name.to_owned()));
    }
    let config = WindowConfig { initial_ssthresh_packets, ..WindowConfig::from_options(options) };
    let initial_window_packets = initial_window_packets.unwrap_or(config.initial_window_packets);
    make(name, options, WindowConfig { initial_window_packets, ..config })
}

/// The schemes that [`controller_from`] accepts, in the order of the registry: window-based ones that need no links.
/// Rules that take samples are excluded: they ignore acknowledgements and windows.
pub fn window_schemes() -> impl Iterator<Item = &'static str> {
    let sessions = scheme::schemes().iter().filter(|scheme| scheme.kind == scheme::SchemeKind::Session);
    sessions.filter(|scheme| is_by_window(scheme)).map(|scheme| scheme.name)
}

/// Whether its rule needs only acknowledgements, losses and time-outs.
fn is_by_window(scheme: &scheme::Scheme) -> bool {
    let made = scheme.controller.and_then(|make| make(&Options::default(), WindowConfig::default()).ok());
    made.is_some_and(|rule| !rule.takes_samples())
}

fn make(name: &str, options: &Options, window: WindowConfig) -> Result<Box<dyn CongestionController>, RuleError> {
    let make = scheme::find(name).and_then(|scheme| scheme.controller);
    make.ok_or_else(|| RuleError::Unknown(name.to_owned()))?(options, window)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::{Ack, Feedback, Sending, test_ack, test_loss};
    use super::*;
    use crate::header::{
        AecpHeader, CongestionHeader, EcnCode, JetmaxHeader, LinkId, LoadCode, MkcHeader, RcpHeader, XcpHeader,
    };
    use crate::scheme::{Model, OptionValue, SchemeKind, find, schemes};
    use fairwave_units::{Duration, Time};

    fn names() -> Vec<&'static str> {
        window_schemes().collect()
    }

    /// The rules that links drive.
    fn driven() -> Vec<&'static str> {
        let led = schemes().iter().filter(|scheme| scheme.kind == SchemeKind::Link && scheme.controller.is_some());
        led.map(|scheme| scheme.name).collect()
    }

    /// The defaults of the registry, spelled out, make the same controller as no options at all.
    #[test]
    fn controller__the_listed_defaults_are_the_defaults() {
        for name in names() {
            let mut spelled = Options::default();
            for option in find(name).unwrap().options {
                spelled.set(option, option.default_value());
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
            options.set(find("hstcp").unwrap().option(name).unwrap(), value);
            assert!(matches!(controller("hstcp", &options), Err(RuleError::HighSpeedLine { .. })), "{name}");
        }
    }

    #[test]
    fn controller_from__starts_at_the_given_window() {
        let rule = controller_from("cubic", &Options::default(), Some(100.5), 70.0).unwrap();
        assert_eq!((rule.allowance().window_packets, rule.ssthresh_packets()), (100.5, 70.0));
        let rule = controller_from("cubic", &Options::default(), None, f64::INFINITY).unwrap();
        assert_eq!(rule.allowance().window_packets, 2.0);
    }

    #[test]
    fn window_schemes__are_sessions_that_the_packet_model_runs() {
        assert!(window_schemes().count() >= 10);
        for name in window_schemes() {
            let scheme = find(name).unwrap();
            assert!(scheme.runs_in(Model::Packet) && scheme.option("initial_window").is_some(), "{name}");
        }
    }

    #[test]
    fn controller__is_of_every_scheme_with_a_sender_like_tcps() {
        for scheme in schemes() {
            let made = controller(scheme.name, &Options::default());
            // A controller drives exactly the senders with the timer of RFC 6298.
            assert_eq!(made.is_ok(), scheme.option("min_rto").is_some(), "{}", scheme.name);
            let alone = controller_from(scheme.name, &Options::default(), None, f64::INFINITY);
            assert_eq!(alone.is_ok(), names().contains(&scheme.name), "{}", scheme.name);
        }
        let error = controller("CUBIC", &Options::default()).err();
        assert_eq!(error, Some(RuleError::Unknown("CUBIC".to_owned())));
    }

    proptest! {
        /// For any events: at least one packet, never NaN.
        #[test]
        fn window__stays_a_window(
            name in select(names()),
            steps in proptest::collection::vec((0_u8..10, 0_u64..2_000_000_000, 0_u32..100_000, 0_u64..400_000_000), 1..300),
        ) {
            let mut rule = controller(name, &Options::default()).unwrap();
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
                prop_assert!((1.0..=1e300).contains(&window), "{name}: {window}");
                prop_assert!(rule.ssthresh_packets() >= 2.0, "{name}");
            }
        }

        /// For any headers and losses: at least one packet, never NaN.
        #[test]
        fn driven_window__stays_a_window(
            name in select(driven()),
            steps in proptest::collection::vec(
                (0_u8..10, 0_u64..2_000_000_000, 0_u32..100_000, 1_u64..400_000_000, -9.0..12.0_f64), 1..300,
            ),
        ) {
            let mut rule = controller(name, &Options::default()).unwrap();
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
                prop_assert!((1.0..=1e300).contains(&allowance.window_packets), "{name}: {allowance:?}");
                prop_assert!(allowance.pacing.is_none_or(|rate| rate.as_bps() > 0.0), "{name}: {allowance:?}");
                prop_assert!(rule.ssthresh_packets() >= 2.0, "{name}");
            }
        }
    }

    /// A header as links may have left it, with this rate if it has one.
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
            CongestionHeader::Maxnet { .. } => CongestionHeader::Maxnet { price: rate_bps.log10() + 9.0 },
            CongestionHeader::Mkc(header) => {
                let (number, loss) = (u64::from(what), 1.0 - rate_bps);
                CongestionHeader::Mkc(MkcHeader { link: LinkId::of(u32::from(what % 3)), number, loss, ..header })
            }
            CongestionHeader::Jetmax(header) => CongestionHeader::Jetmax(JetmaxHeader {
                fair_bps: rate_bps,
                least: LinkId::of(u32::from(what % 3)),
                least_bps: rate_bps / f64::from(what),
                ..header
            }),
            CongestionHeader::EcnEcho { .. } => unreachable!("only acknowledgements have it"),
            CongestionHeader::Priority(_) => unreachable!("no controller sends it"),
            CongestionHeader::Ecn(_) => {
                CongestionHeader::Ecn([EcnCode::Capable, EcnCode::Experienced][usize::from(what) % 2])
            }
        }
    }
}
