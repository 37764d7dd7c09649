//! The arithmetic of Wu 2007, section II.4, and additive increase, multiplicative decrease in closed form.

use fairwave_units::{Bytes, Duration, Rate};

/// TCP Reno's window: sqrt(3/2) / sqrt(p), about 1.22 / sqrt(p) (Wu 2007, Eq. II.2).
///
/// Differs from Wu 2007, after Eq. II.4, which prints q = sqrt(3 / (2 w)): window and loss rate are swapped.
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
/// Zero if `increase` is not above zero, as the window then never recovers.
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

/// Seconds that Reno takes after a loss at full rate to recover that rate: W/2 round trips (Wu 2007, Table II.1).
pub fn reno_recovery_s(rate: Rate, packet: Bytes, rtt: Duration) -> f64 {
    bandwidth_delay_packets(rate, rtt, packet) / 2.0 * rtt.as_secs_f64()
}

/// The RTT in seconds that makes [`reno_recovery_s`] a given time.
pub fn rtt_of_recovery_s(rate: Rate, packet: Bytes, recovery: Duration) -> f64 {
    (2.0 * recovery.as_secs_f64() * packet.as_bits_f64() / rate.as_bps()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

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
