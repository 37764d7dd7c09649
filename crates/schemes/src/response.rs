//! Response functions: the mean window of a loss-based scheme against the loss rate, and the arithmetic that Wu 2007,
//! section II.4, argues with.
//!
//! Windows are in packets, loss rates are loss events per packet (0 < p < 1). Outside of that range the functions give
//! whatever the formula gives (infinite, NaN), never a panic. They use logarithms and powers, whose last bits may differ
//! between machines: they are for tables and plots, not for the state of a simulation.

use fairwave_units::{Bytes, Duration, Rate};

/// The response function of a scheme by its name: mean window in packets at a loss rate, with the scheme's defaults.
/// `None` for schemes whose window does not follow from a loss rate alone.
pub fn window(scheme: &str, loss_rate: f64) -> Option<f64> {
    match scheme {
        "newreno" | "sack" => Some(reno(loss_rate)),
        "hstcp" => Some(Hstcp::default().window(loss_rate)),
        "stcp" => Some(Stcp::default().window(loss_rate)),
        "bic" => Some(Bic::default().window(loss_rate)),
        "aimd" => Some(aimd(loss_rate, 32.0, 0.125)),
        _ => None,
    }
}

/// TCP Reno's window: sqrt(3/2) / sqrt(p), about 1.22 / sqrt(p) (Wu 2007, Eq. II.2).
///
/// Differs from Wu 2007, after Eq. II.4, which prints q = sqrt(3 / (2 w)): window and loss rate have changed places.
pub fn reno(loss_rate: f64) -> f64 {
    aimd(loss_rate, 1.0, 0.5)
}

/// The loss rate at which Reno keeps a mean window: 3 / (2 w^2).
pub fn reno_loss_rate(window: f64) -> f64 {
    1.5 / (window * window)
}

/// Window of additive increase by `increase` packets an RTT and decrease by the share `decrease`:
/// sqrt(a (2 - b) / (2 b p)) (Xu 2004, after Eq. 6).
pub fn aimd(loss_rate: f64, increase: f64, decrease: f64) -> f64 {
    (increase * (2.0 - decrease) / (2.0 * decrease * loss_rate)).sqrt()
}

/// Window after the acknowledgement of one packet, additive increase: w + a / w (Wu 2007, Eq. II.3 with a = 1).
pub fn aimd_on_ack(window: f64, increase: f64) -> f64 {
    window + increase / window
}

/// Window after a loss: w - b w (Wu 2007, Eq. II.4 with b = 0.5, Eq. II.8 with b = 0.125).
pub fn aimd_on_loss(window: f64, decrease: f64) -> f64 {
    window - decrease * window
}

/// Mean utilisation of a link by one AIMD flow that loses a packet whenever its window reaches the bandwidth-delay
/// product of `full_window` packets and finds no buffer there (Wu 2007, section II.4.B): the sawtooth, RTT by RTT.
///
/// Zero if `increase` is not above zero, as the window then never comes back.
pub fn aimd_utilisation(full_window: f64, increase: f64, decrease: f64) -> f64 {
    let (mut window, mut carried, mut rounds) = (aimd_on_loss(full_window, decrease), 0.0, 0.0);
    if window.is_nan() || increase.is_nan() || increase <= 0.0 || full_window / increase > 1e9 {
        return 0.0;
    }
    while window <= full_window {
        carried += window;
        rounds += 1.0;
        window += increase;
    }
    carried / (rounds * full_window)
}

/// HighSpeed TCP's response: a line in log-log between (low window, low loss rate) and (high window, high loss rate),
/// Reno below the low window (RFC 3649, section 5; Wu 2007, Eqs. II.5 and II.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hstcp {
    /// Window up to which it is Reno, packets.
    pub low_window: f64,
    /// Loss rate at the low window.
    pub low_p: f64,
    /// Window at the other end of the line, packets.
    pub high_window: f64,
    /// Loss rate there.
    pub high_p: f64,
    /// Share of the window removed there.
    pub high_decrease: f64,
}

impl Default for Hstcp {
    /// RFC 3649's constants: 38, 10^-3, 83000, 10^-7, 0.1.
    fn default() -> Self {
        Self { low_window: 38.0, low_p: 1e-3, high_window: 83_000.0, high_p: 1e-7, high_decrease: 0.1 }
    }
}

impl Hstcp {
    /// Mean window at a loss rate; about 0.12 / p^0.835 below p = 10^-3 (RFC 3649, section 5).
    pub fn window(&self, loss_rate: f64) -> f64 {
        if loss_rate >= self.low_p {
            return reno(loss_rate);
        }
        let slope = (self.high_window / self.low_window).ln() / (self.high_p / self.low_p).ln();
        self.low_window * (loss_rate / self.low_p).powf(slope)
    }

