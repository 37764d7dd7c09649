//! The measurement of a path by one batch of feedback.

use fairwave_units::{Bytes, Duration, Rate};

/// Result of [`DeliveryRate::sample`](super::DeliveryRate::sample): the RS of draft-ietf-ccwg-bbr s2.3 and s4.1.2.1.3,
/// for a batch of any size. Without arrivals, the fields of the newest packet are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// Whether packets arrived, apart from late ones, so that there is a newest one.
    pub has_arrivals: bool,
    /// Bytes delivered over the interval, divided by it; `None` if the interval is not reliable.
    pub delivery_rate: Option<Rate>,
    /// From the last arrival before the newest packet was sent until now, or the corresponding time between sends, if
    /// that is longer.
    pub interval: Duration,
    /// The time between sends.
    pub sending: Duration,
    /// Bytes delivered since the newest packet was sent.
    pub delivered: Bytes,
    /// Bytes that had been delivered when the newest packet was sent.
    pub prior_delivered: Bytes,
    /// Bytes in flight right after the newest packet was sent.
    pub tx_in_flight: Bytes,
    /// Bytes lost since the newest packet was sent.
    pub lost: Bytes,
    /// Whether something other than the path and its controller limited sending: the rate may be too low.
    pub is_app_limited: bool,
    /// Round-trip time of the newest packet.
    pub rtt: Option<Duration>,
    /// Bytes that arrived with this batch, including late ones.
    pub newly_acked: Bytes,
    /// Bytes that this batch reported as lost.
    pub newly_lost: Bytes,
    /// Bytes that arrived after they had been reported as lost.
    pub newly_late: Bytes,
    /// Of the arrivals, bytes with a congestion mark.
    pub newly_marked: Bytes,
    /// Bytes sent since the last sample beyond the controller's rate, to catch up after a time in which the source
    /// could not send.
    pub made_up: Bytes,
    /// Ranges of packets that this batch reported as lost.
    pub lost_ranges: u32,
    /// Of the ranges lost in this batch the one with the largest share of the bytes in flight.
    pub worst_loss: Option<LossPoint>,
    /// Bytes that had been delivered when the last of the packets was sent that this batch reported as lost.
    pub lost_delivered: Bytes,
    /// Bytes delivered so far, including this batch.
    pub total_delivered: Bytes,
    /// Bytes in flight after this batch.
    pub in_flight: Bytes,
}

/// A range of lost packets, and the losses up to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossPoint {
    /// Bytes of the range.
    pub bytes: Bytes,
    /// Bytes lost since its last packet was sent, including the range.
    pub lost: Bytes,
    /// Bytes in flight right after its last packet was sent.
    pub tx_in_flight: Bytes,
    /// Whether something other than the path and its controller limited sending at that time.
    pub is_app_limited: bool,
}

impl RateSample {
    /// Bytes lost since the newest packet was sent, as a share of those in flight at that time (draft-ietf-ccwg-bbr
    /// s5.5.10.2, IsInflightTooHigh).
    pub fn loss_share(&self) -> f64 {
        share(self.lost, self.tx_in_flight)
    }
}

impl LossPoint {
    /// Bytes lost up to the end of this range, as a share of those in flight.
    pub fn share(&self) -> f64 {
        share(self.lost, self.tx_in_flight)
    }

    /// Bytes in flight when losses started to exceed the share `tolerated` (draft-ietf-ccwg-bbr s5.5.10.2,
    /// InflightAtLoss): within this range, or before it if more had been lost already.
    pub fn in_flight_at(&self, tolerated: f64) -> Bytes {
        let [bytes, lost, in_flight] = [self.bytes, self.lost, self.tx_in_flight].map(|bytes| bytes.get() as f64);
        let (in_flight_before, lost_before) = ((in_flight - bytes).max(0.0), (lost - bytes).max(0.0));
        let prefix = (tolerated * in_flight_before - lost_before) / (1.0 - tolerated);
        // The cast rounds down, and saturates at zero.
        Bytes::new((in_flight_before + prefix) as u64)
    }
}

fn share(lost: Bytes, in_flight: Bytes) -> f64 {
    if lost == Bytes::ZERO { 0.0 } else { lost.get() as f64 / in_flight.get().max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_flight_at__is_where_losses_exceeded_the_tolerance() {
        let point = |bytes, lost, in_flight| LossPoint {
            bytes: Bytes::new(bytes),
            lost: Bytes::new(lost),
            tx_in_flight: Bytes::new(in_flight),
            is_app_limited: false,
        };
        // Nothing was lost of the 98 000 in flight before it: 0.02 x 98 000 / 0.98 of the range may be.
        let whole = point(10_000, 10_000, 108_000);
        assert!((whole.share() - 10.0 / 108.0).abs() < 1e-12);
        assert_eq!(whole.in_flight_at(0.02), Bytes::new(100_000));
        // 100 packets in flight before it, of which 1 or 3 were lost: 100 + 1/0.98, and 100 - 1/0.98.
        assert_eq!(point(1000, 2000, 101_000).in_flight_at(0.02), Bytes::new(101_020));
        assert_eq!(point(1000, 4000, 101_000).in_flight_at(0.02), Bytes::new(98_979));
        assert_eq!(point(0, 0, 0).share(), 0.0);
    }
}
