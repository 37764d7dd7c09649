//! Web traffic: flows that arrive at random, most of them short and some very long.

use fairwave_scenario::random::RandomStream;
use fairwave_units::{Bytes, Duration, Rate, Time};

/// Draws the arrivals of flows, their sources, and their lengths.
///
/// Independent Poisson sources of equal rate are together one Poisson process, each of whose arrivals belongs to any of
/// the sources with equal probability; so there is one process for any number of sources.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    stream: RandomStream,
    sources: u32,
    /// Mean time between flows, over all sources.
    gap_ns: f64,
    size: Pareto,
    payload_bytes: f64,
}

/// A flow that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WebFlow {
    pub(crate) source: u32,
    pub(crate) packets: u64,
}

impl Web {
    /// Traffic that offers `rate` in packets with this payload and size on the wire.
    pub(crate) fn new(
        rate: Rate,
        sources: u32,
        mean_size: Bytes,
        shape: f64,
        payload: Bytes,
        wire_bytes: u32,
        stream: RandomStream,
    ) -> Self {
        let payload_bytes = payload.get().max(1) as f64;
        let size = Pareto::new(mean_size.get() as f64, shape);
        let flow_bits = size.mean_pieces(payload_bytes) * f64::from(wire_bytes) * 8.0;
        Self { stream, sources, gap_ns: flow_bits / rate.as_bps() * 1e9, size, payload_bytes }
    }

    /// Time of the next arrival, after one at `now`.
    pub(crate) fn next(&mut self, now: Time) -> Time {
        now.saturating_add(exponential(&mut self.stream, self.gap_ns))
    }

    /// The flow that arrives now.
    pub(crate) fn arrival(&mut self) -> WebFlow {
        let source = self.stream.below(u64::from(self.sources)) as u32;
        let bytes = self.size.draw(self.stream.unit());
        WebFlow { source, packets: ((bytes / self.payload_bytes).ceil() as u64).max(1) }
    }
}

/// An exponential time with this mean, in whole nanoseconds.
pub(crate) fn exponential(stream: &mut RandomStream, mean_ns: f64) -> Duration {
    // The unit is below one, and the cast saturates.
    Duration::from_nanos((-libm::log(1.0 - stream.unit()) * mean_ns) as u64)
}

/// Pareto sizes: a share (least / x)^shape of them is above x, from the minimum size on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pareto {
    least: f64,
    shape: f64,
}

impl Pareto {
    /// Sizes with this mean; `shape` is above one.
    fn new(mean: f64, shape: f64) -> Self {
        Self { least: mean * (shape - 1.0) / shape, shape }
    }

    /// By inversion, from a number in [0, 1).
    fn draw(self, unit: f64) -> f64 {
        self.least * libm::pow(1.0 - unit, -1.0 / self.shape)
    }

    /// Mean number of pieces of at most `piece` that a size is cut into: the sum over k of the probability that a size
    /// is above k pieces.
    fn mean_pieces(self, piece: f64) -> f64 {
        /// Terms that are added one by one, before the Euler-Maclaurin formula covers the rest.
        const TERMS: f64 = 32.0;
        let above = |k: f64| libm::pow(self.least / (k * piece), self.shape);
        // Every size is at least the minimum.
        let sure = (self.least / piece).floor() + 1.0;
        let mut sum = sure;
        let mut k = sure;
        while k < sure + TERMS {
            sum += above(k);
            k += 1.0;
        }
        let a = self.shape;
        let rest = k / (a - 1.0) + 0.5 + a / (12.0 * k) - a * (a + 1.0) * (a + 2.0) / (720.0 * k * k * k);
        sum + above(k) * rest
    }
}

#[cfg(test)]
mod tests {
    use fairwave_scenario::random;

    use super::*;