    /// Loss rate at which it keeps a mean window, p(w); Wu 2007 gives it as 0.0789 / w^1.1976.
    pub fn loss_rate(&self, window: f64) -> f64 {
        if window <= self.low_window {
            return reno_loss_rate(window);
        }
        let slope = (self.high_p / self.low_p).ln() / (self.high_window / self.low_window).ln();
        self.low_p * (window / self.low_window).powf(slope)
    }

    /// Share of the window that a loss removes, b(w): 0.5 up to the low window, falling with log w, never below the
    /// high window's.
    pub fn decrease(&self, window: f64) -> f64 {
        if window <= self.low_window {
            return 0.5;
        }
        let way = (window / self.low_window).ln() / (self.high_window / self.low_window).ln();
        ((self.high_decrease - 0.5) * way + 0.5).max(self.high_decrease)
    }

    /// Packets added per RTT, a(w) = w^2 p(w) 2 b(w) / (2 - b(w)); one up to the low window.
    pub fn increase(&self, window: f64) -> f64 {
        if window <= self.low_window {
            return 1.0;
        }
        let b = self.decrease(window);
        window * window * self.loss_rate(window) * 2.0 * b / (2.0 - b)
    }

    /// Window after the acknowledgement of one packet: w + a(w) / w (Wu 2007, Eq. II.5).
    pub fn on_ack(&self, window: f64) -> f64 {
        aimd_on_ack(window, self.increase(window))
    }

    /// Window after a loss: w (1 - b(w)).
    ///
    /// Differs from Wu 2007, Eq. II.6, which prints w - b(w) / w and would hardly reduce the window: RFC 3649.
    pub fn on_loss(&self, window: f64) -> f64 {
        aimd_on_loss(window, self.decrease(window))
    }
}

/// Scalable TCP's response (Kelly 2003; Wu 2007, Eqs. II.7 and II.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stcp {
    /// Packets added per acknowledged packet.
    pub increase: f64,
    /// Share of the window that a loss removes.
    pub decrease: f64,
    /// Window up to which it is Reno, packets.
    pub low_window: f64,
}

impl Default for Stcp {
    /// 0.01, 0.125, 16.
    fn default() -> Self {
        Self { increase: 0.01, decrease: 0.125, low_window: 16.0 }
    }
}

impl Stcp {
    /// Mean window at a loss rate: (a / b)(1 - b / 2) / p, which is 0.075 / p; Reno's where that is below the low window.
    pub fn window(&self, loss_rate: f64) -> f64 {
        let scalable = self.increase / self.decrease * (1.0 - self.decrease / 2.0) / loss_rate;
        if scalable > self.low_window { scalable } else { reno(loss_rate) }
    }

    /// Loss rate at which it keeps a mean window above the low one: (a / (b w))(1 - b / 2) (Wu 2007, after Eq. II.8).
    pub fn loss_rate(&self, window: f64) -> f64 {
        if window <= self.low_window {
            return reno_loss_rate(window);
        }
        self.increase / (self.decrease * window) * (1.0 - self.decrease / 2.0)
    }

    /// Window after the acknowledgement of one packet: w + a (Wu 2007, Eq. II.7).
    pub fn on_ack(&self, window: f64) -> f64 {
        window + self.increase
    }

    /// Window after a loss: w - b w (Wu 2007, Eq. II.8).
    pub fn on_loss(&self, window: f64) -> f64 {
        aimd_on_loss(window, self.decrease)
    }

    /// RTTs from a loss back to the window before it: ln(1 / (1 - b)) / ln(1 + a), the same at any rate.
    pub fn recovery_rtts(&self) -> f64 {
        -(1.0 - self.decrease).ln() / self.increase.ln_1p()
    }
}

/// BIC's response (Xu 2004, section VI-B).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bic {
    /// Largest step per RTT, packets.
    pub s_max: f64,
    /// Smallest step per RTT, packets.
    pub s_min: f64,
    /// Share of the window that a loss removes.
    pub beta: f64,
    /// Window up to which it is Reno, packets.
    pub low_window: f64,
}

impl Default for Bic {
    /// The paper's constants: 32, 0.01, 0.125, 14.
    fn default() -> Self {
        Self { s_max: 32.0, s_min: 0.01, beta: 0.125, low_window: 14.0 }
    }
}

impl Bic {
    /// Mean window at a loss rate: packets per epoch over RTTs per epoch, with the largest window that makes an epoch
    /// 1/p packets long (Xu 2004, Eqs. 2 to 5, rounds of additive increase not rounded up). Reno's where that is below
    /// the low window.
    pub fn window(&self, loss_rate: f64) -> f64 {
        let target = 1.0 / loss_rate;
        if !target.is_finite() || target.is_nan() || target <= 0.0 {
            return reno(loss_rate);
        }
        // Packets of an epoch grow with the largest window: bisect between one packet and the epoch's own length.
        let (mut low, mut high) = (1.0_f64, target.max(2.0));
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if self.epoch(middle).0 < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        let (packets, rounds) = self.epoch(high);
        let mean = packets / rounds;
        if mean > self.low_window { mean } else { reno(loss_rate) }
    }

