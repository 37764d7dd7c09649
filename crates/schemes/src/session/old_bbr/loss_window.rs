//! The window of a loss-based flow.

use fairwave_units::{Bytes, Duration, Time};

use super::super::{Ack, Cubic, CubicConfig, Loss, WindowRule};

/// Bytes that CUBIC would have in flight (RFC 9438): the window for as long as other flows keep the queue full.
///
/// Ours: a model in the draft keeps twice what fills the path in flight, whatever others have in the queue, and takes
/// what they left at its next probe. If others fill the queue, its share is then its share of the bytes in flight, and
/// depends on the size of the queue: too little in a deep one, too much in a shallow one. As in Copa (Arun and
/// Balakrishnan, NSDI 2018, s4.1) and Nimbus (Goyal et al., SIGCOMM 2022), the model then behaves like the others.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LossWindow {
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
pub(in super::super) fn recovery_time(packets: u64) -> Duration {
    let config = CubicConfig::default();
    let seconds = (packets as f64 * (1.0 - config.beta) / config.c).cbrt();
    Duration::from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

impl LossWindow {
    /// Starts with the bytes in flight.
    pub(in super::super) fn new(in_flight: u64, packet: u64, rtt: Duration) -> Self {
        let packets = (in_flight as f64 / packet as f64).max(MIN_PACKETS);
        Self { rule: Cubic::new(CubicConfig::default()), packets, packet, acked: 0, smoothed_rtt: rtt }
    }

    /// Maximum bytes in flight.
    pub(in super::super) fn bytes(&self) -> u64 {
        (self.packets * self.packet as f64) as u64
    }

    /// Bytes per round trip for pacing, and that round trip.
    pub(in super::super) fn pace(&self) -> (u64, Duration) {
        ((self.bytes() as f64 * PACING) as u64, self.smoothed_rtt)
    }

    /// Bytes arrived; `is_limited` if the window was the limit of sending.
    pub(in super::super) fn on_acked(&mut self, now: Time, acked: Bytes, rtt: Option<Duration>, is_limited: bool) {
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
                in_recovery: false,
            };
            self.packets += self.rule.increase(self.packets, &ack);
        }
    }

    /// A queue overflowed.
    pub(in super::super) fn cut(&mut self, now: Time) {
        let loss = Loss { now, in_flight_packets: self.packets as u32 };
        self.packets = self.rule.decrease(self.packets, &loss).max(MIN_PACKETS);
    }
}
