//! Losses that are reported after the probe that caused them.

use super::super::bbr::{AckPhase, Model};
use super::super::rate_sample::RateSample;

/// Whether all losses of the sample were sent before startup or the last probe ended: they were answered at that time.
///
/// The draft treats later reports as losses of the path at the model's current rate: in drain the rate falls to the
/// little that is sent, until the next probe (87 of 100 Mb/s for three seconds, with reports every quarter of a round
/// trip). With an acknowledgement per packet, losses are reported in time, and this does not apply.
pub(super) fn are_answered(model: &Model, sample: &RateSample) -> bool {
    !model.state.is_probing() && model.probe_end.is_some_and(|end| sample.lost_delivered.get() <= end)
}

/// Whether feedback of a probe still comes, which was answered when the probe ended. The draft treats its losses as those
/// of the path, and stays until the next probe at the rate of the round trips after this one: a tenth less on a short
/// buffer.
pub(super) fn is_feedback(model: &Model) -> bool {
    model.state.is_probe_bw() && model.cycle.phase == AckPhase::Stopping
}
