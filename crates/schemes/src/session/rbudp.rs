//! Reliable Blast UDP (He, Leigh, Yu & DeFanti 2002): everything is sent at a fixed rate; then the missing packets are
//! sent again, until all have arrived. There is no congestion control.

use std::collections::VecDeque;
use std::ops::Range;

use crate::scheme::{Model, Scheme, entry};

/// The rounds of one transfer, as its source sees them.
#[derive(Clone, Debug)]
pub struct Rbudp {
    /// Packets still to send in this round, in ascending order.
    to_send: VecDeque<Range<u64>>,
    round: u32,
}

impl Rbudp {
    /// A transfer of `size_packets` packets, at the start of its first round.
    pub fn new(size_packets: u64) -> Self {
        let mut transfer = Self { to_send: VecDeque::new(), round: 0 };
        transfer.begin_round(std::iter::once(0..size_packets));
        transfer
    }

    /// The next packet of this round; `None` when the round is sent.
    pub fn next_packet(&mut self) -> Option<u64> {
        let first = self.to_send.front_mut()?;
        let number = first.start;
        first.start += 1;
        if first.is_empty() {
            self.to_send.pop_front();
        }
        Some(number)
    }

    /// Whether this round is sent.
    pub fn is_round_out(&self) -> bool {
        self.to_send.is_empty()
    }

    /// Starts a round with the packets missing in the sink's bitmap, in order; returns false if none are missing.
    pub fn begin_round(&mut self, missing: impl Iterator<Item = Range<u64>>) -> bool {
        self.to_send.clear();
        self.to_send.extend(missing.filter(|range| !range.is_empty()));
        self.round += u32::from(!self.to_send.is_empty());
        !self.to_send.is_empty()
    }

    /// Number of rounds so far, including this one.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Bytes of the sink's bitmap: one bit per packet.
    pub fn bitmap_bytes(size_packets: u64) -> u64 {
        size_packets.div_ceil(8)
    }
}

/// Share of the packets lost in a round that is sent at `rate_bps` through `capacity_bps`: the excess over the
/// capacity.
pub fn rbudp_loss(rate_bps: f64, capacity_bps: f64) -> f64 {
    if rate_bps > capacity_bps { 1.0 - capacity_bps / rate_bps } else { 0.0 }
}

/// Duration of a transfer: the bytes of each round at the rate, plus a round-trip time per round. He et al. 2002,
/// section 3: S / B + RTT without losses.
pub fn rbudp_transfer_s(size_bits: f64, rate_bps: f64, rtt_s: f64, loss: f64, packets: f64) -> f64 {
    let (mut left, mut sent, mut rounds) = (1.0, 0.0, 0.0);
    // Until less than a packet is left.
    while left * packets >= 1.0 && rounds < 1000.0 {
        sent += left;
        rounds += 1.0;
        left *= loss.clamp(0.0, 1.0);
    }
    sent * size_bits / rate_bps + rounds * rtt_s
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    models: &[Model::Packet],
    needs: "a demand (its rate) and a size",
    ..entry::session("rbudp", "sends at a fixed rate, then resends losses until all data has arrived", "He et al. 2002")
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(transfer: &mut Rbudp) -> Vec<u64> {
        std::iter::from_fn(|| transfer.next_packet()).collect()
    }

    #[test]
    fn rounds__send_missing_packets_in_order() {
        let mut transfer = Rbudp::new(10);
        assert_eq!(round(&mut transfer), (0..10).collect::<Vec<_>>());
        assert!(transfer.is_round_out() && transfer.begin_round([1..3, 5..5, 9..10].into_iter()));
        assert_eq!((round(&mut transfer), transfer.round()), (vec![1, 2, 9], 2));
        assert!(!transfer.begin_round(std::iter::empty()));
        assert_eq!((transfer.next_packet(), transfer.round()), (None, 2));
        assert_eq!(Rbudp::bitmap_bytes(10), 2);
    }

    #[test]
    fn transfer__takes_the_blasts_and_a_round_trip_each() {
        // 1 Gb at 500 Mb/s: 2 s and one RTT.
        assert!((rbudp_transfer_s(1e9, 500e6, 0.1, 0.0, 1e5) - 2.1).abs() < 1e-12);
        // At twice the capacity half is lost: 1 + 1/2 + 1/4 + ... of 17 rounds, until 1e5 / 2^17 < 1.
        let loss = rbudp_loss(1e9, 500e6);
        assert_eq!(loss, 0.5);
        assert!((rbudp_transfer_s(1e9, 1e9, 0.1, loss, 1e5) - (2.0 - 0.5_f64.powi(16) + 1.7)).abs() < 1e-9);
        assert_eq!(rbudp_loss(400e6, 500e6), 0.0);
    }

    proptest! {
        /// For any bitmaps: every missing packet is sent once per round, and no others.
        #[test]
        fn rounds__send_each_missing_packet_once(size in 0_u64..100, lost in proptest::collection::vec(0_u64..100, 0..50)) {
            let mut transfer = Rbudp::new(size);
            prop_assert_eq!(round(&mut transfer), (0..size).collect::<Vec<_>>());
            let missing: std::collections::BTreeSet<u64> = lost.into_iter().filter(|number| *number < size).collect();
            let goes_on = transfer.begin_round(missing.iter().map(|number| *number..number + 1));
            prop_assert_eq!(goes_on, !missing.is_empty());
            prop_assert_eq!(round(&mut transfer), missing.into_iter().collect::<Vec<_>>());
        }
    }
}
