//! CUBIC on a path.

use fairwave_schemes::session::{
    Ack, CongestionController, Cubic, CubicConfig, Loss, RateSample, WindowConfig, Windowed,
};
use fairwave_units::{Bytes, Duration, Rate, Time};

/// CUBIC (RFC 9438) as the one window of all sessions of a path, driven by reports: what arrived acknowledges packet by
/// packet, a loss or a mark cuts it once a round trip, and what arrives late after all takes the cut back.
///
/// The window bounds what is in flight, and packets go at a little more than a window a round trip, as Linux paces
/// them: 1.2 of it, and twice of it in slow start.
#[derive(Clone, Debug)]
pub(super) struct CubicPath {
    rule: Windowed<Cubic>,
    packet: Bytes,
    min_rtt: Duration,
    smoothed_rtt: Duration,
    /// Round trips so far, and what is to be delivered until the next.
    round: u64,
    round_ends: u64,
    /// Recovery ends when a packet arrives that was sent after this many bytes were delivered.
    recovers_until: Option<u64>,
    cut: Option<Cut>,
    /// Acknowledged parts of packets.
    acked_bytes: u64,
}

/// The last cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    window_packets: f64,
    lost_bytes: u64,
}

/// RFC 6928.
const FIRST_PACKETS: f64 = 10.0;
/// Pacing in congestion avoidance, as a multiple of window / RTT (Linux: tcp_pacing_ca_ratio).
const PACING: f64 = 1.2;
/// Pacing in slow start, as a multiple of window / RTT (Linux: tcp_pacing_ss_ratio).
const STARTING: f64 = 2.0;
/// Lower bound of the round-trip time in a rate: that of one host to itself.
const MIN_RTT: Duration = Duration::from_micros(10);

impl CubicPath {
    pub(super) fn new(rtt: Duration, packet: Bytes) -> Self {
        let config = WindowConfig { initial_window_packets: FIRST_PACKETS, ..WindowConfig::default() };
        Self {
            rule: Windowed::new(Cubic::new(CubicConfig::default()), config),
            packet,
            min_rtt: rtt,
            smoothed_rtt: rtt,
            round: 0,
            round_ends: 0,
            recovers_until: None,
            cut: None,
            acked_bytes: 0,
        }
    }

    pub(super) fn rate(&self) -> Rate {
        let is_starting = self.rule.window().packets() < self.rule.ssthresh_packets();
        let factor = if is_starting { STARTING } else { PACING };
        let bits = self.rule.window().packets() * self.packet.as_bits_f64();
        Rate::nearest_bps(factor * bits / self.smoothed_rtt.max(MIN_RTT).as_secs_f64())
    }

    pub(super) fn window(&self) -> Bytes {
        // The cast ends at the largest number.
        Bytes::new((self.rule.window().packets() * self.packet.get() as f64) as u64)
    }

    pub(super) fn on_sample(&mut self, now: Time, sample: &RateSample, smoothed_rtt: Duration) {
        self.smoothed_rtt = smoothed_rtt;
        if let Some(rtt) = sample.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        if sample.has_arrivals && sample.prior_delivered.get() >= self.round_ends {
            self.round += 1;
            self.round_ends = sample.total_delivered.get();
        }
        if sample.has_arrivals && self.recovers_until.is_some_and(|until| sample.prior_delivered.get() >= until) {
            self.recovers_until = None;
        }
        let news = sample.newly_acked.get().saturating_add(sample.newly_lost.get());
        let in_flight = self.packets(sample.in_flight.get().saturating_add(news));
        self.undo(sample.newly_late.get());
        if sample.newly_lost > Bytes::ZERO || sample.newly_marked > Bytes::ZERO {
            if self.recovers_until.is_none() {
                self.cut = Some(Cut { window_packets: self.rule.window().packets(), lost_bytes: 0 });
                self.rule.on_loss(&Loss { now, in_flight_packets: in_flight });
                self.recovers_until = Some(sample.total_delivered.get().saturating_add(1));
            }
            if let Some(cut) = &mut self.cut {
                // A mark is never taken back.
                let marked = if sample.newly_marked > Bytes::ZERO { u64::MAX } else { 0 };
                cut.lost_bytes = cut.lost_bytes.saturating_add(sample.newly_lost.get()).saturating_add(marked);
            }
        }
        self.acked_bytes = self.acked_bytes.saturating_add(sample.newly_acked.get());
        let acked = self.packets(self.acked_bytes);
        self.acked_bytes %= self.packet.get();
        // RFC 5681 s3.1 grows by one packet an acknowledgement, and here one report is that of many.
        for _ in 0..acked {
            self.rule.on_ack(&Ack {
                now,
                acked_packets: 1,
                rtt: sample.rtt,
                min_rtt: self.min_rtt,
                smoothed_rtt: self.smoothed_rtt,
                in_flight_packets: in_flight,
                round: self.round,
                window_limited: !sample.is_app_limited,
                marked_packets: 0,
                in_recovery: self.recovers_until.is_some(),
            });
        }
    }