    #[test]
    fn mean_pieces__is_the_sum_over_all_sizes() {
        // A size of exactly that many pieces without spread (a huge shape): cut into that many, and one for the rest.
        let narrow = Pareto { least: 9.5, shape: 1e4 };
        assert!((narrow.mean_pieces(1.0) - 10.0).abs() < 1e-3, "{}", narrow.mean_pieces(1.0));
        // Pieces much smaller than the size: the mean divided by the piece, plus half a piece for the rounding.
        let fine = Pareto::new(12_000.0, 1.2);
        assert!((fine.mean_pieces(1.0) / 12_000.5 - 1.0).abs() < 1e-6, "{}", fine.mean_pieces(1.0));
        // All sizes above one piece at a shape of two: 1 + sum of 1 / k^2 = 1 + pi^2 / 6, with least = piece and the
        // minimum sizes no piece more.
        let zeta = Pareto { least: 1.0, shape: 2.0 }.mean_pieces(1.0);
        // floor(1) + 1 = 2 terms are sure (k = 0 and k = 1), the others 1 / k^2 from k = 2 on.
        assert!((zeta - (1.0 + std::f64::consts::PI.powi(2) / 6.0)).abs() < 1e-9, "{zeta}");
        // The sum itself, term by term, if it ends soon.
        let (sizes, mut sum) = (Pareto::new(700.0, 3.5), 0.0);
        for k in 0..2_000_000 {
            sum += (sizes.least / (f64::from(k) * 1000.0)).powf(3.5).min(1.0);
        }
        assert!((sizes.mean_pieces(1000.0) / sum - 1.0).abs() < 1e-9, "{} {sum}", sizes.mean_pieces(1000.0));
    }

    /// With a shape above two the mean of n sizes has a standard error: sd / sqrt(n), sd = mean / sqrt(a (a - 2)).
    #[test]
    fn arrivals__offer_the_rate() {
        let rate = Rate::mbps(100.0);
        let stream = random::stream(3, "background web");
        let mut web = Web::new(rate, 4, Bytes::new(12_000), 2.5, Bytes::new(1000), 1040, stream);
        let (mut now, mut packets, mut of_source) = (Time::ZERO, 0, [0_u32; 4]);
        for _ in 0..200_000 {
            now = web.next(now);
            let arrival = web.arrival();
            packets += arrival.packets;
            of_source[arrival.source as usize] += 1;
        }
        // Sizes: 0.9 / sqrt(2e5) = 0.2 %; arrivals: 1 / sqrt(2e5) = 0.22 %; together 0.3 %, and four times that
        // allowed.
        let offered_bps = packets as f64 * 8320.0 / now.as_secs_f64();
        assert!((offered_bps / 1e8 - 1.0).abs() < 0.012, "{offered_bps}");
        // 50 000 each, sd 194.
        assert!(of_source.iter().all(|flows| flows.abs_diff(50_000) < 800), "{of_source:?}");
    }

    #[test]
    fn arrivals__are_at_random_and_heavy_tailed() {
        let stream = random::stream(1, "background web");
        let mut web = Web::new(Rate::mbps(1.0), 1, Bytes::new(12_000), 1.2, Bytes::new(1000), 1040, stream);
        let mut now = Time::ZERO;
        let mut gaps_s = Vec::new();
        let mut long = 0_u32;
        for _ in 0..100_000 {
            let next = web.next(now);
            gaps_s.push(next.since(now).as_secs_f64());
            now = next;
            long += u32::from(web.arrival().packets > 100);
        }
        let mean_s = gaps_s.iter().sum::<f64>() / 1e5;
        let square_s = gaps_s.iter().map(|gap| gap * gap).sum::<f64>() / 1e5;
        // Exponential: the mean square is twice the square of the mean.
        assert!((square_s / (2.0 * mean_s * mean_s) - 1.0).abs() < 0.05, "{}", square_s / (mean_s * mean_s));
        // Above 100 packets of 1000 B: (2000 / 100 000)^1.2 = 0.00915, of 1e5 flows 915, sd 30.
        assert!(long.abs_diff(915) < 120, "{long}");
    }
}
