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
