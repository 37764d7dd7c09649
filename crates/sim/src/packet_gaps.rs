//! A sink's estimates from packet arrivals: their rate, and the capacity of the path.

use std::collections::VecDeque;

use fairwave_units::Time;

/// The last times between packets, and between the packets of back-to-back pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketGaps {
    last: Option<Time>,
    gaps_ns: VecDeque<u64>,
    pairs_ns: VecDeque<u64>,
}

/// Number of gaps in the estimate (draft-gg-udt-03, section 6.2).
const GAPS: usize = 16;
/// Number of pairs in the estimate, as in version 4 of the library; the draft has 16.
const PAIRS: usize = 64;
/// Values above this multiple of the median, or below this fraction of it, do not count.
const FAR: u64 = 8;

impl PacketGaps {
    /// Records an arrival; `is_pair` if it was sent back to back with the previous one.
    pub(crate) fn on_packet(&mut self, now: Time, is_pair: bool) {
        if let Some(last) = self.last {
            let gap_ns = now.since(last).as_nanos();
            keep(&mut self.gaps_ns, gap_ns, GAPS);
            if is_pair {
                keep(&mut self.pairs_ns, gap_ns, PAIRS);
            }
        }
        self.last = Some(now);
    }

    /// Arrival rate in packets per second; zero if too few gaps are similar.
    pub(crate) fn rate_packets_per_s(&self) -> f64 {
        per_s(&self.gaps_ns, GAPS / 2 + 1)
    }

    /// Capacity of the path in packets per second; zero before the first pair.
    pub(crate) fn capacity_packets_per_s(&self) -> f64 {
        per_s(&self.pairs_ns, 1)
    }
}

fn keep(gaps_ns: &mut VecDeque<u64>, gap_ns: u64, most: usize) {
    if gaps_ns.len() == most {
        gaps_ns.pop_front();
    }
    gaps_ns.push_back(gap_ns);
}

/// The inverse of the mean of the gaps near their median, if there are at least `least` of them.
fn per_s(gaps_ns: &VecDeque<u64>, least: usize) -> f64 {
    let mut sorted: Vec<u64> = gaps_ns.iter().copied().collect();
    sorted.sort_unstable();
    let Some(&median) = sorted.get(sorted.len() / 2) else { return 0.0 };
    let near = sorted.iter().filter(|gap| **gap <= median.saturating_mul(FAR) && gap.saturating_mul(FAR) >= median);
    let (count, sum) = near.fold((0_u64, 0_u64), |(count, sum), gap| (count + 1, sum.saturating_add(*gap)));
    if count >= least as u64 && sum > 0 { count as f64 * 1e9 / sum as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    #[test]
    fn rate__excludes_outliers() {
        let mut arrivals = PacketGaps::default();
        let mut now = 0;
        assert_eq!(arrivals.rate_packets_per_s(), 0.0);
        // Gaps of 100 us, and four of 10 ms among the last 16: 10 000 packets/s.
        for packet in 0..40 {
            now += if packet % 4 == 3 { 10_000 } else { 100 };
            arrivals.on_packet(at(now), false);
        }
        assert_eq!((arrivals.rate_packets_per_s(), arrivals.capacity_packets_per_s()), (10_000.0, 0.0));
        // Three kinds, none of them a majority: 5 of 1 us, 6 of 100 us, 5 of 10 ms.
        for packet in 0..16 {
            now += [1, 100, 10_000][packet % 3];
            arrivals.on_packet(at(now), false);
        }
        assert_eq!(arrivals.rate_packets_per_s(), 0.0);
    }

    #[test]
    fn capacity__uses_pairs_only() {
        let mut arrivals = PacketGaps::default();
        let mut now = 0;
        // Pairs 10 us apart, all other packets 50 us.
        for packet in 0..200 {
            let is_pair = packet % 16 == 1;
            now += if is_pair { 10 } else { 50 };
            arrivals.on_packet(at(now), is_pair);
        }
        assert_eq!(arrivals.capacity_packets_per_s(), 100_000.0);
        // 15 of 16 at 50 us and one at 10 us: 16 / 760 us.
        assert!((arrivals.rate_packets_per_s() - 16.0 / 760e-6).abs() < 1e-6);
    }
}
