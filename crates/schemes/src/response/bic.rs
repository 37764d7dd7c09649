//! BIC's response: the paper's analysis (Xu et al. 2004, section VI-B) in full and in its three approximations, and
//! that of the rule as it runs.
//!
//! In the analysis the gap to the old maximum halves each round trip. The rule of section VI-A, which takes half the
//! current gap at each acknowledgement, halves it in 2 ln 2 = 1.39 round trips. Its mean window is 3 % lower at a loss
//! rate of 10^-6, 8 % at 10^-5, and 15 to 17 % from 10^-4 on.

use std::f64::consts::LN_2;

use super::{aimd, passes, reno};
use crate::session::BicConfig;

impl BicConfig {
    /// Mean window at a loss rate: packets per epoch over RTTs per epoch, with the largest window that makes an epoch
    /// 1/p packets long (Xu et al. 2004, Eqs. 2 and 3, rounds of additive increase not rounded up). Reno's if that is
    /// below the low window.
    pub fn mean_window_packets(&self, loss_rate: f64) -> f64 {
        let target = 1.0 / loss_rate;
        if !target.is_finite() || target <= 0.0 {
            return reno(loss_rate);
        }
        // Packets of an epoch grow with the largest window, which is below the epoch's own length.
        let (packets, rounds) = self.epoch(passes(target, 1.0, target.max(2.0), |w_max| self.epoch(w_max).0));
        let mean = packets / rounds;
        if mean > self.low_window_packets { mean } else { reno(loss_rate) }
    }

    /// Mean window at a loss rate of the actual rule, acknowledgement by acknowledgement: growth per RTT is s_max while
    /// the gap is above 2 s_max, half the gap down to 2 s_min, then s_min. Reno's if that is below the low window.
    ///
    /// The rule converges slowly, because it probes a hundredth of a packet at a time: with another start it stays a
    /// few per cent off for thousands of losses.
    pub fn mean_window_of_rule_packets(&self, loss_rate: f64) -> f64 {
        let (packets, rounds) = self.epoch_of_rule(self.largest_window_of_rule_packets(loss_rate));
        let mean = packets / rounds;
        if mean > self.low_window_packets { mean } else { reno(loss_rate) }
    }

    /// The window before each loss that corresponds to [`Self::mean_window_of_rule_packets`], above the low window.
    pub fn largest_window_of_rule_packets(&self, loss_rate: f64) -> f64 {
        let target = 1.0 / loss_rate;
        passes(target, 1.0, target.clamp(2.0, f64::MAX), |w_max| self.epoch_of_rule(w_max).0)
    }

    /// Mean window if the steps are only searches, largest window times beta at most 2 s_max (Xu et al. 2004, the
    /// LambertW form and the line before Eq. 7): independent of s_max.
    pub fn mean_window_of_search_packets(&self, loss_rate: f64) -> f64 {
        let w_max = self.largest_window_of_search_packets(loss_rate);
        1.0 / loss_rate / (libm::log2(w_max * self.beta / self.s_min_packets) + 2.0)
    }

    /// The corresponding largest window: the W with W = 1 / ((log2(W beta / s_min) + 2 (1 - beta)) p).
    pub fn largest_window_of_search_packets(&self, loss_rate: f64) -> f64 {
        let (beta, least) = (self.beta, self.s_min_packets);
        let y = 4.0 * LN_2 * beta * libm::exp(-2.0 * LN_2 * beta) / (loss_rate * least);
        LN_2 / (lambert_w(y) * loss_rate)
    }

    /// Mean window if the largest window times beta is above 2 s_max (Xu et al. 2004, Eq. 5).
    pub fn mean_window_of_large_packets(&self, loss_rate: f64) -> f64 {
        let (_, b, root) = self.large(loss_rate);
        let beta = self.beta;
        (2.0 - beta) / loss_rate / (root + (1.0 - beta) * b + beta * (2.0 - beta) / 2.0)
    }

    /// The corresponding largest window (Xu et al. 2004, Eq. 4).
    pub fn largest_window_of_large_packets(&self, loss_rate: f64) -> f64 {
        let (a, b, root) = self.large(loss_rate);
        (root - b) / (2.0 * a)
    }

    /// Common terms of Eqs. 4 and 5: a, b and the root.
    fn large(&self, loss_rate: f64) -> (f64, f64, f64) {
        let (beta, most, least) = (self.beta, self.s_max_packets, self.s_min_packets);
        let a = beta * (2.0 - beta) / (2.0 * most);
        let b = libm::log2(most / least) + (2.0 - beta) / 2.0;
        let c = most - least;
        (a, b, (b * b + 4.0 * a * (c + 1.0 / loss_rate)).sqrt())
    }

