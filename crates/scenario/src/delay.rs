//! Delays of packets and their acknowledgements beyond propagation: a histogram with percentiles.

use fairwave_units::Duration;
use serde::Serialize;

/// Bits of a value that select its bucket: a bucket is at most 1/128 of its value wide.
const PRECISION: u32 = 7;
/// Buckets per octave.
const PER_OCTAVE: u64 = 1 << PRECISION;
/// Initial number of buckets: two octaves, a kilobyte. The histogram doubles when necessary: a run in steady state
/// allocates almost nothing.
const STEP: u64 = 256;

/// Delays of one session's packets, counted in buckets. A percentile has an error of half a bucket, 0.4 %; mean,
/// minimum and maximum are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayHistogram {
    /// Number of the first stored bucket.
    first: u64,
    counts: Vec<u32>,
    samples: u64,
    sum_ns: u128,
    least_ns: u64,
    most_ns: u64,
}

/// Round-trip times and their queueing part, in seconds, over the summary's window: one sample per acknowledgement, or
/// per packet for sessions that do not acknowledge each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DelaySummary {
    /// Number of samples.
    pub rtt_samples: u64,
    /// Mean round-trip time; `None` without samples.
    pub rtt_mean_s: Option<f64>,
    /// The median.
    pub rtt_p50_s: Option<f64>,
    /// 95th percentile.
    pub rtt_p95_s: Option<f64>,
    /// 99th percentile.
    pub rtt_p99_s: Option<f64>,
    /// Mean without propagation: queueing and transmission.
    pub queueing_mean_s: Option<f64>,
    /// Its median.
    pub queueing_p50_s: Option<f64>,
    /// 95th percentile of the queueing part.
    pub queueing_p95_s: Option<f64>,
    /// 99th percentile of the queueing part.
    pub queueing_p99_s: Option<f64>,
}

/// Mean and percentiles of a few known values, such as completion times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CompletionSummary {
    /// The mean.
    pub completion_mean_s: f64,
    /// The median.
    pub completion_p50_s: f64,
    /// 95th percentile.
    pub completion_p95_s: f64,
    /// 99th percentile.
    pub completion_p99_s: f64,
}

/// The bucket of a delay: its first [`PRECISION`] + 1 bits.
#[inline]
fn bucket(ns: u64) -> u64 {
    let octave = (63 - PRECISION).saturating_sub(ns.leading_zeros());
    u64::from(octave) * PER_OCTAVE + (ns >> octave)
}

/// The middle of a bucket.
fn middle_ns(bucket: u64) -> u64 {
    // Below two octaves each value has its own bucket.
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let least = (bucket - octave * PER_OCTAVE) << octave;
    least + ((1 << octave) - 1) / 2
}

impl DelayHistogram {
    /// An empty histogram with its initial buckets, so that the first delay needs no allocation.
    pub fn with_room() -> Self {
        Self { counts: Vec::with_capacity(STEP as usize), ..Self::default() }
    }

    /// Counts a delay.
    #[inline]
    pub fn add(&mut self, delay: Duration) {
        self.add_many(delay.as_nanos(), 1);
    }

