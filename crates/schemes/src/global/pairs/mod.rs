//! The optimum for sessions that cross at most two resources, a source and a sink, and weights are equal: the lambda
//! network.
//!
//! A resource whose level is at or below that of all its neighbours (the resources at the other ends of its
//! undetermined sessions) and their demands is *lowest*. Levels only rise while sessions are determined, so a lowest
//! one will be filled at its current level, in any order. That makes it possible to fill without sorting:
//!
//! 1. [`rounds`]: each passes once over all undetermined sessions to find the lowest resources, and once to fill them
//!    all. A few rounds resolve random networks.
//! 2. [`descent`]: if few are lowest at a time (chains), walk from a resource to a lower neighbour until one is lowest,
//!    fill it, and continue from its predecessor.
//! 3. [`super::filling`] for the rest, if the descent visits sessions too often: O(K log N) in all cases.
//!
//! Only levels are stored. A session's rate is the least of its demand and the levels at its ends.

mod descent;
mod parts;
mod rest;
mod rounds;

use super::problem::{MaxMinError, NONE, Paths, Problem};
use parts::{Edge, OptionalDemand};
use rest::Rest;
use rounds::Rounds;

/// The levels, if this algorithm applies to the problem.
pub(super) fn levels(problem: &Problem<'_>) -> Option<Result<Vec<f64>, MaxMinError>> {
    let rows = rows(problem)?;
    Some(match problem.demands_bps {
        None => solve(problem, rows.iter().map(|&ends| Edge { ends, demand: () })),
        Some(demands) => solve(problem, rows.iter().zip(demands).map(|(&ends, &demand)| Edge { ends, demand })),
    })
}

/// The paths as pairs, without weights.
fn rows<'a>(problem: &Problem<'a>) -> Option<&'a [[u32; 2]]> {
    if problem.weights.is_some() {
        return None;
    }
    match problem.paths {
        Paths::Rows { width: 2, resources } => Some(resources.as_chunks().0),
        Paths::Lists { offsets, resources } if offsets.iter().enumerate().all(|(k, &offset)| offset == 2 * k) => {
            Some(resources.as_chunks().0)
        }
        _ => None,
    }
}

fn solve<D: OptionalDemand>(
    problem: &Problem<'_>,
    edges: impl ExactSizeIterator<Item = Edge<D>> + Clone,
) -> Result<Vec<f64>, MaxMinError> {
    let resources = problem.capacities_bps.len();
    let mut rounds = Rounds::new(problem.capacities_bps, edges.clone().map(|edge| edge.ends))
        .ok_or_else(|| first_error(edges.clone().map(|edge| edge.ends), resources))?;
    let undetermined = rounds.run(edges);
    let rest = (!undetermined.is_empty()).then(|| Rest::new(&rounds, undetermined));
    let mut levels = rounds.into_levels();
    if let Some(rest) = rest {
        rest.fill(&mut levels, DESCENT_LIMIT);
    }
    levels.truncate(resources);
    Ok(levels)
}

/// The first mistake in the paths; the caller knows that there is one.
fn first_error(ends: impl Iterator<Item = [u32; 2]>, resources: usize) -> MaxMinError {
    for (session, ends) in ends.enumerate() {
        for resource in ends {
            if resource as usize >= resources && resource != NONE {
                return MaxMinError::UnknownResource { session, resource, resources };
            }
        }
        if ends[0] == ends[1] && ends[0] != NONE {
            return MaxMinError::RepeatedResource { session, resource: ends[0] };
        }
    }
    unreachable!("called where a path is not valid")
}

/// Visits of the descent to each end of a session, on average, before it gives up.
const DESCENT_LIMIT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Capacities from a few values or arbitrary, sessions between `n` sources and `n` sinks, demands for half of them.
    fn network(n: u32, sessions: usize) -> impl Strategy<Value = (Vec<f64>, Vec<[u32; 2]>, Vec<f64>)> {
        let quantity = || prop_oneof![(1..6_u32).prop_map(f64::from), 0.1..100.0_f64];
        let demand = prop_oneof![quantity().prop_map(|rate| rate / 10.0), Just(f64::INFINITY)];
        let ends = (0..n, n..2 * n).prop_map(|(source, sink)| [source, sink]);
        (
            proptest::collection::vec(quantity(), 2 * n as usize),
            proptest::collection::vec(ends, sessions),
            proptest::collection::vec(demand, sessions),
        )
    }

    /// The rates by descent only, with a limit on the visits.
    fn rates<D: OptionalDemand>(capacities: &[f64], edges: &[Edge<D>], looks: usize) -> Vec<f64> {
        let mut rounds = Rounds::new(capacities, edges.iter().map(|edge| edge.ends)).unwrap();
        rounds.open =
            (0..capacities.len() as u32).filter(|&resource| rounds.node(resource).1.undetermined > 0).collect();
        let rest = Rest::new(&rounds, edges.to_vec());
        let mut levels = rounds.into_levels();
        rest.fill(&mut levels, looks);
        edges
            .iter()
            .map(|edge| edge.ends.iter().fold(edge.demand.bps(), |rate, &end| rate.min(levels[end as usize])))
            .collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) -> Result<(), TestCaseError> {
        for (f, e) in found.iter().zip(expected) {
            prop_assert!((f - e).abs() <= e * 4.0 * f64::EPSILON, "{found:?} is not {expected:?}");
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn fill__descent_and_order_agree_at_any_limit(
            (capacities, ends, demands) in network(6, 40),
            looks in 0..4_usize,
        ) {
            let edges: Vec<Edge<()>> = ends.iter().map(|&ends| Edge { ends, demand: () }).collect();
            let expected = rates(&capacities, &edges, usize::MAX);
            assert_close(&rates(&capacities, &edges, looks), &expected)?;
            let edges: Vec<Edge<f64>> =
                ends.iter().zip(demands).map(|(&ends, demand)| Edge { ends, demand }).collect();
            let expected = rates(&capacities, &edges, usize::MAX);
            assert_close(&rates(&capacities, &edges, looks), &expected)?;
        }

        #[test]
        fn levels__rounds_agree_with_descent((capacities, ends, demands) in network(6, 40)) {
            let resources: Vec<u32> = ends.concat();
            let edges: Vec<Edge<f64>> =
                ends.iter().zip(&demands).map(|(&ends, &demand)| Edge { ends, demand }).collect();
            let problem = Problem {
                demands_bps: Some(&demands),
                ..Problem::new(&capacities, Paths::Rows { width: 2, resources: &resources })
            };
            let found = crate::global::max_min(&problem).unwrap().rates_bps;
            assert_close(&found, &rates(&capacities, &edges, usize::MAX))?;
        }
    }

    #[test]
    fn descend__gives_up_at_its_limit() {
        let edges: Vec<Edge<()>> = (0..100).map(|k| Edge { ends: [k, k + 1], demand: () }).collect();
        let capacities: Vec<f64> = (0..=100).map(f64::from).collect();
        let mut rounds = Rounds::new(&capacities, edges.iter().map(|edge| edge.ends)).unwrap();
        rounds.open = (0..=100).collect();
        let mut levels = vec![f64::INFINITY; 102];
        assert!(!Rest::new(&rounds, edges.clone()).descend(&mut levels, 50));
        assert!(levels.contains(&f64::INFINITY));
        assert!(Rest::new(&rounds, edges).descend(&mut levels, 1000));
    }
}
