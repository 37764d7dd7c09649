//! Growth of a window below ssthresh.

use super::Ack;

/// The form of slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum SlowStart {
    /// RFC 5681: one packet per acknowledgement, doubling per round trip.
    #[default]
    Standard,
    /// Limited slow start (RFC 3742): above `max_ssthresh_packets` at most half of it per round trip.
    Limited {
        /// RFC 3742 recommends 100; Wu & Chien 2006 used 50.
        max_ssthresh_packets: f64,
    },
    /// The `max_ssthresh_` of ns-2: slow start ends there, and until the first loss (and again after a time-out) the
    /// window grows by at least 1/floor(w / (max_ssthresh/2)) per acknowledgement beyond it.
    LimitedNs2 {
        /// The option's value in packets.
        max_ssthresh_packets: f64,
    },
}

impl SlowStart {
    /// The first ssthresh, if the session asks for `wanted_packets`.
    pub(super) fn first_ssthresh(self, wanted_packets: f64) -> f64 {
        match self {
            Self::LimitedNs2 { max_ssthresh_packets } => wanted_packets.min(max_ssthresh_packets),
            Self::Standard | Self::Limited { .. } => wanted_packets,
        }
    }

    /// Growth in packets for one acknowledgement below ssthresh.
    pub(super) fn increase(self, window_packets: f64, ack: &Ack) -> f64 {
        // RFC 5681 s3.1: at most one packet per acknowledgement, however many it covers.
        let whole = f64::from(ack.acked_packets.min(1));
        match self {
            Self::Limited { max_ssthresh_packets: max } if window_packets > max => whole / k(window_packets, max),
            _ => whole,
        }
    }

    /// Minimum growth in packets for one acknowledgement above ssthresh before the first loss.
    pub(super) fn floor_while_probing(self, window_packets: f64, ack: &Ack) -> f64 {
        match self {
            Self::LimitedNs2 { max_ssthresh_packets: max } if window_packets >= max => {
                f64::from(ack.acked_packets.min(1)) / k(window_packets, max)
            }
            _ => 0.0,
        }
    }
}

/// RFC 3742: K = int(cwnd / (0.5 max_ssthresh)).
fn k(window_packets: f64, max_ssthresh_packets: f64) -> f64 {
    (window_packets / (0.5 * max_ssthresh_packets)).floor().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    #[test]
    fn increase__limited_follows_rfc_3742() {
        let limited = SlowStart::Limited { max_ssthresh_packets: 100.0 };
        // RFC 3742 s2: one packet up to max_ssthresh, then 1/2, 1/3 ... per acknowledgement.
        for (window, growth) in
            [(99.0, 1.0), (100.0, 1.0), (101.0, 0.5), (149.0, 0.5), (150.0, 1.0 / 3.0), (1000.0, 0.05)]
        {
            assert_eq!(limited.increase(window, &test_ack(1)), growth, "at {window} packets");
        }
    }

    #[test]
    fn floor_while_probing__ns2_grows_25_packets_per_round_trip() {
        let ns2 = SlowStart::LimitedNs2 { max_ssthresh_packets: 50.0 };
        assert_eq!(ns2.first_ssthresh(f64::INFINITY), 50.0);
        assert_eq!(ns2.floor_while_probing(50.0, &test_ack(1)), 0.5);
        assert_eq!(ns2.floor_while_probing(1000.0, &test_ack(1)), 1.0 / 40.0); // 1000 acks x 1/40 = 25
    }
}
