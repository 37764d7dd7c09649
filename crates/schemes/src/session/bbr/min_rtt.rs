//! The path's round-trip time without a queue.

use fairwave_units::{Duration, Time};

use super::config::Constants;

/// The minimum round-trip time over ten seconds, and the schedule of probes for a lower one (BBR s5.3.4.3,
/// UpdateMinRTT).
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinRtt {
    least: Option<Duration>,
    stamp: Time,
    /// Minimum over the shorter interval between probes.
    recent: Option<Duration>,
    recent_stamp: Time,
    /// Whether a probe is due.
    is_due: bool,
}

impl MinRtt {
    pub(super) fn new(now: Time, least: Option<Duration>) -> Self {
        Self { least, stamp: now, recent: least, recent_stamp: now, is_due: false }
    }

    /// The minimum; `None` before the first sample.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Whether a probe was due at the last sample.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether no lower round-trip time was seen for so long that a probe is due.
    pub(crate) fn is_due_at(&self, now: Time, constants: &Constants) -> bool {
        now > self.recent_stamp.saturating_add(constants.probe_rtt_interval)
    }

    /// Adds a round-trip time.
    pub(crate) fn on_sample(&mut self, now: Time, rtt: Option<Duration>, constants: &Constants) {
        self.is_due = self.is_due_at(now, constants);
        let Some(rtt) = rtt else { return };
        if self.is_due || self.recent.is_none_or(|recent| rtt < recent) {
            (self.recent, self.recent_stamp) = (Some(rtt), now);
        }
        let is_stale = now > self.stamp.saturating_add(constants.min_rtt_window);
        if is_stale || self.least.is_none_or(|least| self.recent.is_some_and(|recent| recent < least)) {
            (self.least, self.stamp) = (self.recent, self.recent_stamp);
        }
    }

    /// The minimum was seen again: the next probe is an interval later, as after a probe.
    pub(crate) fn put_off(&mut self, now: Time) {
        self.recent_stamp = now;
    }

    /// The minimum since the last probe.
    pub(crate) fn recent(&self) -> Option<Duration> {
        self.recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn on_sample__the_least_of_ten_seconds() {
        let constants = Constants::default();
        let mut min = MinRtt::new(Time::ZERO, None);
        for (second, rtt, least, is_due) in [
            (0, 50, 50, false),
            (1, 40, 40, false),
            (5, 60, 40, false),
            // Nothing lower for more than 5 s: the current value is stored next to the minimum.
            (7, 60, 40, true),
            (8, 55, 40, false),
            // The 40 ms of 1 s are over 10 s old.
            (12, 70, 55, false),
        ] {
            min.on_sample(Time::from_secs(second), Some(ms(rtt)), &constants);
            assert_eq!((min.least(), min.is_due), (Some(ms(least)), is_due), "at {second} s");
        }
        min.on_sample(Time::from_secs(14), None, &constants);
        assert!(min.is_due);
        min.put_off(Time::from_secs(14));
        min.on_sample(Time::from_secs(15), Some(ms(60)), &constants);
        assert!(!min.is_due);
    }
}
