//! A session's rule without a network, for studies and plots, which drive it instead of a sender.

use fairwave_units::{Duration, Time};

use super::{Ack, CongestionController, Loss};

/// A rule with a clock and the state that a sender would have: the round trips, the minimum and the smoothed RTT.
///
/// The window is always full, and recovery ends immediately: each acknowledgement counts.
pub struct Solo {
    rule: Box<dyn CongestionController>,
    now: Time,
    /// Rounding remainder of the clock: less than a nanosecond.
    owed_ns: f64,
    round: u64,
    /// Packets still to be acknowledged in this round trip.
    left_packets: f64,
    least_rtt: Duration,
    smoothed_rtt: Duration,
}

impl Solo {
    /// A rule at time zero.
    pub fn new(rule: Box<dyn CongestionController>) -> Self {
        Self {
            rule,
            now: Time::ZERO,
            owed_ns: 0.0,
            round: 0,
            left_packets: 0.0,
            least_rtt: Duration::MAX,
            smoothed_rtt: Duration::ZERO,
        }
    }

    /// The clock's time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sets the clock; an earlier time is ignored.
    pub fn advance_to(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Advances the clock by the time in which `acked_packets` acknowledgements of a full window arrive: rtt x packets
    /// / window.
    pub fn advance_by_acks(&mut self, acked_packets: u32, rtt: Duration) {
        let span_ns = rtt.as_nanos() as f64 * f64::from(acked_packets) / self.window_packets() + self.owed_ns;
        self.owed_ns = span_ns.fract();
        self.now = self.now.saturating_add(Duration::from_nanos(span_ns as u64));
    }

    /// `acked_packets` packets are acknowledged now, with this round-trip time.
    pub fn on_ack(&mut self, acked_packets: u32, rtt: Duration) {
        let in_flight_packets = self.full_window();
        if self.left_packets <= 0.0 {
            self.round += 1;
            self.left_packets = self.window_packets();
        }
        self.left_packets -= f64::from(acked_packets);
        self.least_rtt = self.least_rtt.min(rtt);
        self.smoothed_rtt = match self.smoothed_rtt {
            Duration::ZERO => rtt,
            // RFC 6298 s2.3: 7/8 of the old, 1/8 of the new.
            old => Duration::from_nanos(old.as_nanos() - old.as_nanos() / 8 + rtt.as_nanos() / 8),
        };
        self.rule.on_ack(&Ack {
            now: self.now,
            acked_packets,
            rtt: Some(rtt),
            min_rtt: self.least_rtt,
            smoothed_rtt: self.smoothed_rtt,
            in_flight_packets,
            round: self.round,
            window_limited: true,
            marked_packets: 0,
            in_recovery: false,
        });
    }

    /// A loss now, with `in_flight_packets` in flight; by default a full window.
    pub fn on_loss(&mut self, in_flight_packets: Option<u32>) {
        let in_flight_packets = in_flight_packets.unwrap_or_else(|| self.full_window());
        self.rule.on_loss(&Loss { now: self.now, in_flight_packets });
        self.left_packets = 0.0;
    }

    /// The retransmission timer expires now, with a full window in flight.
    pub fn on_timeout(&mut self) {
        self.rule.on_timeout(&Loss { now: self.now, in_flight_packets: self.full_window() });
        self.left_packets = 0.0;
    }

    /// The window, in packets.
    pub fn window_packets(&self) -> f64 {
        self.rule.allowance().window_packets
    }

    /// Sets the window, in packets, at least one; the rule keeps it within its own bounds.
    pub fn set_window_packets(&mut self, window_packets: f64) {
        self.rule.set_window_packets(window_packets);
    }

    /// End of slow start, in packets; infinite before the first loss.
    pub fn ssthresh_packets(&self) -> f64 {
        self.rule.ssthresh_packets()
    }

    /// Whole packets of a full window.
    fn full_window(&self) -> u32 {
        self.window_packets() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller_from;
    use super::*;
    use crate::scheme::Options;

    fn solo(name: &str, window_packets: f64, ssthresh_packets: f64) -> Solo {
        Solo::new(controller_from(name, &Options::default(), Some(window_packets), ssthresh_packets).unwrap())
    }

    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn advance_by_acks__window_of_acks_takes_a_round_trip() {
        let mut solo = solo("newreno", 3.0, 2.0);
        for _ in 0..3 {
            solo.advance_by_acks(1, RTT); // 16 666 666.67 ns each: no third is lost
        }
        assert!(solo.now().as_nanos().abs_diff(50_000_000) <= 1, "{:?}", solo.now());
        solo.advance_to(Time::ZERO);
        assert!(solo.now() > Time::ZERO);
    }

    #[test]
    fn on_ack__counts_round_trips_by_windows() {
        let mut solo = solo("newreno", 10.0, f64::INFINITY);
        for _ in 0..10 {
            solo.on_ack(1, RTT);
        }
        assert_eq!((solo.round, solo.window_packets()), (1, 20.0));
        for _ in 0..20 {
            solo.on_ack(1, RTT);
        }
        assert_eq!((solo.round, solo.window_packets()), (2, 40.0));
    }

    #[test]
    fn on_loss__takes_a_full_window_as_in_flight() {
        let mut solo = solo("newreno", 101.5, f64::INFINITY);
        solo.on_loss(None);
        assert_eq!(solo.window_packets(), 50.5); // 101 / 2
        solo.on_loss(Some(20));
        assert_eq!((solo.window_packets(), solo.ssthresh_packets()), (10.0, 10.0));
        solo.on_timeout();
        assert_eq!((solo.window_packets(), solo.ssthresh_packets()), (1.0, 5.0));
    }
}