    fn add_many(&mut self, ns: u64, samples: u32) {
        let bucket = bucket(ns);
        if self.samples == 0 {
            (self.first, self.least_ns) = (bucket - bucket % STEP, ns);
        }
        if bucket < self.first {
            let doubled = self.first.saturating_sub(self.counts.len() as u64);
            let first = doubled.min(bucket - bucket % STEP);
            self.counts.splice(..0, std::iter::repeat_n(0, (self.first - first) as usize));
            self.first = first;
        }
        let place = (bucket - self.first) as usize;
        if place >= self.counts.len() {
            let length = (place + 1).next_multiple_of(STEP as usize).max(2 * self.counts.len());
            // Exactly that many: a scenario may have a million sessions.
            self.counts.reserve_exact(length - self.counts.len());
            self.counts.resize(length, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(samples);
        self.samples += u64::from(samples);
        self.sum_ns += u128::from(ns) * u128::from(samples);
        self.least_ns = self.least_ns.min(ns);
        self.most_ns = self.most_ns.max(ns);
    }

    /// Adds another session's delays, each longer by `base`.
    pub fn merge(&mut self, other: &Self, base: Duration) {
        for (ns, samples) in other.buckets() {
            self.add_many(ns.saturating_add(base.as_nanos()), samples);
        }
    }

    /// Delays with their counts, ascending: the middle of each bucket, limited to the minimum and maximum.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> {
        let there = (self.first..).zip(&self.counts).filter(|(_, count)| **count > 0);
        there.map(|(bucket, count)| (middle_ns(bucket).clamp(self.least_ns, self.most_ns), *count))
    }

    /// Number of delays.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Mean in seconds, exact; `None` if empty.
    pub fn mean_s(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_ns as f64 / self.samples as f64 / 1e9)
    }

    /// The smallest delay in seconds that at least `share` (0 to 1) of the delays do not exceed; `None` if empty.
    pub fn percentile_s(&self, share: f64) -> Option<f64> {
        let wanted = ((share * self.samples as f64).ceil() as u64).clamp(1, self.samples.max(1));
        let mut seen = 0;
        let found = self.buckets().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= wanted
        });
        // Saturated counts end the search early.
        found.or_else(|| self.buckets().last()).map(|(ns, _)| ns as f64 / 1e9)
    }
}

impl DelaySummary {
    /// Summary of delays beyond a common propagation of `base`.
    pub fn of(queueing: &DelayHistogram, base: Duration) -> Self {
        let base_s = base.as_secs_f64();
        let beyond = |value: Option<f64>| value.map(|value| value + base_s);
        let at = |share| queueing.percentile_s(share);
        Self {
            rtt_samples: queueing.samples(),
            rtt_mean_s: beyond(queueing.mean_s()),
            rtt_p50_s: beyond(at(0.5)),
            rtt_p95_s: beyond(at(0.95)),
            rtt_p99_s: beyond(at(0.99)),
            queueing_mean_s: queueing.mean_s(),
            queueing_p50_s: at(0.5),
            queueing_p95_s: at(0.95),
            queueing_p99_s: at(0.99),
        }
    }

    /// Summary of several sessions together, each with its delays and its propagation.
    pub fn of_all<'a>(sessions: impl Iterator<Item = (&'a DelayHistogram, Duration)> + Clone) -> Self {
        let (mut queueing, mut rtt) = (DelayHistogram::default(), DelayHistogram::default());
        let (mut samples, mut sums_s) = (0_u64, [0.0; 2]);
        for (delays, base) in sessions {
            queueing.merge(delays, Duration::ZERO);
            rtt.merge(delays, base);
            samples += delays.samples();
            let sum_s = delays.sum_ns as f64 / 1e9;
            sums_s = [sums_s[0] + sum_s, sums_s[1] + sum_s + base.as_secs_f64() * delays.samples() as f64];
        }
        let mean = |sum_s: f64| (samples > 0).then(|| sum_s / samples as f64);
        Self {
            rtt_samples: samples,
            rtt_mean_s: mean(sums_s[1]),
            rtt_p50_s: rtt.percentile_s(0.5),
            rtt_p95_s: rtt.percentile_s(0.95),
            rtt_p99_s: rtt.percentile_s(0.99),
            queueing_mean_s: mean(sums_s[0]),
            queueing_p50_s: queueing.percentile_s(0.5),
            queueing_p95_s: queueing.percentile_s(0.95),
            queueing_p99_s: queueing.percentile_s(0.99),
        }
    }
}