    /// Limit of the mean window as the loss rate falls: that of AIMD(s_max, beta) (Xu et al. 2004, Eq. 6).
    pub fn mean_window_asymptote_packets(&self, loss_rate: f64) -> f64 {
        aimd(loss_rate, self.s_max_packets, self.beta)
    }

    /// Loss rate at which the window before a loss is `window_packets`, if the steps are only searches
    /// (`window_packets` at most 2 s_max / beta): 1 / ((log2(w beta / s_min) + 2 (1 - beta)) w). Wu 2007, after Eq.
    /// II.9, gives it as 1 / ((log2(w / 0.08) + 1.75) w).
    pub fn loss_rate(&self, window_packets: f64) -> f64 {
        let searches = libm::log2(window_packets * self.beta / self.s_min_packets);
        1.0 / ((searches + 2.0 * (1.0 - self.beta)) * window_packets)
    }

    /// Packets and RTTs of one epoch of the actual rule with the largest window `w_max`: the window is `w_max` minus
    /// the gap, and the gap falls linearly, by e^(-t/2), and linearly again.
    fn epoch_of_rule(&self, w_max: f64) -> (f64, f64) {
        let least = self.s_min_packets.min(self.s_max_packets);
        let first = w_max * self.beta;
        let second = first.min(2.0 * self.s_max_packets);
        let third = second.min(2.0 * least);
        let additive = (first - second) / self.s_max_packets;
        let search = 2.0 * libm::log(second / third);
        let last = third / least;
        let gaps = additive * (first + second) / 2.0 + 2.0 * (second - third) + last * third / 2.0;
        let rounds = additive + search + last;
        (w_max * rounds - gaps, rounds)
    }

    /// Packets and RTTs of one epoch whose largest window is `w_max`.
    fn epoch(&self, w_max: f64) -> (f64, f64) {
        let (most, least) = (self.s_max_packets, self.s_min_packets);
        let lost = w_max * self.beta;
        let additive = (lost / most - 2.0).max(0.0); // Xu et al. 2004: N1
        let searched = lost - additive * most;
        let search = libm::log2(searched / least).max(0.0) + 2.0; // N2
        let first = 0.5 * (2.0 * w_max * (1.0 - self.beta) + (additive - 1.0) * most) * additive; // Eq. 2
        let second = w_max * search - 2.0 * searched + least; // Eq. 3
        (first + second, additive + search)
    }
}

/// The x with x e^x = y, for y above zero.
fn lambert_w(y: f64) -> f64 {
    // Newton's step on x + ln x = ln y, from above: convex, so it never leaves x > 0.
    let mut x = libm::log1p(y);
    for _ in 0..50 {
        x *= (1.0 + libm::log(y) - libm::log(x)) / (1.0 + x);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn mean_window_packets__approaches_aimd_for_large_windows() {
        let rule = BicConfig::default();
        close(rule.mean_window_packets(1e-10), 1_549_193.3, 0.01); // sqrt(240 / 1e-10)
        close(rule.mean_window_asymptote_packets(1e-10), 1_549_193.3, 1e-6);
    }

    #[test]
    fn mean_window_packets__is_equation_5_for_large_windows() {
        let rule = BicConfig::default();
        for p in [1e-6, 1e-7, 1e-8] {
            close(rule.mean_window_packets(p), rule.mean_window_of_large_packets(p), 0.01);
        }
        // Eq. 5 by hand, p = 1e-6: a = 0.125 x 1.875 / 64 = 0.003662, b = log2 3200 + 0.9375 = 12.5814, c = 31.99.
        // root = sqrt(158.29 + 0.014648 x 1000032) = 121.68; 1.875e6 / (121.68 + 11.0087 + 0.1172) = 14118.
        close(rule.mean_window_of_large_packets(1e-6), 14_118.0, 1e-3);
    }

    #[test]
    fn mean_window_packets__is_only_search_for_small_windows() {
        let rule = BicConfig::default();
        for p in [2e-4, 5e-4, 1e-3] {
            // Differs by s_min in Eq. 3, which the closed form leaves out.
            close(rule.mean_window_packets(p), rule.mean_window_of_search_packets(p), 1e-3);
        }
        // w = 400 is below 2 x 32 / 0.125 = 512.
        close(rule.loss_rate(400.0), 1.0 / ((5000.0_f64.log2() + 1.75) * 400.0), 1e-12); // Wu 2007: w / 0.08
        // Xu et al. 2004, before Eq. 7: W (1 - 2 beta / (log2(W beta / s_min) + 2)) = 400 (1 - 0.25 / 14.2877).
        close(rule.mean_window_of_search_packets(rule.loss_rate(400.0)), 393.001, 1e-5);
    }

    #[test]
    fn lambert_w__solves_its_equation() {
        for y in [1e-9, 1e-3, 0.5, 1.0, 3.0, 100.0, 1e12] {
            let x = lambert_w(y);
            close(x * x.exp(), y, 1e-9);
        }
    }
}
