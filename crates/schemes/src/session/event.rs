//! The fate of packets, as a rule learns it.

use fairwave_units::{Duration, Time};

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Packets newly acknowledged, cumulatively and selectively.
    pub acked_packets: u32,
    /// Round-trip time of the newest acknowledged packet, if it was sent once.
    pub rtt: Option<Duration>,
    /// Minimum round-trip time of the session.
    pub min_rtt: Duration,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Packets in flight before it arrived.
    pub in_flight_packets: u32,
    /// Number of the round trip, which increases each time that a packet sent in the previous round is acknowledged.
    pub round: u64,
    /// Whether the window, not the application or the receiver, limited what was sent.
    pub window_limited: bool,
    /// Packets that arrived with a congestion mark since the last acknowledgement; zero without ECN.
    pub marked_packets: u32,
    /// Whether the session is in recovery.
    pub in_recovery: bool,
}

/// A loss, or a time-out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Time of detection.
    pub now: Time,
    /// Packets in flight at that time (RFC 5681's FlightSize).
    pub in_flight_packets: u32,
}

impl Loss {
    /// Half of the packets in flight, at least two packets: ssthresh after a loss (RFC 5681, Eq. 4).
    pub(crate) fn half_of_flight_packets(&self) -> f64 {
        (f64::from(self.in_flight_packets) / 2.0).max(2.0)
    }
}

/// An acknowledgement for tests of the rules.
#[cfg(test)]
pub(crate) fn test_ack(acked_packets: u32) -> Ack {
    let rtt = Duration::from_millis(100);
    Ack {
        now: Time::from_secs(1),
        acked_packets,
        rtt: Some(rtt),
        min_rtt: rtt,
        smoothed_rtt: rtt,
        in_flight_packets: 1,
        round: 0,
        window_limited: true,
        marked_packets: 0,
        in_recovery: false,
    }
}

/// A loss for tests of the rules.
#[cfg(test)]
pub(crate) fn test_loss(in_flight_packets: u32) -> Loss {
    Loss { now: Time::from_secs(1), in_flight_packets }
}