    /// `late_bytes` that were judged lost have arrived: if that is all that the last cut was for, the cut is undone.
    fn undo(&mut self, late_bytes: u64) {
        let Some(cut) = self.cut.as_mut().filter(|_| late_bytes > 0) else { return };
        cut.lost_bytes = cut.lost_bytes.saturating_sub(late_bytes);
        if cut.lost_bytes == 0 {
            self.rule.set_window_packets(self.rule.window().packets().max(cut.window_packets));
            (self.cut, self.recovers_until) = (None, None);
        }
    }

    fn packets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.packet.get().max(1)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const PACKET: Bytes = Bytes::new(1250);

    fn sample(delivered: u64, arrived: u64, lost: u64) -> RateSample {
        RateSample {
            has_arrivals: arrived > 0,
            rtt: Some(RTT),
            newly_acked: Bytes::new(arrived * 1250),
            newly_lost: Bytes::new(lost * 1250),
            prior_delivered: Bytes::new(delivered.saturating_sub(arrived) * 1250),
            total_delivered: Bytes::new(delivered * 1250),
            ..RateSample::default()
        }
    }

    fn window(cubic: &CubicPath) -> u64 {
        cubic.window().get() / 1250
    }

    #[test]
    fn window__doubles_a_round_trip_and_is_cut_once_for_all_that_it_lost() {
        let mut cubic = CubicPath::new(RTT, PACKET);
        assert_eq!((window(&cubic), cubic.rate().as_mbps()), (10, 2.0)); // twice 10 x 10 000 bits in 0.1 s
        cubic.on_sample(Time::ZERO, &sample(10, 10, 0), RTT);
        cubic.on_sample(Time::ZERO, &sample(30, 20, 0), RTT);
        assert_eq!(window(&cubic), 40);
        // RFC 9438 s4.6: 0.7 of it.
        cubic.on_sample(Time::ZERO, &sample(40, 10, 3), RTT);
        assert_eq!((window(&cubic), (cubic.rate().as_mbps() * 1000.0).round()), (28, 3360.0));
        // Of the same flight.
        cubic.on_sample(Time::ZERO, &RateSample { prior_delivered: Bytes::new(1250), ..sample(45, 5, 2) }, RTT);
        assert_eq!(window(&cubic), 28);
    }

    #[test]
    fn window__is_back_when_all_that_was_lost_has_come() {
        let mut cubic = CubicPath::new(RTT, PACKET);
        cubic.on_sample(Time::ZERO, &sample(10, 10, 0), RTT);
        cubic.on_sample(Time::ZERO, &sample(20, 1, 2), RTT);
        assert_eq!(window(&cubic), 14);
        let late = |packets: u64| RateSample { newly_late: Bytes::new(packets * 1250), ..RateSample::default() };
        cubic.on_sample(Time::ZERO, &late(1), RTT);
        assert_eq!(window(&cubic), 14);
        cubic.on_sample(Time::ZERO, &late(1), RTT);
        assert_eq!(window(&cubic), 20);
    }
}
