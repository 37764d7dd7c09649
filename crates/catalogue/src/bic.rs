//! BIC's equations as they are printed (Xu 2004, section VI-B), with its constants: windows in packets, epochs in round
//! trips.

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

/// The constants a, b and c of Eqs. 4 and 5.
fn constants() -> (f64, f64, f64) {
    (BETA * (2.0 - BETA) / (2.0 * S_MAX), (S_MAX / S_MIN).log2() + (2.0 - BETA) / 2.0, S_MAX - S_MIN)
}

/// Largest window where an epoch has rounds of additive increase (Eq. 4).
pub(crate) fn largest_window(loss_rate: f64) -> f64 {
    let (a, b, c) = constants();
    ((b * b + 4.0 * a * (c + 1.0 / loss_rate)).sqrt() - b) / (2.0 * a)
}

/// Mean window then (Eq. 5).
pub(crate) fn mean_window(loss_rate: f64) -> f64 {
    let (a, b, c) = constants();
    let root = (b * b + 4.0 * a * (c + 1.0 / loss_rate)).sqrt();
    (2.0 - BETA) / loss_rate / (root + (1.0 - BETA) * b + BETA * (2.0 - BETA) / 2.0)
}

/// Mean window for very large windows (Eq. 6).
pub(crate) fn asymptote(loss_rate: f64) -> f64 {
    (S_MAX / 2.0 * (2.0 - BETA) / BETA / loss_rate).sqrt()
}

/// Largest window where an epoch is a search alone, by Lambert's W (before Eq. 7).
pub(crate) fn small_window(loss_rate: f64) -> f64 {
    let ln2 = std::f64::consts::LN_2;
    ln2 / (lambert_w(4.0 * ln2 * BETA * (-2.0 * ln2 * BETA).exp() / (loss_rate * S_MIN)) * loss_rate)
}

/// The real solution x of x e^x = y, for y above zero: Newton's method.
fn lambert_w(y: f64) -> f64 {
    let mut x = y.ln_1p();
    for _ in 0..100 {
        let power = x.exp();
        x -= (x * power - y) / (power * (x + 1.0));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, expected: f64, share: f64) {
        assert!((ours / expected - 1.0).abs() <= share, "{ours} is not within {share} of {expected}");
    }

    #[test]
    fn largest_window__makes_an_epoch_of_one_over_p_packets() {
        // Eq. 4 holds where w beta / s_max is a whole number: 4096 x 0.125 / 32 = 16.
        let packets = additive_packets(4096.0) + search_packets(4096.0);
        close(largest_window(1.0 / packets), 4096.0, 1e-9);
        close(mean_window(1.0 / packets), packets / (additive_rounds(4096.0) + search_rounds(4096.0)), 1e-9);
    }

    #[test]
    fn small_window__solves_its_own_equation() {
        let (p, w) = (1e-4, small_window(1e-4));
        close(1.0 / (((w * BETA / S_MIN).log2() + 2.0 * (1.0 - BETA)) * p), w, 1e-9);
    }

    #[test]
    fn lambert_w__by_hand() {
        close(lambert_w(std::f64::consts::E), 1.0, 1e-12); // 1 x e^1
        close(lambert_w(2.0 * (2.0_f64).exp()), 2.0, 1e-12);
    }

    #[test]
    fn additive_packets__are_a_sum_of_rounds() {
        // 4096: 14 rounds from 3584 on, 32 more each: 14 x 3584 + 32 x 14 x 13 / 2.
        close(additive_packets(4096.0), 53_088.0, 1e-12);
        assert_eq!(additive_packets(500.0), 0.0);
    }
}
