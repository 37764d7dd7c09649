//! Results of sessions at the end of a run, for the engines that keep each session separately.

use crate::grain::{self, Grains, Volume};
use crate::plan::FluidPlan;
use crate::queue::Queue;
use crate::report::{SessionOutcome, last_tenth};
use crate::track::Track;

/// Advances the queue at each finite capacity to the end of the run.
pub(crate) fn close_queues(plan: &FluidPlan<'_>, queues: &mut [Queue], window: (u64, u64)) {
    for (resource, queue) in plan.resources.iter().zip(queues) {
        if resource.capacity.is_some() {
            queue.advance(plan.end, resource.grains, window);
        }
    }
}

/// Result of one session that ended at `end`; `arrived` is the volume that arrived between two instants.
pub(crate) fn outcome(
    (start, end, run_end): (u64, u64, u64),
    window: (u64, u64),
    track: &Track,
    completed: Option<u64>,
    arrived: impl Fn(u64, u64) -> Volume,
) -> SessionOutcome {
    let mean = |(from, to)| grain::mean_bps(arrived(from, to), to - from);
    SessionOutcome {
        rate_bps: mean(window),
        final_bps: mean(last_tenth(start, end)),
        delivered: arrived(0, run_end),
        max_min_bps: track.optimum_bps,
        completed,
    }
}

/// Time at which the remaining volume will have been sent, at this rate from `since` on; `None` at rate zero.
pub(crate) fn sent_at(left: Volume, rate: Grains, since: u64) -> Option<u64> {
    let rate = Volume::from(rate);
    let span = match left.max(0) {
        0 => 0,
        _ if rate == 0 => return None,
        left => (left + rate - 1) / rate,
    };
    Some(u64::try_from(Volume::from(since) + span).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_at__rounds_up_and_is_never_at_rate_zero() {
        assert_eq!(sent_at(100, 30, 5), Some(9));
        assert_eq!(sent_at(100, 0, 5), None);
        // Nothing is left: now, at any rate.
        assert_eq!([sent_at(0, 0, 5), sent_at(-3, 7, 5)], [Some(5); 2]);
        assert_eq!(sent_at(Volume::from(u64::MAX), 1, 5), Some(u64::MAX));
    }
}