    /// Loss rate at which the window before a loss is `window`, while its steps are searches alone (`window` at most
    /// 2 s_max / beta): 1 / ((log2(w beta / s_min) + 2 (1 - beta)) w). Wu 2007, after Eq. II.9, gives it as
    /// 1 / ((log2(w / 0.08) + 1.75) w).
    pub fn loss_rate(&self, window: f64) -> f64 {
        1.0 / (((window * self.beta / self.s_min).log2() + 2.0 * (1.0 - self.beta)) * window)
    }

    /// Packets and RTTs of one epoch whose largest window is `w_max`.
    fn epoch(&self, w_max: f64) -> (f64, f64) {
        let lost = w_max * self.beta;
        let additive = (lost / self.s_max - 2.0).max(0.0); // Xu 2004: N1
        let searched = lost - additive * self.s_max;
        let search = (searched / self.s_min).log2().max(0.0) + 2.0; // N2
        let first = 0.5 * (2.0 * w_max * (1.0 - self.beta) + (additive - 1.0) * self.s_max) * additive; // Eq. 2
        let second = w_max * search - 2.0 * searched + self.s_min; // Eq. 3
        (first + second, additive + search)
    }
}

/// Bytes in transit at a rate over an RTT: B x RTT (Wu 2007, Eq. II.1).
pub fn bandwidth_delay_bytes(rate: Rate, rtt: Duration) -> f64 {
    rate.as_bps() * rtt.as_secs_f64() / 8.0
}

/// Packets in transit at a rate over an RTT.
pub fn bandwidth_delay_packets(rate: Rate, rtt: Duration, packet: Bytes) -> f64 {
    rate.as_bps() * rtt.as_secs_f64() / packet.as_bits_f64()
}

/// Seconds between bit errors at a rate (Wu 2007, section II.4.A).
pub fn error_spacing_s(rate: Rate, bit_error_rate: f64) -> f64 {
    1.0 / (rate.as_bps() * bit_error_rate)
}

/// Seconds between packets at a rate (Wu 2007, section II.4.A).
pub fn packet_spacing_s(rate: Rate, packet: Bytes) -> f64 {
    packet.as_bits_f64() / rate.as_bps()
}

/// Mean rate in bit/s that Reno sustains at a loss rate: 1.22 s / (RTT sqrt(p)) (Wu 2007, Eq. II.2).
pub fn reno_rate_bps(packet: Bytes, rtt: Duration, loss_rate: f64) -> f64 {
    reno(loss_rate) * packet.as_bits_f64() / rtt.as_secs_f64()
}

/// The loss rate at which Reno sustains a mean rate (Wu 2007, Eq. II.2 solved for p).
pub fn reno_loss_rate_for(rate: Rate, packet: Bytes, rtt: Duration) -> f64 {
    reno_loss_rate(bandwidth_delay_packets(rate, rtt, packet))
}

/// Seconds that Reno takes from a loss at full rate back to it: W/2 round trips (Wu 2007, Table II.1).
pub fn reno_recovery_s(rate: Rate, packet: Bytes, rtt: Duration) -> f64 {
    bandwidth_delay_packets(rate, rtt, packet) / 2.0 * rtt.as_secs_f64()
}

