//! Round-trip times, by one's own clock.

use fairwave_units::{Duration, Time};

/// A session's round-trip time: smoothed (RFC 9002 s5.3), and the least one of the last ten to twenty seconds (s5.2,
/// but it forgets: a path that became longer must not count as a queue forever).
///
/// A peer takes part in each sample: it may answer late, and it may claim to have held a packet longer than it did. So
/// a sample has bounds, and its use must be harmless anywhere within them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    latest: Option<Duration>,
    /// The least of all.
    least: Option<Duration>,
    /// The least of this span of ten seconds, and of the one before.
    spans: [Option<Duration>; 2],
    since: Time,
}

/// Shorter samples count as this: the resolution of stamps.
const LEAST: Duration = Duration::from_micros(1);
/// Longer samples are ignored.
const MOST: Duration = Duration::from_secs(60);
/// Assumed round-trip time before the first sample.
pub(crate) const FIRST_RTT: Duration = Duration::from_millis(100);
/// Length of a span: the minimum is that of the last ten to twenty seconds (BBR: 10 s).
const SPAN: Duration = Duration::from_secs(10);

impl Rtt {
    /// The time from a packet to its answer was `rtt`.
    pub(crate) fn on_sample(&mut self, now: Time, rtt: Duration) {
        if rtt > MOST {
            return;
        }
        let rtt = rtt.max(LEAST);
        // RFC 9002 s5.3: 7/8 of what it was, 1/8 of the sample.
        let smoothed = |smoothed: Duration| Duration::from_nanos((7 * smoothed.as_nanos() + rtt.as_nanos()) / 8);
        self.smoothed = Some(self.smoothed.map_or(rtt, smoothed));
        self.latest = Some(rtt);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        if self.spans[0].is_none() {
            self.since = now;
        } else if now.since(self.since) >= SPAN {
            self.spans = [None, self.spans[0]];
            self.since = now;
        }
        self.spans[0] = Some(self.spans[0].map_or(rtt, |least| least.min(rtt)));
    }

    /// The smoothed one, if there was a sample.
    pub(crate) fn known(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The smoothed one; without any sample, 100 ms.
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(FIRST_RTT)
    }

    /// The last sample.
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The least one of all, however long ago: a queue that stands for long is still seen against it.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// The least one recently; without any sample, 100 ms.
    pub(crate) fn min(&self) -> Duration {
        self.spans.into_iter().flatten().min().unwrap_or(FIRST_RTT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn smoothed__takes_an_eighth_of_each_sample() {
        let mut rtt = Rtt::default();
        assert_eq!((rtt.known(), rtt.smoothed(), rtt.min()), (None, ms(100), ms(100)));
        rtt.on_sample(at(0), ms(80));
        assert_eq!((rtt.known(), rtt.min()), (Some(ms(80)), ms(80)));
        rtt.on_sample(at(1), ms(160));
        assert_eq!((rtt.smoothed(), rtt.min()), (ms(90), ms(80))); // 7/8 x 80 + 1/8 x 160
    }

    #[test]
    fn min__forgets_after_ten_to_twenty_seconds() {
        let mut rtt = Rtt::default();
        rtt.on_sample(at(0), ms(20));
        for second in 1..20 {
            rtt.on_sample(at(second * 1000), ms(50 + second));
            assert_eq!(rtt.min(), ms(20), "{second}");
        }
        // From 20 s on the least one is of 10 s, and from 30 s on of 20 s.
        rtt.on_sample(at(20_000), ms(100));
        assert_eq!(rtt.min(), ms(60));
        rtt.on_sample(at(30_000), ms(200));
        assert_eq!(rtt.min(), ms(100));
        // After a long rest the last one known is better than none.
        rtt.on_sample(at(900_000), ms(300));
        assert_eq!(rtt.min(), ms(200));
        assert_eq!((rtt.least(), rtt.latest()), (Some(ms(20)), Some(ms(300))));
    }

    proptest! {
        /// Whatever the samples: within bounds, and the least one is not above the smoothed one for long.
        #[test]
        fn on_sample__of_anything(samples in proptest::collection::vec((0_u64..20_000, any::<u64>(), 0_u32..64), 1..60)) {
            let mut rtt = Rtt::default();
            let mut now = 0;
            for (wait, nanos, shift) in samples {
                now += wait;
                rtt.on_sample(at(now), Duration::from_nanos(nanos >> shift));
                prop_assert!(rtt.known().is_none_or(|known| known <= MOST) && rtt.min() >= LEAST && rtt.min() <= MOST);
            }
        }
    }
}
