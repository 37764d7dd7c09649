//! The cycle of probes.

use fairwave_units::{Duration, Time};

/// Phase of a model in its probing cycle (BBR s2.14).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ProbeCycle {
    pub(in super::super) phase: AckPhase,
    /// Start of the cycle, and maximum time until the next probe.
    pub(in super::super) began: Time,
    pub(in super::super) wait: Duration,
    pub(in super::super) rounds_since_up: u64,
    /// Whether samples belong to packets that were sent while probing and not yet answered.
    pub(in super::super) is_probe_sample: bool,
    /// Whether the last probe lost too much.
    pub(in super::super) was_too_high: bool,
    /// Whether the last probe ended as soon as it reached the bound.
    pub(in super::super) was_precautionary: bool,
    pub(in super::super) up_rounds: u32,
    pub(in super::super) up_acked: u64,
    /// Bytes that arrive for each packet by which the bound grows.
    pub(in super::super) up_acked_per_packet: u64,
}

/// Phase in which the packets of incoming acknowledgements were sent (BBR s2.14, ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum AckPhase {
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
    pub(in super::super) fn new(now: Time) -> Self {
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
