//! The minimum round-trip time, and the moment with four packets in flight that renews it.

use fairwave_units::{Duration, Time};

use super::super::rate_sample::RateSample;

/// Lifetime of a minimum (bbr_min_rtt_win_sec).
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// Minimum time with four packets in flight (bbr_probe_rtt_mode_ms).
pub(super) const PROBE: Duration = Duration::from_millis(200);

/// The minimum of ten seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    least: Option<Duration>,
    stamp: Time,
    /// End of a probe; `None` until four packets are in flight.
    done: Option<Time>,
    is_round_done: bool,
    /// Samples of packets sent before more than this many bytes were delivered are too low.
    limited_until: Option<u64>,
}

impl MinRtt {
    pub(super) fn new(now: Time, least: Option<Duration>) -> Self {
        Self { least, stamp: now, done: None, is_round_done: false, limited_until: None }
    }

    pub(super) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Adds a round-trip time; returns whether the minimum had expired.
    pub(super) fn on_sample(&mut self, now: Time, rtt: Option<Duration>) -> bool {
        let is_expired = now > self.stamp.saturating_add(WINDOW);
        if let Some(rtt) = rtt.filter(|rtt| is_expired || self.least.is_none_or(|least| *rtt <= least)) {
            (self.least, self.stamp) = (Some(rtt), now);
        }
        is_expired
    }

    /// Marks a sample of packets that a probe limited.
    pub(super) fn mark(&mut self, sample: &mut RateSample) {
        match self.limited_until {
            Some(until) if sample.prior_delivered.get() <= until => sample.is_app_limited = true,
            _ if sample.has_arrivals => self.limited_until = None,
            _ => {}
        }
    }

    /// A probe starts.
    pub(super) fn begin_probe(&mut self) {
        self.done = None;
    }

    /// A sample of a probe, which lasts until a round trip after `most` bytes were in flight; returns whether that round
    /// starts now.
    pub(super) fn on_probe(&mut self, now: Time, sample: &RateSample, most: u64, is_round_start: bool) -> bool {
        let in_flight = sample.in_flight.get();
        self.limited_until = Some(sample.total_delivered.get().saturating_add(in_flight));
        if self.done.is_some() {
            self.is_round_done |= is_round_start;
            return false;
        }
        let begins = in_flight <= most;
        if begins {
            (self.done, self.is_round_done) = (Some(now.saturating_add(PROBE)), false);
        }
        begins
    }

    /// Whether a probe has lasted long enough; the next one is due a window later.
    pub(super) fn ends_probe(&mut self, now: Time, needs_round: bool) -> bool {
        let is_over = self.done.is_some_and(|done| now > done) && (self.is_round_done || !needs_round);
        if is_over {
            self.stamp = now;
        }
        is_over
    }
}
