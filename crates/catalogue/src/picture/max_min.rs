//! The max-min rates of a run over time.

use std::collections::BTreeSet;

use fairwave_scenario::{MaxMinStep, Run};

/// A max-min rate that applies from one instant to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) bps: f64,
}

/// Shortest visible level, as a share of the run.
const MIN_SHARE: f64 = 0.005;

/// The max-min rates above zero of all sessions; one common to several sessions is named once, and one that would be a
/// dot is left out.
pub(super) fn levels(run: &Run) -> Vec<Level> {
    let end_s = run.summary.duration_s;
    let mut levels = Vec::new();
    for session in 0..run.summary.sessions.len() {
        if run.max_min.is_empty() {
            levels.push(Level { from_s: 0.0, to_s: end_s, bps: run.summary.sessions[session].max_min_bps });
            continue;
        }
        let first = levels.len();
        for (i, step) in run.max_min.iter().enumerate() {
            let from_s = step.from.as_secs_f64();
            let to_s = run.max_min.get(i + 1).map_or(end_s, |next| next.from.as_secs_f64());
            let bps = step.rates_bps.get(session).copied().unwrap_or(0.0);
            match levels[first..].last_mut() {
                Some(last) if last.to_s == from_s && alike(last.bps, bps) => last.to_s = to_s,
                _ => levels.push(Level { from_s, to_s, bps }),
            }
        }
    }
    let mut seen = BTreeSet::new();
    // Seven digits: the same level from different sums is drawn once.
    levels.retain(|level| {
        let key = format!("{:?} {:?} {:.6e}", level.from_s, level.to_s, level.bps);
        level.bps > 0.0 && level.to_s - level.from_s > MIN_SHARE * end_s && seen.insert(key)
    });
    levels
}

/// The max-min rates of all sessions in the sample that ends at `end_s`; those of the summary if none were recorded.
pub(super) fn at(run: &Run, end_s: f64) -> Vec<f64> {
    let begun = run.max_min.partition_point(|step| step.from.as_secs_f64() < end_s);
    match run.max_min.get(begun.saturating_sub(1)) {
        Some(step) => step.rates_bps.clone(),
        None => run.summary.sessions.iter().map(|session| session.max_min_bps).collect(),
    }
}

/// Active time of a session in seconds: from the first to the last instant with a max-min rate above zero.
pub(super) fn active_s(run: &Run, session: usize) -> (f64, f64) {
    let is_active = |step: &MaxMinStep| step.rates_bps.get(session).is_some_and(|bps| *bps > 0.0);
    let end_s = run.summary.duration_s;
    let Some(first) = run.max_min.iter().find(|step| is_active(step)) else { return (0.0, end_s) };
    let last = run.max_min.iter().rposition(is_active).unwrap_or(0);
    let to_s = run.max_min.get(last + 1).map_or(end_s, |next| next.from.as_secs_f64());
    (first.from.as_secs_f64(), to_s)
}

fn alike(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-7 * a.max(b)
}
