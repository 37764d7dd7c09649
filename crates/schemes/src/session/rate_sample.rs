//! What one batch of news of packets says about a path.

use fairwave_units::{Bytes, Duration, Rate};

/// What came of [`DeliveryRate::sample`](super::DeliveryRate::sample): the RS of draft-ietf-ccwg-bbr s2.3 and s4.1.2.1.3,
/// for a batch of any size. Without arrivals, the fields that speak of the newest packet are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// Whether packets arrived, late ones aside, so that there is a newest one.
    pub has_arrivals: bool,
    /// Bytes delivered over the interval, over the interval; `None` where the interval tells nothing.
    pub delivery_rate: Option<Rate>,
    /// From the last arrival before the newest packet was sent until now, or the same of when they were sent, if that
    /// took longer.
    pub interval: Duration,
    /// Bytes delivered since the newest packet was sent.
    pub delivered: Bytes,
    /// Bytes that had been delivered when the newest packet was sent.
    pub prior_delivered: Bytes,
    /// Bytes in flight right after the newest packet was sent.
    pub tx_in_flight: Bytes,
    /// Bytes lost since the newest packet was sent.
    pub lost: Bytes,
    /// Whether something else than the path and its controller held the sending back: the rate may be too low.
    pub is_app_limited: bool,
    /// Round-trip time of the newest packet.
    pub rtt: Option<Duration>,
    /// Bytes that arrived with this batch, late ones included.
    pub newly_acked: Bytes,
    /// Bytes that this batch told as lost.
    pub newly_lost: Bytes,
    /// Bytes that arrived though they had been told as lost.
    pub newly_late: Bytes,
    /// Of those that arrived, bytes that carried a mark of congestion.
    pub newly_marked: Bytes,
    /// Ranges of packets that this batch told as lost.
    pub lost_ranges: u32,
    /// The first range lost of this batch at which more was lost than is tolerated.
    pub excess: Option<LossPoint>,
    /// Bytes delivered so far, this batch included.
    pub total_delivered: Bytes,
    /// Bytes in flight after this batch.
    pub in_flight: Bytes,
}

/// A range of lost packets, and what was lost with it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossPoint {
    /// Bytes of the range.
    pub bytes: Bytes,
    /// Bytes lost since its last packet was sent, the range included.
    pub lost: Bytes,
    /// Bytes in flight right after its last packet was sent.
    pub tx_in_flight: Bytes,
    /// Whether something else than the path and its controller held the sending back then.
    pub is_app_limited: bool,
}

/// Loss that is tolerated, of what was in flight: LossThresh of draft-ietf-ccwg-bbr s2.8.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;

impl RateSample {
    /// Whether more was lost since the newest packet was sent than is tolerated (draft-ietf-ccwg-bbr s5.5.10.2).
    pub fn is_loss_excess(&self) -> bool {
        is_excess(self.lost, self.tx_in_flight)
    }
}

impl LossPoint {
    /// The same of this range.
    pub fn is_excess(&self) -> bool {
        is_excess(self.lost, self.tx_in_flight)
    }

    /// What was in flight when losses began to be more than is tolerated: somewhere within this range, if it is the
    /// first one (draft-ietf-ccwg-bbr s5.5.10.2, InflightAtLoss).
    pub fn in_flight_at_loss(&self) -> Bytes {
        let [bytes, lost, in_flight] = [self.bytes, self.lost, self.tx_in_flight].map(|bytes| bytes.get() as f64);
        let (in_flight_before, lost_before) = ((in_flight - bytes).max(0.0), (lost - bytes).max(0.0));
        let prefix = (LOSS_THRESHOLD * in_flight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
        // The cast rounds down, and what is below zero is none.
        Bytes::new((in_flight_before + prefix.max(0.0)) as u64)
    }
}

fn is_excess(lost: Bytes, in_flight: Bytes) -> bool {
    lost.get() as f64 > LOSS_THRESHOLD * in_flight.get() as f64
}
