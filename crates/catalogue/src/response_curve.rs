//! Response functions by name, for curves and claims: from formulas, and from the rules themselves.

use fairwave_schemes::response::{aimd, reno};
use fairwave_schemes::scheme::{OptionValue, Options, find};
use fairwave_schemes::session::{
    Ack, BicConfig, CongestionController, HighSpeed, HighSpeedConfig, Loss, ScalableConfig, controller,
};
use fairwave_units::{Duration, Time};
use serde::Deserialize;

/// A scheme with the constants of its response function; by default those of the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ResponseCurve {
    /// TCP.
    Newreno {},
    /// Additive increase, multiplicative decrease.
    Aimd { increase: f64, decrease: f64 },
    /// HighSpeed TCP. With a low window, its loss rate is TCP's at that window, 1.5 / w^2.
    Hstcp { low_window: Option<f64> },
    /// Scalable TCP.
    Stcp { low_window: Option<f64> },
    /// BIC.
    Bic { s_max: Option<f64>, s_min: Option<f64>, beta: Option<f64>, low_window: Option<f64> },
}

/// Range of a search for a loss rate.
const RATES: (f64, f64) = (1e-12, 0.3);

impl ResponseCurve {
    /// Mean window in packets at a loss rate, loss events per packet.
    pub(crate) fn window(self, loss_rate: f64) -> f64 {
        match self {
            Self::Newreno {} => reno(loss_rate),
            Self::Aimd { increase, decrease } => aimd(loss_rate, increase, decrease),
            Self::Hstcp { low_window } => hstcp(low_window).mean_window_packets(loss_rate),
            Self::Stcp { low_window } => {
                let default = ScalableConfig::default();
                let low_window_packets = low_window.unwrap_or(default.low_window_packets);
                ScalableConfig { low_window_packets, ..default }.mean_window_packets(loss_rate)
            }
            Self::Bic { s_max, s_min, beta, low_window } => {
                let default = BicConfig::default();
                BicConfig {
                    s_max_packets: s_max.unwrap_or(default.s_max_packets),
                    s_min_packets: s_min.unwrap_or(default.s_min_packets),
                    beta: beta.unwrap_or(default.beta),
                    low_window_packets: low_window.unwrap_or(default.low_window_packets),
                    form: default.form,
                }
                .mean_window_packets(loss_rate)
            }
        }
    }

    /// The mean window without the part below the low window, in which a scheme is TCP: its own law, extrapolated.
    fn own_window(self, loss_rate: f64) -> f64 {
        match self {
            Self::Hstcp { low_window } => hstcp(low_window).line_window_packets(loss_rate),
            Self::Stcp { .. } => Self::Stcp { low_window: Some(0.0) }.window(loss_rate),
            Self::Bic { s_max, s_min, beta, .. } => {
                Self::Bic { s_max, s_min, beta, low_window: Some(0.0) }.window(loss_rate)
            }
            other => other.window(loss_rate),
        }
    }

    /// Loss rate at which its own law crosses TCP's: below it, the scheme has the larger window.
    pub(crate) fn crossing(self) -> f64 {
        bisect(|loss_rate| self.own_window(loss_rate) - reno(loss_rate))
    }

    /// Loss rate at which its mean window is `window` packets.
    pub(crate) fn loss_rate(self, window: f64) -> f64 {
        bisect(|loss_rate| self.window(loss_rate) - window)
    }

    /// The largest loss rate up to which its window stays within a share of another's.
    pub(crate) fn meets(self, other: Self, within: f64) -> f64 {
        let near = |loss_rate: f64| (self.window(loss_rate) / other.window(loss_rate) - 1.0).abs() <= within;
        // Twenty steps per decade: finer than any claim about where curves meet.
        let rates = (0..=20 * 10).map(|step| 1e-10 * 10f64.powf(f64::from(step) / 20.0));
        rates.take_while(|loss_rate| near(*loss_rate)).last().unwrap_or(f64::NAN)
    }

    /// The exponent d of the response function at a loss rate, w = c / p^d: its slope in a log-log plot.
    pub(crate) fn exponent(self, loss_rate: f64) -> f64 {
        let step = 1.01_f64;
        (self.window(loss_rate / step) / self.window(loss_rate * step)).ln() / (2.0 * step.ln())
    }

    /// Ratio of the rate of a session to that of another with `rtt_ratio` times its RTT, if both lose at the same
    /// instants and the first has a window of `window` packets (Xu 2004, Eq. 1 and its consequences, solved by
    /// bisection).
    pub(crate) fn synchronised_ratio(self, rtt_ratio: f64, window: f64) -> f64 {
        // w = RTT / (t p): with t and the first one's w and p known, w p of the other is larger by the RTT ratio.
        let product = window * self.loss_rate(window) * rtt_ratio;
        let other = bisect(|loss_rate| product - self.window(loss_rate) * loss_rate);
        rtt_ratio * window / self.window(other)
    }

    /// Mean window of the rule that the simulators run, with a loss after every 1 / p acknowledged packets, in its
    /// periodic state: packets over round trips.
    pub(crate) fn rule_window(self, loss_rate: f64) -> f64 {
        let (name, options) = self.rule();
        let Ok(mut rule) = controller(name, &options) else { return f64::NAN };
        let epoch = (1.0 / loss_rate).round().clamp(1.0, 1e8) as u64;
        // Starts at the window of its response, so that few epochs are enough; the first ones do not count.
        rule.set_window_packets(self.window(loss_rate));
        rule.on_loss(&loss(rule.as_ref()));
        for _ in 0..EPOCHS {
            drive(rule.as_mut(), epoch);
        }
        let rounds: f64 = (0..EPOCHS).map(|_| drive(rule.as_mut(), epoch)).sum();
        (EPOCHS * epoch) as f64 / rounds
    }