impl CompletionSummary {
    /// Summary of these times; `None` if empty.
    pub fn of(mut times_s: Vec<f64>) -> Option<Self> {
        if times_s.is_empty() {
            return None;
        }
        times_s.sort_by(f64::total_cmp);
        let count = times_s.len();
        let at = |share: f64| times_s[((share * count as f64).ceil() as usize).clamp(1, count) - 1];
        Some(Self {
            completion_mean_s: times_s.iter().sum::<f64>() / count as f64,
            completion_p50_s: at(0.5),
            completion_p95_s: at(0.95),
            completion_p99_s: at(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(delays_ns: &[u64]) -> DelayHistogram {
        let mut histogram = DelayHistogram::default();
        for ns in delays_ns {
            histogram.add(Duration::from_nanos(*ns));
        }
        histogram
    }

    #[test]
    fn bucket__follows_on_and_is_narrow() {
        for ns in (0..5000).chain([1 << 20, (1 << 20) + 12_345, u64::MAX - 1, u64::MAX]) {
            let here = bucket(ns);
            assert!(here <= bucket(ns.saturating_add(1)) && bucket(ns.saturating_add(1)) <= here + 1, "{ns}");
            let middle = middle_ns(here);
            assert_eq!(bucket(middle), here, "{ns} {middle}");
            assert!(middle.abs_diff(ns) as f64 <= ns as f64 / 256.0, "{ns} {middle}");
        }
    }

    #[test]
    fn summary__of_a_hundred_delays() {
        // 1 ms to 100 ms beyond 20 ms: the median is 50 + 20, 95 of 100 do not exceed 95 + 20.
        let histogram = of(&(1..=100).map(|ms| ms * 1_000_000).collect::<Vec<_>>());
        let summary = DelaySummary::of(&histogram, Duration::from_millis(20));
        assert_eq!((summary.rtt_samples, summary.queueing_mean_s), (100, Some(0.0505)));
        assert!((summary.rtt_mean_s.unwrap() - 0.0705).abs() < 1e-12);
        for (got, s) in [(summary.rtt_p50_s, 0.070), (summary.rtt_p95_s, 0.115), (summary.queueing_p99_s, 0.099)] {
            assert!((got.unwrap() / s - 1.0).abs() < 0.004, "{got:?} {s}");
        }
        let none = DelaySummary::of(&DelayHistogram::default(), Duration::from_millis(20));
        assert_eq!(none, DelaySummary::default());
        assert_eq!(DelaySummary::of_all(std::iter::empty()), DelaySummary::default());
    }

    #[test]
    fn of_all__sets_propagation_apart() {
        let (near, far) = (of(&[1_000_000; 3]), of(&[2_000_000; 1]));
        let both = [(&near, Duration::from_millis(10)), (&far, Duration::from_millis(100))];
        let summary = DelaySummary::of_all(both.into_iter());
        // (3 x 11 + 102) / 4 and (3 x 1 + 2) / 4.
        assert!((summary.rtt_mean_s.unwrap() - 0.033_75).abs() < 1e-12);
        assert!((summary.queueing_mean_s.unwrap() - 0.001_25).abs() < 1e-12);
        assert!((summary.rtt_p50_s.unwrap() / 0.011 - 1.0).abs() < 0.004);
        assert!((summary.rtt_p99_s.unwrap() / 0.102 - 1.0).abs() < 0.004);
    }

    #[test]
    fn completion__of_four() {
        let summary = CompletionSummary::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.completion_mean_s, summary.completion_p50_s, summary.completion_p95_s), (2.5, 2.0, 4.0));
        assert_eq!(CompletionSummary::of(Vec::new()), None);
    }

    proptest! {
        #[test]
        fn percentile__is_that_of_the_sorted_values(
            mut delays in proptest::collection::vec(0_u64..1 << 40, 1..200), share in 0.0..1.0_f64,
        ) {
            let got = of(&delays).percentile_s(share).unwrap();
            delays.sort_unstable();
            let rank = ((share * delays.len() as f64).ceil() as usize).clamp(1, delays.len());
            let exact = delays[rank - 1] as f64 / 1e9;
            prop_assert!((got - exact).abs() <= exact / 256.0 + 1e-12, "{} {}", got, exact);
        }
    }
}
