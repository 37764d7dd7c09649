//! The bound found by probing.

/// Headroom for others, as a share of the bound (BBR s2.8, Headroom).
const HEADROOM: f64 = 0.15;
/// Maximum doublings of its growth (BBR s5.3.3.9).
const MAX_DOUBLINGS: u32 = 30;

/// Maximum bytes in flight by the losses of probes (inflight_longterm of BBR s2.9.2), and its growth while a probe
/// reaches it: 1, 2, 4 ... packets per round trip, spread over the round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongTerm {
    /// `None` before the first losses of a probe.
    bytes: Option<u64>,
    up_rounds: u32,
    up_acked: u64,
    /// Bytes that arrive for each packet by which the bound grows.
    acked_per_packet: u64,
}

impl LongTerm {
    pub(super) fn new() -> Self {
        Self { bytes: None, up_rounds: 0, up_acked: 0, acked_per_packet: u64::MAX }
    }

    pub(crate) fn bytes(self) -> Option<u64> {
        self.bytes
    }

    pub(crate) fn set(&mut self, bytes: Option<u64>) {
        self.bytes = bytes;
    }

    /// Whether so many bytes in flight, or in the window, reach it.
    pub(super) fn is_reached(self, bytes: u64) -> bool {
        self.bytes.is_some_and(|bound| bytes >= bound)
    }

    /// Losses are tolerable: the bound is at least what was in flight.
    pub(super) fn raise_to(&mut self, tx_in_flight: u64) {
        self.bytes = self.bytes.map(|bound| bound.max(tx_in_flight));
    }

    /// The bound is widened to an earlier one; `None` is the widest.
    pub(super) fn widen(&mut self, before: Option<u64>) {
        self.bytes = self.bytes.zip(before).map(|(now, before)| now.max(before));
    }

    /// The bound minus the headroom for others (BBR s5.3.3.9, InflightWithHeadroom).
    pub(super) fn with_headroom(self, packet: u64) -> Option<u64> {
        let bound = self.bytes?;
        Some(bound.saturating_sub(((bound as f64 * HEADROOM) as u64).max(packet)))
    }

    /// A refill starts: the next probe grows it by one packet at first.
    pub(super) fn begin_refill(&mut self) {
        (self.up_rounds, self.up_acked) = (0, 0);
    }

    /// A probe is over.
    pub(super) fn stop(&mut self) {
        self.acked_per_packet = u64::MAX;
    }

    /// Doubles the growth (BBR s5.3.3.9, RaiseInflightLongtermSlope).
    pub(super) fn raise_slope(&mut self, window: u64, packet: u64) {
        let growth = 1_u64 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MAX_DOUBLINGS);
        self.acked_per_packet = (window / growth).max(packet);
    }

    /// Bytes arrived while the bound limited a probe (BBR s5.3.3.9, ProbeInflightLongtermUpward).
    pub(super) fn grow(&mut self, acked: u64, packet: u64) {
        self.up_acked = self.up_acked.saturating_add(acked);
        let packets = self.up_acked / self.acked_per_packet;
        self.up_acked -= packets * self.acked_per_packet;
        self.bytes = self.bytes.map(|bound| bound.saturating_add(packets.saturating_mul(packet)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_headroom__is_15_per_cent_or_a_packet() {
        let with_headroom = |packets: u64| {
            let mut bound = LongTerm::new();
            bound.set(Some(packets * 1000));
            bound.with_headroom(1000)
        };
        assert_eq!([100, 5].map(with_headroom), [Some(85_000), Some(4000)]);
        assert_eq!(LongTerm::new().with_headroom(1000), None);
    }

    #[test]
    fn grow__by_1_2_4_packets_a_round_trip() {
        let mut bound = LongTerm::new();
        bound.set(Some(80_000));
        bound.begin_refill();
        let mut grown = Vec::new();
        for _ in 0..5 {
            bound.raise_slope(80_000, 1000);
            let before = bound.bytes().unwrap();
            (0..80).for_each(|_| bound.grow(1000, 1000));
            grown.push((bound.bytes().unwrap() - before) / 1000);
        }
        assert_eq!(grown, [1, 2, 4, 8, 16]);
        bound.stop();
        bound.grow(1_000_000, 1000);
        assert_eq!(bound.bytes(), Some(111_000));
    }
}
