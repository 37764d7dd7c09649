//! The timers of RFC 8985 that come before the retransmission time-out: of reordering, and of a tail loss probe.

use fairwave_units::{Duration, Time};

/// The state of both, and of the last probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RackTimers {
    /// Time at which packets that were overtaken are lost.
    pub(super) reordering_at: Option<Time>,
    /// Time of the next probe.
    pub(super) probe_at: Option<Time>,
    /// TLP.end_seq: the number after a probe in flight.
    pub(super) probe_end: Option<u64>,
    /// TLP.is_retrans: whether that probe is a retransmission.
    pub(super) is_probe_repeated: bool,
    /// Whether a probe is sent immediately, regardless of the window.
    pub(super) must_probe: bool,
    /// Whether there was a round-trip time since the last probe.
    pub(super) has_sample: bool,
    /// Time of the last cut of the window in this recovery.
    pub(super) cut_at: Time,
}

impl RackTimers {
    /// The earlier one.
    pub(super) fn next(&self) -> Option<Time> {
        self.reordering_at.into_iter().chain(self.probe_at).min()
    }

    /// A recovery starts, or one after a time-out.
    pub(super) fn reset(&mut self, now: Time) {
        *self = Self { has_sample: self.has_sample, cut_at: now, ..Self::default() };
    }

    /// The time of a probe has come: it is sent if RFC 8985 s7.3 allows it. `None` if it has not.
    pub(super) fn take_probe(&mut self, now: Time) -> Option<()> {
        self.probe_at.take_if(|at| *at <= now)?;
        self.must_probe = self.probe_end.is_none() && self.has_sample;
        self.has_sample &= !self.must_probe;
        Some(())
    }

    /// RFC 8985 s7.4.2: an acknowledgement of all numbers below `number`, with this duplicate if it reports one. Returns
    /// whether the probe repaired a loss.
    pub(super) fn has_repaired(&mut self, number: u64, duplicate: Option<u64>, is_plain_duplicate: bool) -> bool {
        let Some(end) = self.probe_end.filter(|end| number >= *end) else { return false };
        let is_needless =
            !self.is_probe_repeated || duplicate == Some(end - 1) || (number == end && is_plain_duplicate);
        let is_repaired = !is_needless && number > end;
        if is_needless || is_repaired {
            self.probe_end = None;
        }
        is_repaired
    }
}

/// TLP_calc_PTO, before the bound of the retransmission time-out: `max_ack_delay` with a single packet in flight.
pub(super) fn probe_timeout(smoothed: Duration, max_ack_delay: Option<Duration>) -> Duration {
    if smoothed.is_zero() {
        return Duration::from_secs(1);
    }
    let ns = smoothed.as_nanos().saturating_mul(2);
    Duration::from_nanos(ns.saturating_add(max_ack_delay.map_or(0, Duration::as_nanos)))
}
