//! Closed-form solutions of AECP's differential equations (Huang et al. 2010, section 4).

use super::AecpConfig;
use crate::session::AecpSourceConfig;

/// The logistic curve after `at_s` seconds: growth from `start` at `growth_per_s`, slowing towards `most` (Huang et al.
/// 2010, Eq. 1 and Fig. 1; Verhulst). With AECP's beta it is the rate of sources that follow their link immediately
/// (Eq. 22, for a target queue of zero).
pub fn logistic(start: f64, most: f64, growth_per_s: f64, at_s: f64) -> f64 {
    most / (1.0 + (most / start - 1.0) * libm::exp(-growth_per_s * at_s))
}

/// Theorem 2 (Huang et al. 2010, Eq. 18): the earliest and the latest time in seconds at which sessions that together
/// start with `start_share` of the capacity reach the share `efficiency` of it. Both shares lie between 0 and 1, the
/// first far below the second.
pub fn aecp_efficiency_s(
    source: &AecpSourceConfig,
    link: &AecpConfig,
    start_share: f64,
    efficiency: f64,
) -> (f64, f64) {
    let of_link = libm::log(efficiency / (1.0 - efficiency) / start_share) / link.beta_per_s;
    let of_source = libm::log(libm::log(start_share) / libm::log(efficiency)) / source.alpha_per_s;
    (of_link.max(of_source), of_link + of_source)
}

/// Time in seconds after which a session that joined with `start_share` of each other session's rate has the share
/// `fairness` of theirs. Both follow the same factor, so their ratio g has g' = -alpha g ln g, independent of that
/// factor (Huang et al. 2010, Eq. 31): ln g falls by e^(-alpha t).
pub fn aecp_fairness_s(source: &AecpSourceConfig, start_share: f64, fairness: f64) -> f64 {
    libm::log(libm::log(start_share) / libm::log(fairness)) / source.alpha_per_s
}

/// [`aecp_fairness_s`] as Theorem 3 prints it (Eq. 29), ln ln (fairness / start_share) / alpha: the term of Eq. 31's
/// upper bound, ln ln (1 / fairness), moved into the logarithm. It is too early for a fairness near 1.
pub fn aecp_fairness_printed_s(source: &AecpSourceConfig, start_share: f64, fairness: f64) -> f64 {
    libm::log(libm::log(fairness / start_share)) / source.alpha_per_s
}

/// Delay margin in seconds: the maximum feedback delay at which AECP's loop is stable near its equilibrium. It is the
/// phase margin of the open loop alpha beta (s + 1 / T) / (s^2 (s + alpha)) (Huang et al. 2010, Eq. 38) at gain 1, over
/// that frequency. It does not depend on the number of sessions or the capacity.
pub fn aecp_delay_margin_s(source: &AecpSourceConfig, link: &AecpConfig) -> f64 {
    let (alpha, beta, t_s) = (source.alpha_per_s, link.beta_per_s, link.t.as_secs_f64());
    let gain = |w: f64| alpha * beta * libm::hypot(w, 1.0 / t_s) / (w * w * libm::hypot(w, alpha));
    // The gain falls from infinity to zero.
    let (mut low, mut high) = (1e-9, 1e9);
    for _ in 0..200 {
        let middle = f64::sqrt(low * high);
        if gain(middle) > 1.0 { low = middle } else { high = middle }
    }
    (libm::atan(low * t_s) - libm::atan(low / alpha)) / low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(ours: f64, expected: f64, within: f64) {
        assert!((ours - expected).abs() <= within, "{ours} instead of {expected}");
    }

    #[test]
    fn logistic__is_half_way_after_the_log_of_the_gap() {
        // From 1 to 1000: 999 e^(-t) = 1 at t = ln 999 = 6.9068.
        near(logistic(1.0, 1000.0, 1.0, 999_f64.ln()), 500.0, 1e-9);
        near(logistic(1.0, 1000.0, 2.0, 0.0), 1.0, 1e-12);
        near(logistic(1.0, 1000.0, 2.0, 100.0), 1000.0, 1e-9);
    }

    #[test]
    fn aecp_efficiency__theorem_2_by_hand() {
        // A thousandth to 80 %: ln(1000 x 4) = 8.2940 s of the link, ln(6.9078 / 0.22314) / 2 = 1.7163 s of the source.
        let (least_s, most_s) = aecp_efficiency_s(&AecpSourceConfig::default(), &AecpConfig::default(), 1e-3, 0.8);
        near(least_s, 8.2940, 1e-4);
        near(most_s, 10.0104, 1e-4);
    }

    #[test]
    fn aecp_fairness__theorem_3_by_hand() {
        // A thousandth to 90 %: ln(6.9078 / 0.10536) / 2 = 2.0915 s; as printed ln ln 900 / 2 = 0.9586 s.
        near(aecp_fairness_s(&AecpSourceConfig::default(), 1e-3, 0.9), 2.0915, 1e-4);
        near(aecp_fairness_printed_s(&AecpSourceConfig::default(), 1e-3, 0.9), 0.9586, 1e-4);
    }

    #[test]
    fn aecp_delay_margin__is_36_87_degrees_at_1_rad_per_s() {
        // |2 (i + 1/2) / (-1 (i + 2))| = 2 sqrt(1.25) / sqrt(5) = 1; atan 2 - atan 1/2 = 36.87 degrees = 0.6435 rad.
        near(aecp_delay_margin_s(&AecpSourceConfig::default(), &AecpConfig::default()), 0.643_501, 1e-6);
    }
}
