//! Measures of a whole run, common to all simulators.

use std::ops::Add;

use fairwave_schemes::global::metrics;
use serde::Serialize;

use crate::SessionSummary;

/// A session is near its max-min rate if it differs by at most this share of it.
const NEAR: f64 = 0.05;

/// Measures of the run as a whole, in wire rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Sum of the sessions' `wire_rate_bps`.
    pub total_bps: f64,
    /// Jain's index of the sessions' `wire_rate_bps`.
    pub jain: f64,
    /// 2-norm distance to the max-min vector at the start.
    pub distance_start_bps: f64,
    /// 2-norm distance at the end.
    pub distance_final_bps: f64,
    /// max |final - max-min| / max-min over sessions with max-min > 0.
    pub gap_to_max_min: f64,
    /// Time from which on every session stayed within 5 % of its max-min rate.
    pub converged_s: Option<f64>,
    /// Largest offered load of a node over its capacity.
    pub peak_overload: f64,
}

/// Inputs of the measures from the course of a run; the rest is in the summaries of its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// 2-norm distance to the max-min vector at the start.
    pub distance_start_bps: f64,
    /// 2-norm distance at the end.
    pub distance_final_bps: f64,
    /// Time from which on every session stayed near its max-min rate ([`is_far`]), if it did.
    pub converged_s: Option<f64>,
    /// Largest offered load of a node over its capacity.
    pub peak_overload: f64,
}

impl Metrics {
    /// The measures of a run with these sessions and this course.
    pub fn of(sessions: &[SessionSummary], course: Course) -> Self {
        let column = |of: fn(&SessionSummary) -> f64| sessions.iter().map(of).collect::<Vec<_>>();
        let wire = column(|session| session.wire_rate_bps);
        let [finals, best] = [column(|session| session.final_wire_rate_bps), column(|session| session.max_min_bps)];
        let Course { distance_start_bps, distance_final_bps, converged_s, peak_overload } = course;
        Self {
            // Without sessions 0.0, where `sum` gives -0.0.
            total_bps: wire.iter().fold(0.0, Add::add),
            jain: metrics::jain_index(&wire),
            distance_start_bps,
            distance_final_bps,
            gap_to_max_min: metrics::gap(&finals, &best),
            converged_s,
            peak_overload,
        }
    }
}

/// Whether a session is more than 5 % away from its max-min rate. A session whose max-min rate is zero (not started,
/// over or without demand) is never far.
pub fn is_far(rate_bps: f64, max_min_bps: f64) -> bool {
    max_min_bps > 0.0 && (rate_bps - max_min_bps).abs() > NEAR * max_min_bps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_far__is_more_than_a_twentieth_away() {
        assert!(is_far(94.9, 100.0) && is_far(105.1, 100.0));
        assert!(!is_far(95.0, 100.0) && !is_far(105.0, 100.0));
        assert!(!is_far(7.0, 0.0));
    }
}
