//! The reason why a session's rate is not higher.

use super::double::Double;
use super::problem::{NONE, Problem};

/// The limit of a session's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// Its own demand.
    Demand,
    /// A resource of its path, by number.
    Resource(u32),
}

/// The limit of each session of a max-min allocation; of several, the demand comes first, then the order of the path.
pub(super) fn limits(problem: &Problem<'_>, rates: &[f64], levels: &[f64]) -> Vec<Limit> {
    let levels = with_ties(problem, rates, levels);
    (0..problem.sessions())
        .map(|session| {
            let most = rates[session] / problem.weight(session) * (1.0 + TIE);
            let resource =
                problem.paths.of(session).iter().find(|&&r| r != NONE && levels[r as usize] <= most).copied();
            match resource {
                Some(resource) if problem.demand(session) > rates[session] * (1.0 + TIE) => Limit::Resource(resource),
                // The allocation belongs to the problem, so a rate that no resource explains is a demand.
                _ => Limit::Demand,
            }
        })
        .collect()
}

/// The levels, completed for resources that became full only because others limited all of their sessions: the session
/// with the highest rate there is limited by them as well.
fn with_ties(problem: &Problem<'_>, rates: &[f64], levels: &[f64]) -> Vec<f64> {
    let is_silent = |r: usize| levels[r] == f64::INFINITY && problem.capacities_bps[r] < f64::INFINITY;
    let mut loads = vec![(Double::ZERO, 0.0_f64); levels.len()];
    for (session, &rate) in rates.iter().enumerate() {
        for &resource in problem.paths.of(session) {
            if resource != NONE && is_silent(resource as usize) {
                let (load, highest) = &mut loads[resource as usize];
                load.add(rate);
                *highest = highest.max(rate / problem.weight(session));
            }
        }
    }
    loads
        .iter()
        .enumerate()
        .map(|(r, (load, highest))| {
            let is_full = is_silent(r) && load.value() >= problem.capacities_bps[r] * (1.0 - TIE);
            if is_full { *highest } else { levels[r] }
        })
        .collect()
}

/// Relative distance within which two levels, or a load and a capacity, count as equal.
const TIE: f64 = 1e-12;
