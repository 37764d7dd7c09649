//! The window of a loss-based flow.

use fairwave_units::{Bytes, Duration, Time};

use super::super::{Ack, Cubic, CubicConfig, Loss, WindowRule};

/// Bytes that CUBIC would have in flight (RFC 9438): the window for as long as other flows keep the queue full.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossWindow {
    rule: Cubic,
    packets: f64,
    packet: u64,
    /// Bytes that arrived and are not yet a whole packet.
    acked: u64,
    smoothed_rtt: Duration,
}

/// Linux: tcp_pacing_ca_ratio. Pacing is slightly faster than a window per round trip.
const PACING: f64 = 1.2;
/// Weight of the old smoothed round-trip time (RFC 6298 s2.3).
const RTT_GAIN: u64 = 8;
/// RFC 9438 s4.6 has two, which are too few to measure a rate.
const MIN_PACKETS: f64 = 4.0;

/// Time that CUBIC takes to grow back to a window of `packets` after a loss (K of RFC 9438 s4.2).
pub(super) fn recovery_time(packets: u64) -> Duration {
    let config = CubicConfig::default();
    let seconds = libm::cbrt(packets as f64 * (1.0 - config.beta) / config.c);
    Duration::from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

impl LossWindow {
    /// Starts with the bytes in flight.
    pub(super) fn new(in_flight: u64, packet: u64, rtt: Duration) -> Self {
        let packets = (in_flight as f64 / packet as f64).max(MIN_PACKETS);
        Self { rule: Cubic::new(CubicConfig::default()), packets, packet, acked: 0, smoothed_rtt: rtt }
    }

    /// Maximum bytes in flight.
    pub(super) fn bytes(&self) -> u64 {
        (self.packets * self.packet as f64) as u64
    }

    /// Bytes per round trip for pacing, and that round trip.
    pub(super) fn pace(&self) -> (u64, Duration) {
        ((self.bytes() as f64 * PACING) as u64, self.smoothed_rtt)
    }

    /// Bytes arrived; `is_limited` if the window was the limit of sending.
    pub(super) fn on_acked(&mut self, now: Time, acked: Bytes, rtt: Option<Duration>, is_limited: bool) {
        if let Some(rtt) = rtt {
            let sum = self.smoothed_rtt.as_nanos().saturating_mul(RTT_GAIN - 1).saturating_add(rtt.as_nanos());
            self.smoothed_rtt = Duration::from_nanos(sum / RTT_GAIN);
        }
        if !is_limited {
            return;
        }
        self.acked = self.acked.saturating_add(acked.get());
        let packets = u32::try_from(self.acked / self.packet).unwrap_or(u32::MAX);
        self.acked %= self.packet;
        if packets > 0 {
            let ack = Ack {
                now,
                acked_packets: packets,
                rtt,
                min_rtt: self.smoothed_rtt,
                smoothed_rtt: self.smoothed_rtt,
                in_flight_packets: 0,
                round: 0,
                window_limited: true,
                marked_packets: 0,
                in_recovery: false,
            };
            self.packets += self.rule.increase(self.packets, &ack);
        }
    }

    /// A queue overflowed.
    pub(super) fn cut(&mut self, now: Time) {
        let loss = Loss { now, in_flight_packets: self.packets as u32 };
        self.packets = self.rule.decrease(self.packets, &loss).max(MIN_PACKETS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn window__is_cut_by_three_tenths_and_is_back_after_k() {
        let mut window = LossWindow::new(1_000_000, 1000, RTT);
        window.cut(Time::ZERO);
        assert_eq!(window.bytes(), 700_000);
        // K = cbrt(1000 x 0.3 / 0.4) = 9.086 s: a window each round trip until then.
        assert_eq!(recovery_time(1000).as_nanos() / 1_000_000, 9085);
        let mut at_ms = 0;
        while at_ms < 9086 {
            at_ms += 100;
            let acked = Bytes::new(window.bytes());
            window.on_acked(Time::from_nanos(at_ms * 1_000_000), acked, Some(RTT), true);
        }
        assert!((990_000..1_010_000).contains(&window.bytes()), "{}", window.bytes());
    }

    #[test]
    fn on_acked__grows_by_whole_packets_if_window_limited() {
        let mut window = LossWindow::new(100_000, 1000, RTT);
        window.on_acked(Time::from_secs(1), Bytes::new(100_000), Some(RTT), false);
        assert_eq!(window.bytes(), 100_000);
        window.on_acked(Time::from_secs(1), Bytes::new(999), None, true);
        assert_eq!(window.bytes(), 100_000);
        window.on_acked(Time::from_secs(1), Bytes::new(1), None, true);
        assert!(window.bytes() > 100_000, "{}", window.bytes());
        // 1.2 windows per round trip.
        let (bytes, rtt) = window.pace();
        assert_eq!((bytes, rtt), ((window.bytes() as f64 * 1.2) as u64, RTT));
    }
}