/// The RTT in seconds that makes [`reno_recovery_s`] a given time.
pub fn rtt_of_recovery_s(rate: Rate, packet: Bytes, recovery: Duration) -> f64 {
    (2.0 * recovery.as_secs_f64() * packet.as_bits_f64() / rate.as_bps()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, expected: f64, share: f64) {
        assert!((ours / expected - 1.0).abs() <= share, "{ours} is not within {share} of {expected}");
    }

    #[test]
    fn reno__is_1_22_over_the_root_of_the_loss_rate() {
        close(reno(1e-4), 122.474_487, 1e-8); // sqrt(1.5) x 100
        close(reno_loss_rate(reno(3e-6)), 3e-6, 1e-12);
    }

    #[test]
    fn aimd__with_reno_constants_is_reno() {
        close(aimd(1e-5, 1.0, 0.5), reno(1e-5), 1e-15);
        close(aimd(1e-6, 32.0, 0.125), 15_491.933, 1e-7); // sqrt(240 / 1e-6)
    }

    #[test]
    fn aimd_utilisation__of_reno_without_buffer_is_three_quarters() {
        close(aimd_utilisation(5000.0, 1.0, 0.5), 0.75, 1e-12); // mean of 2500, 2501 ... 5000 over 5000
        assert_eq!(aimd_utilisation(5000.0, 0.0, 0.5), 0.0);
    }

    #[test]
    fn hstcp__meets_the_table_of_rfc_3649() {
        let rule = Hstcp::default();
        // RFC 3649, Table 2: p = 10^-3 .. 10^-10 gives 38, 263, 1795, 12279, 83981, 574356, ... (rounded slopes there)
        for (p, w) in [(1e-4, 263.0), (1e-5, 1795.0), (1e-6, 12_279.0), (1e-7, 83_981.0)] {
            close(rule.window(p), w, 0.02);
        }
        assert_eq!(rule.decrease(38.0), 0.5);
        close(rule.decrease(83_000.0), 0.1, 1e-12);
        close(rule.increase(83_000.0), 72.5, 1e-3); // 83000^2 x 1e-7 x 2 x 0.1 / 1.9
        close(rule.loss_rate(rule.window(2e-6)), 2e-6, 1e-9);
        assert_eq!(rule.decrease(1e7), 0.1); // the line goes on to zero; the window must not grow on loss
    }

    #[test]
    fn stcp__is_0_075_over_the_loss_rate_above_its_low_window() {
        let rule = Stcp::default();
        close(rule.window(1e-5), 7500.0, 1e-12);
        close(rule.window(1e-2), reno(1e-2), 1e-15);
        close(rule.loss_rate(7500.0), 1e-5, 1e-12);
        close(rule.recovery_rtts(), 13.42, 1e-3); // ln(800/700) / ln 1.01
    }

    #[test]
    fn bic__approaches_aimd_for_large_windows() {
        close(Bic::default().window(1e-10), aimd(1e-10, 32.0, 0.125), 0.01); // Xu 2004, Eq. 6
    }

    #[test]
    fn bic__matches_the_closed_form_of_large_windows() {
        // Xu 2004, Eq. 5 with a = .125 x 1.875 / 64, b = log2(3200) + 1.875 / 2, c = 31.99, p = 1e-6.
        let (a, b, c, p) = (0.125 * 1.875 / 64.0, 3200.0_f64.log2() + 0.9375, 31.99, 1e-6);
        let expected = 1.875 / p / ((b * b + 4.0 * a * (c + 1.0 / p)).sqrt() + 0.875 * b + 0.125 * 1.875 / 2.0);
        close(Bic::default().window(p), expected, 0.01);
    }

    #[test]
    fn bic__small_windows_follow_the_search_alone() {
        let rule = Bic::default();
        let w_max = 400.0; // below 2 x 32 / 0.125 = 512
        close(rule.loss_rate(w_max), 1.0 / ((5000.0_f64.log2() + 1.75) * w_max), 1e-12); // Wu 2007: w / 0.08
        assert!(rule.window(rule.loss_rate(w_max)) < w_max);
    }

    #[test]
    fn window__knows_the_loss_based_schemes_alone() {
        assert_eq!(window("hstcp", 1e-5), Some(Hstcp::default().window(1e-5)));
        assert_eq!(window("vegas", 1e-5), None);
    }

    #[test]
    fn bandwidth_delay_bytes__of_ten_gigabits_and_60_ms() {
        let (rate, rtt) = (Rate::gbps(10.0), Duration::from_millis(60));
        close(bandwidth_delay_bytes(rate, rtt), 75e6, 1e-12); // Wu 2007, after Eq. II.1
        close(bandwidth_delay_packets(rate, rtt, Bytes::new(1500)), 50_000.0, 1e-12);
    }

    #[test]
    fn reno_recovery_s__is_half_a_window_of_round_trips() {
        let (rate, packet, rtt) = (Rate::gbps(1.0), Bytes::new(1500), Duration::from_millis(60));
        close(reno_recovery_s(rate, packet, rtt), 150.0, 1e-12); // 5000 / 2 x 0.06
        close(rtt_of_recovery_s(rate, packet, Duration::from_secs(150)), 0.06, 1e-12);
    }

    #[test]
    fn reno_rate_bps__inverts_the_loss_rate() {
        let (rate, packet, rtt) = (Rate::gbps(5.0), Bytes::new(1500), Duration::from_millis(60));
        let p = reno_loss_rate_for(rate, packet, rtt);
        close(p, 2.4e-9, 1e-9); // 1.5 / 25000^2
        close(reno_rate_bps(packet, rtt, p), 5e9, 1e-12);
    }

    #[test]
    fn spacings__of_section_ii_4() {
        close(error_spacing_s(Rate::gbps(10.0), 1e-9), 0.1, 1e-12);
        close(packet_spacing_s(Rate::gbps(10.0), Bytes::new(1500)), 1.2e-6, 1e-12);
    }
}
