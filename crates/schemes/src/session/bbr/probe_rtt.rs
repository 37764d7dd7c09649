//! The moment with little in flight in which the path's own round-trip time shows.

use fairwave_units::{Duration, Time};

use super::super::rate_sample::RateSample;

/// Minimum length of that moment (BBR s2.16.2, ProbeRTTDuration).
const DURATION: Duration = Duration::from_millis(200);

/// A probe for the round-trip time, and the samples that it limits (BBR s5.3.4.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttProbe {
    /// End of the probe; `None` until little is in flight.
    done: Option<Time>,
    /// Whether a round trip of it is over.
    pub(super) is_round_done: bool,
    /// Samples of packets sent before more than this many bytes were delivered are too low.
    limited_until: Option<u64>,
}

impl RttProbe {
    /// A probe starts.
    pub(super) fn begin(&mut self) {
        (self.done, self.is_round_done) = (None, false);
    }

    /// Marks a sample of packets that a probe limited (HandleProbeRTT, MarkConnectionAppLimited).
    pub(super) fn mark(&mut self, sample: &mut RateSample) {
        match self.limited_until {
            Some(until) if sample.prior_delivered.get() <= until => sample.is_app_limited = true,
            _ if sample.has_arrivals => self.limited_until = None,
            _ => {}
        }
    }

    /// Processes a sample of the probe; returns whether a round starts with it (HandleProbeRTT).
    pub(super) fn on_sample(&mut self, now: Time, sample: &RateSample, most: u64, is_round_start: bool) -> bool {
        let in_flight = sample.in_flight.get();
        self.limited_until = Some(sample.total_delivered.get().saturating_add(in_flight));
        if self.done.is_none() {
            if in_flight > most {
                return false;
            }
            (self.done, self.is_round_done) = (Some(now.saturating_add(DURATION)), false);
            return true;
        }
        self.is_round_done |= is_round_start;
        false
    }

    /// Whether it has lasted as long as it should (CheckProbeRTTDone).
    pub(super) fn is_done(&self, now: Time) -> bool {
        self.done.is_some_and(|done| now > done)
    }
}
