//! For how long packets wait on their way.

use fairwave_units::{Duration, Time};

/// A receiver's measure of queues: the min one-way delay of an interval, above the min of the last five to ten seconds.
/// The clocks of both ends need not agree, as only differences count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueDelay {
    /// The least difference of both clocks since it was asked for, in nanoseconds.
    interval: Option<i128>,
    /// The least in this span of five seconds, and in the one before.
    spans: [Option<i128>; 2],
    since: Time,
}

/// Length of a span: the least difference is that of the last five to ten seconds.
const SPAN: Duration = Duration::from_secs(5);

impl QueueDelay {
    /// A packet came that its source sent at `sent` by its own clock.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, sent: Time) {
        let difference = i128::from(now.as_nanos()) - i128::from(sent.as_nanos());
        if now.since(self.since) >= SPAN {
            self.spans = [None, self.spans[0]];
            self.since = now;
        }
        for least in [&mut self.interval, &mut self.spans[0]] {
            *least = Some(least.map_or(difference, |least| least.min(difference)));
        }
    }

    /// For how long the packets of the interval that ends now waited at least.
    pub(crate) fn take(&mut self) -> Option<Duration> {
        let interval = self.interval.take()?;
        let least = self.spans.into_iter().flatten().min()?;
        Some(Duration::from_nanos(u64::try_from(interval - least).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take__is_the_least_of_the_interval_above_that_of_ten_seconds() {
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let waiting = &mut QueueDelay::default();
        let mut delays = |from: u64, delays: &[u64]| {
            // The source's clock is 100 s ahead.
            for delay in delays {
                waiting.on_packet(ms(from + delay), ms(from + 100_000));
            }
            waiting.take().map(|waiting| waiting.as_nanos() / 1_000_000)
        };
        assert_eq!(delays(0, &[30, 20, 25]), Some(0));
        assert_eq!(delays(1000, &[27, 24, 25]), Some(4));
        assert_eq!(delays(2000, &[]), None);
        assert_eq!(delays(6000, &[24]), Some(4));
        // Twenty seconds on nobody knows of the 20 ms any more.
        assert_eq!(delays(20_000, &[26]), Some(2));
        assert_eq!(delays(26_000, &[26]), Some(0));
    }
}
