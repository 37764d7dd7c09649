//! The path's round-trip time without a queue.

use fairwave_units::{Duration, Time};

use super::config::BbrConfig;

/// The least round-trip time of ten seconds, and when it is time to look for a lower one (BBR s5.3.4.3, UpdateMinRTT).
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    least: Option<Duration>,
    stamp: Time,
    /// The same over the shorter time after which it is looked for.
    recent: Option<Duration>,
    recent_stamp: Time,
    /// Whether it is time to look for a lower one.
    pub(super) is_due: bool,
    window: Duration,
    interval: Duration,
}

/// Where a model is in the moment with little in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttProbe {
    /// When it is over; `None` before little is in flight.
    pub(super) done: Option<Time>,
    /// Whether a round trip of it is over.
    pub(super) is_round_done: bool,
}

impl MinRtt {
    pub(super) fn new(now: Time, config: &BbrConfig) -> Self {
        let least = config.initial_rtt;
        Self {
            least,
            stamp: now,
            recent: least,
            recent_stamp: now,
            is_due: false,
            window: config.min_rtt_window,
            interval: config.probe_rtt_interval,
        }
    }

    /// The least one; `None` before the first.
    pub(super) fn least(&self) -> Option<Duration> {
        self.least
    }

    pub(super) fn on_sample(&mut self, now: Time, rtt: Option<Duration>) {
        self.is_due = now > self.recent_stamp.saturating_add(self.interval);
        let Some(rtt) = rtt else { return };
        if self.is_due || self.recent.is_none_or(|recent| rtt < recent) {
            (self.recent, self.recent_stamp) = (Some(rtt), now);
        }
        let is_stale = now > self.stamp.saturating_add(self.window);
        if is_stale || self.least.is_none_or(|least| self.recent.is_some_and(|recent| recent < least)) {
            (self.least, self.stamp) = (self.recent, self.recent_stamp);
        }
    }

    /// It was looked for: not again before the interval is over.
    pub(super) fn on_probed(&mut self, now: Time) {
        self.recent_stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn on_sample__the_least_of_ten_seconds() {
        let mut min = MinRtt::new(Time::ZERO, &BbrConfig::new(Bytes::new(1000)));
        for (second, rtt, least, is_due) in [
            (0, 50, 50, false),
            (1, 40, 40, false),
            (5, 60, 40, false),
            // Nothing lower for more than 5 s: what is seen now is remembered beside the least.
            (7, 60, 40, true),
            (8, 55, 40, false),
            // The 40 ms of 1 s are over 10 s old.
            (12, 70, 55, false),
        ] {
            min.on_sample(Time::from_secs(second), Some(ms(rtt)));
            assert_eq!((min.least(), min.is_due), (Some(ms(least)), is_due), "at {second} s");
        }
        min.on_sample(Time::from_secs(14), None);
        assert!(min.is_due);
        min.on_probed(Time::from_secs(14));
        min.on_sample(Time::from_secs(15), Some(ms(60)));
        assert!(!min.is_due);
    }
}
