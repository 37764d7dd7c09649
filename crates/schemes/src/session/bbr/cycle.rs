//! The cycle of probes.

use fairwave_units::{Duration, Time};

/// Where a model is in the cycle of its probes (BBR s2.14).
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeCycle {
    pub(super) phase: AckPhase,
    /// When the cycle began, and how long until the next probe at the most.
    pub(super) began: Time,
    pub(super) wait: Duration,
    pub(super) rounds_since_up: u64,
    /// Samples are of packets that were sent while probing, and were not answered yet.
    pub(super) is_probe_sample: bool,
    /// The last probe lost too much.
    pub(super) was_too_high: bool,
    /// The last probe ended as soon as it came to the bound.
    pub(super) was_precautionary: bool,
    pub(super) up_rounds: u32,
    pub(super) up_acked: u64,
    /// Bytes that arrive for each packet that the bound grows.
    pub(super) up_acked_per_packet: u64,
}

/// What the acknowledgements that come in are of (BBR s2.14, ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// No probe.
    Init,
    /// The refill before a probe.
    Refilling,
    /// What was sent before the probe.
    Starting,
    /// The probe.
    Feedback,
    /// What is left of it.
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
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_packet: u64::MAX,
        }
    }
}
