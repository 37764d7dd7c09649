//! The cycle of probes.

use fairwave_units::{Duration, Time};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// Maximum round trips between two probes, so that a Reno flow on the path is not probed more often than it would probe
/// itself (BBR s5.3.3.8.2).
const MAX_ROUNDS: u64 = 63;
/// Minimum time between two probes, to which up to a second is added at random (BBR s5.3.3.8.3).
const MIN_WAIT: Duration = Duration::from_secs(2);
/// Range of that random part, in nanoseconds.
const RANDOM_NS: u64 = 1_000_000_000;

/// Phase of a model in its probing cycle (BBR s2.14).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeCycle {
    pub(crate) phase: AckPhase,
    /// Start of the cycle, and maximum time until the next probe.
    began: Time,
    pub(crate) wait: Duration,
    pub(super) rounds_since_up: u64,
    /// Whether samples belong to packets that were sent while probing and not yet answered.
    pub(crate) is_probe_sample: bool,
    /// Whether the last probe lost too much.
    pub(super) was_too_high: bool,
    /// Whether the last probe ended as soon as it reached the bound.
    pub(super) was_precautionary: bool,
}

/// Phase in which the packets of incoming acknowledgements were sent (BBR s2.14, ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckPhase {
    /// Not related to a probe.
    Init,
    /// During the refill before a probe.
    Refilling,
    /// Before the probe.
    Starting,
    /// During the probe.
    Feedback,
    /// The rest of the probe.
    Stopping,
}

impl ProbeCycle {
    pub(super) fn new(now: Time) -> Self {
        Self {
            phase: AckPhase::Init,
            began: now,
            wait: Duration::ZERO,
            rounds_since_up: 0,
            is_probe_sample: false,
            was_too_high: false,
            was_precautionary: false,
        }
    }
    /// Draws the wait for the next probe: 2 to 3 s but at least `least`, and 62 or 63 round trips (BBR s5.3.3.8.3,
    /// PickProbeWait).
    pub(super) fn begin(&mut self, now: Time, random: &mut Pcg32, least: Duration) {
        self.rounds_since_up = u64::from(random.next_u32() >> 31);
        let part_ns = (u64::from(random.next_u32()) * RANDOM_NS) >> 32;
        self.wait = (MIN_WAIT + Duration::from_nanos(part_ns)).max(least);
        self.began = now;
        self.phase = AckPhase::Stopping;
    }

    /// Whether a probe is due: the wait is over, or a Reno flow of `packets` would reach its own loss (BBR s5.3.3.8.3,
    /// IsTimeToProbeBW).
    pub(super) fn is_probe_due(&self, now: Time, packets: u64) -> bool {
        now > self.began.saturating_add(self.wait) || self.rounds_since_up >= packets.min(MAX_ROUNDS)
    }
}
