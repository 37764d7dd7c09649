//! The path's round-trip time without a queue.

use fairwave_units::{Duration, Time};

use super::config::BbrConfig;

/// The minimum round-trip time over ten seconds, and the schedule of probes for a lower one (BBR s5.3.4.3,
/// UpdateMinRTT).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct MinRtt {
    least: Option<Duration>,
    stamp: Time,
    /// Minimum over the shorter interval between probes.
    recent: Option<Duration>,
    recent_stamp: Time,
    /// Time of the last probe.
    probed: Time,
    /// Whether a probe is due.
    pub(in super::super) is_due: bool,
    window: Duration,
    interval: Duration,
}

/// State of a probe, the moment with little in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RttProbe {
    /// End of the probe; `None` until little is in flight.
    pub(in super::super) done: Option<Time>,
    /// Whether a round trip of it is over.
    pub(in super::super) is_round_done: bool,
}

impl MinRtt {
    pub(in super::super) fn new(now: Time, config: &BbrConfig) -> Self {
        let least = config.initial_rtt;
        Self {
            least,
            stamp: now,
            recent: least,
            recent_stamp: now,
            probed: now,
            is_due: false,
            window: config.min_rtt_window,
            interval: config.probe_rtt_interval,
        }
    }

    /// The minimum; `None` before the first sample.
    pub(in super::super) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Adds a round-trip time; `is_beside` if others are known to keep the queue full.
    pub(in super::super) fn on_sample(&mut self, now: Time, rtt: Option<Duration>, is_beside: bool) {
        let (interval, window) =
            if is_beside { (INTERVAL_BESIDE, WINDOW_BESIDE) } else { (self.interval, self.window) };
        self.is_due = now > self.recent_stamp.saturating_add(interval);
        let Some(rtt) = rtt else { return };
        if self.is_due || self.recent.is_none_or(|recent| rtt < recent) {
            (self.recent, self.recent_stamp) = (Some(rtt), now);
        } else if self.recent.is_some_and(|recent| is_same(rtt, recent)) && now <= self.probed.saturating_add(PUT_OFF) {
            // Ours: the minimum was seen again without a probe. A sender at its granted rate, or at 99 % of the
            // delivery rate, has no queue most of the time, and would gain little by stopping for a moment.
            self.recent_stamp = now;
        }
        let is_stale = now > self.stamp.saturating_add(window);
        if is_stale || self.least.is_none_or(|least| self.recent.is_some_and(|recent| recent < least)) {
            (self.least, self.stamp) = (self.recent, self.recent_stamp);
        }
    }

    /// A probe ended: the next one is an interval later.
    pub(in super::super) fn on_probed(&mut self, now: Time) {
        (self.recent_stamp, self.probed) = (now, now);
    }
}

/// Clocks and packets of others make differences of up to a 64th.
fn is_same(rtt: Duration, least: Duration) -> bool {
    rtt.as_nanos() <= least.as_nanos().saturating_add(least.as_nanos() / 64)
}

/// Maximum time between probes, even if the minimum is seen again: two models that keep a queue of constant length
/// would otherwise treat it as part of the path.
const PUT_OFF: Duration = Duration::from_secs(30);

/// Interval of probes if others keep the queue full: samples in between contain their queue.
const INTERVAL_BESIDE: Duration = Duration::from_secs(10);
/// Lifetime of the minimum if others keep the queue full.
const WINDOW_BESIDE: Duration = Duration::from_secs(60);
