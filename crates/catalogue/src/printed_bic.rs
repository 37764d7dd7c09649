//! BIC's Eqs. 2 and 3 as printed (Xu 2004, section VI-B), rounds rounded up, with its constants: windows in packets,
//! epochs in round trips. The other equations are in `BicConfig`.

/// Largest step per RTT, packets.
const S_MAX: f64 = 32.0;
/// Smallest step per RTT, packets.
const S_MIN: f64 = 0.01;
/// Share of the window that a loss removes.
const BETA: f64 = 0.125;

/// Rounds of additive increase in an epoch: N1.
fn additive_rounds(w_max: f64) -> f64 {
    ((w_max * BETA / S_MAX).ceil() - 2.0).max(0.0)
}

/// Rounds of binary search in an epoch: N2.
fn search_rounds(w_max: f64) -> f64 {
    ((w_max * BETA - additive_rounds(w_max) * S_MAX) / S_MIN).log2() + 2.0
}

/// Packets of the rounds of additive increase (Eq. 2).
pub(crate) fn additive_packets(w_max: f64) -> f64 {
    let rounds = additive_rounds(w_max);
    0.5 * (2.0 * w_max * (1.0 - BETA) + (rounds - 1.0) * S_MAX) * rounds
}

/// Packets of the rounds of binary search (Eq. 3).
pub(crate) fn search_packets(w_max: f64) -> f64 {
    w_max * search_rounds(w_max) - 2.0 * (w_max * BETA - additive_rounds(w_max) * S_MAX) + S_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_schemes::session::BicConfig;

    fn close(ours: f64, expected: f64, share: f64) {
        assert!((ours / expected - 1.0).abs() <= share, "{ours} is not within {share} of {expected}");
    }

    #[test]
    fn largest_window__makes_an_epoch_of_one_over_p_packets() {
        // Eq. 4 holds if w beta / s_max is a whole number: 4096 x 0.125 / 32 = 16.
        let packets = additive_packets(4096.0) + search_packets(4096.0);
        close(BicConfig::default().largest_window_of_large_packets(1.0 / packets), 4096.0, 1e-9);
        close(
            BicConfig::default().mean_window_of_large_packets(1.0 / packets),
            packets / (additive_rounds(4096.0) + search_rounds(4096.0)),
            1e-9,
        );
    }

    #[test]
    fn small_window__solves_its_own_equation() {
        let (p, w) = (1e-4, BicConfig::default().largest_window_of_search_packets(1e-4));
        close(1.0 / (((w * BETA / S_MIN).log2() + 2.0 * (1.0 - BETA)) * p), w, 1e-9);
    }

    #[test]
    fn additive_packets__are_a_sum_of_rounds() {
        // 4096: 14 rounds from 3584 on, 32 more each: 14 x 3584 + 32 x 14 x 13 / 2.
        close(additive_packets(4096.0), 53_088.0, 1e-12);
        assert_eq!(additive_packets(500.0), 0.0);
    }
}