    fn rule(self) -> (&'static str, Options) {
        let packets = |value: Option<f64>| value.map(|value| OptionValue::Packets(value.round() as u64));
        let number = |value: Option<f64>| value.map(OptionValue::Number);
        let (scheme, given) = match self {
            Self::Newreno {} => ("newreno", vec![]),
            Self::Aimd { increase, decrease } => {
                ("aimd", vec![("increase", number(Some(increase))), ("decrease", number(Some(decrease)))])
            }
            Self::Hstcp { low_window } => ("hstcp", vec![("low_window", packets(low_window))]),
            Self::Stcp { low_window } => ("stcp", vec![("low_window", packets(low_window))]),
            Self::Bic { s_max, s_min, beta, low_window } => (
                "bic",
                vec![
                    ("low_window", packets(low_window)),
                    ("s_max", number(s_max)),
                    ("s_min", number(s_min)),
                    ("beta", number(beta)),
                ],
            ),
        };
        let mut options = Options::default();
        for (name, value) in given {
            let option = find(scheme).and_then(|scheme| scheme.option(name)).expect("the scheme has the option");
            if let Some(value) = value {
                options.set(option, value);
            }
        }
        (scheme, options)
    }
}

/// Epochs before the measurement of the rule's mean window, and during it.
const EPOCHS: u64 = 10;

/// Acknowledges the packets of an epoch one by one, then loses one; returns the round trips of the epoch.
fn drive(rule: &mut dyn CongestionController, packets: u64) -> f64 {
    let rtt = Duration::from_millis(100);
    let mut rounds = 0.0;
    for _ in 0..packets {
        let window = rule.allowance().window_packets;
        rounds += 1.0 / window;
        rule.on_ack(&Ack {
            now: Time::ZERO,
            acked_packets: 1,
            rtt: Some(rtt),
            min_rtt: rtt,
            smoothed_rtt: rtt,
            in_flight_packets: window as u32,
            round: 0,
            window_limited: true,
            marked_packets: 0,
            in_recovery: false,
        });
    }
    rule.on_loss(&loss(rule));
    rounds
}

fn loss(rule: &dyn CongestionController) -> Loss {
    Loss { now: Time::ZERO, in_flight_packets: rule.allowance().window_packets as u32 }
}

fn hstcp(low_window: Option<f64>) -> HighSpeed {
    HighSpeed::new(low_window.map_or_else(HighSpeedConfig::rfc_3649, HighSpeedConfig::from_low_window))
}

/// The point at which a function of the loss rate changes from above zero to below; an end of the range if it does not.
fn bisect(above: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = RATES;
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if above(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, expected: f64, share: f64) {
        assert!((ours / expected - 1.0).abs() <= share, "{ours} is not within {share} of {expected}");
    }

    #[test]
    fn crossing__of_stcp_is_where_the_two_formulas_agree() {
        // 0.075 / p = sqrt(1.5 / p): p = 0.075^2 / 1.5 = 0.00375, and the window there is 20.
        let crossing = ResponseCurve::Stcp { low_window: None }.crossing();
        close(crossing, 0.003_75, 1e-9);
        close(reno(crossing), 20.0, 1e-9);
        // A line through (31, 1.5 / 31^2) starts on TCP's.
        close(reno(ResponseCurve::Hstcp { low_window: Some(31.0) }.crossing()), 31.0, 1e-6);
    }

    #[test]
    fn loss_rate__is_the_inverse_of_the_window() {
        for response in
            [ResponseCurve::Newreno {}, ResponseCurve::Bic { s_max: None, s_min: None, beta: None, low_window: None }]
        {
            close(response.loss_rate(response.window(3e-6)), 3e-6, 1e-6);
        }
    }

    #[test]
    fn exponent__of_power_laws() {
        close(ResponseCurve::Newreno {}.exponent(1e-5), 0.5, 1e-9);
        close(ResponseCurve::Stcp { low_window: None }.exponent(1e-5), 1.0, 1e-9);
    }

    #[test]
    fn synchronised_ratio__of_a_power_law_is_a_power_of_rtt_ratio() {
        // Xu 2004, section IV: (RTT2 / RTT1)^(1 / (1 - d)), d = 1/2 for TCP.
        close(ResponseCurve::Newreno {}.synchronised_ratio(3.0, 1000.0), 9.0, 1e-6);
        close(ResponseCurve::Newreno {}.synchronised_ratio(6.0, 1000.0), 36.0, 1e-6);
    }

    #[test]
    fn rule_window__of_tcp_is_1_22_over_the_root() {
        close(ResponseCurve::Newreno {}.rule_window(1e-4), 122.47, 0.02);
    }

    #[test]
    fn meets__itself_everywhere_and_tcp_never() {
        let aimd = ResponseCurve::Aimd { increase: 32.0, decrease: 0.125 };
        close(aimd.meets(aimd, 0.01), 1.0, 1e-9);
        assert!(aimd.meets(ResponseCurve::Newreno {}, 0.01).is_nan());
    }
}
