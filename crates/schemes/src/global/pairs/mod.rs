//! The optimum where every session crosses at most two resources, a source and a sink, and weights are equal: the
//! lambda network.
//!
//! A resource whose level is at or below that of all its neighbours (the resources at the other ends of its
//! undetermined sessions) and their demands is *lowest*. Levels only rise while sessions are determined, so a lowest
//! one will be filled at the level it has now, in whatever order. That allows to fill without sorting:
//!
//! 1. [`rounds`]: each walks once over all undetermined sessions to find the lowest resources, and once to fill them
//!    all. Random networks are resolved by a few rounds.
//! 2. [`descent`]: where few are lowest at a time (chains), walk from a resource to a lower neighbour until one is
//!    lowest, fill it, and continue from the one before.
//! 3. [`super::filling`] for what is left should the descent look at sessions too often: O(K log N) whatever comes.
//!
//! Only levels are kept. A session's rate is the least of its demand and the levels at its ends.

mod descent;
mod rest;
mod rounds;

use super::double::Double;
use super::problem::{MaxMinError, NONE, Paths, Problem};
use rest::Rest;
use rounds::Rounds;

/// The levels, if this is the way for the problem.
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

fn solve<D: Demand>(
    problem: &Problem<'_>,
    edges: impl ExactSizeIterator<Item = Edge<D>> + Clone,
) -> Result<Vec<f64>, MaxMinError> {
    let resources = problem.capacities_bps.len();
    let mut rounds = Rounds::new(problem.capacities_bps, edges.clone().map(|edge| edge.ends))
        .ok_or_else(|| first_error(edges.clone().map(|edge| edge.ends), resources))?;
    let undetermined = rounds.run(edges);
    let mut levels = if undetermined.is_empty() {
        rounds.levels
    } else {
        let (rest, mut levels) = Rest::new(rounds, undetermined);
        rest.fill(&mut levels, DESCENT_LIMIT);
        levels
    };
    levels.truncate(resources);
    for level in &mut levels {
        if *level > BOUNDLESS_LEVEL {
            *level = f64::INFINITY;
        }
    }
    Ok(levels)
}

/// An undetermined session: the resources at its ends and what it wants.
#[derive(Clone, Copy, Debug)]
struct Edge<D> {
    ends: [u32; 2],
    demand: D,
}

/// A demand that may be infinite, or () where all are, so that no memory and time goes into them.
trait Demand: Copy {
    /// Whether there are finite ones.
    const FINITE: bool;
    /// The number of a session, kept where its demand may determine it.
    type Number: Copy;

    fn bps(self) -> f64;
    fn number(session: usize) -> Self::Number;
    fn index(number: Self::Number) -> usize;
}

impl Demand for () {
    const FINITE: bool = false;
    type Number = ();

    #[inline]
    fn bps(self) -> f64 {
        f64::INFINITY
    }

    fn number(_: usize) {}

    fn index((): ()) -> usize {
        0
    }
}

impl Demand for f64 {
    const FINITE: bool = true;
    type Number = u32;

    #[inline]
    fn bps(self) -> f64 {
        self
    }

    #[inline]
    fn number(session: usize) -> u32 {
        session as u32
    }

    #[inline]
    fn index(number: u32) -> usize {
        number as usize
    }
}

/// What a resource has left.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Capacity without the rates of the determined sessions; once the resource is filled, its level.
    remaining: Double,
    /// Number of the undetermined sessions.
    undetermined: u32,
}

impl Share {
    /// The level to about a unit in the last place, but never below what it was before, which only rounding could make
    /// of it.
    #[inline]
    fn level(&self, before: f64) -> f64 {
        before.max(self.remaining.value() / f64::from(self.undetermined))
    }

    /// The level in twice the precision. It may be a hair below what it was taken for to find it lowest, but no more:
    /// what the capacity lacks if sessions were determined at a neighbour's level that was the same but for rounding
    /// must not fall on the few that remain.
    #[inline]
    fn exact_level(&self, before: f64) -> Double {
        let level = self.remaining.divide_by_count(self.undetermined);
        if level.value() < before * (1.0 - 2.0 * f64::EPSILON) { Double::from(before) } else { level }
    }

    /// Takes out a session that was determined elsewhere.
    #[inline]
    fn take(&mut self, rate: Double) {
        self.remaining.subtract(rate);
        self.undetermined -= 1;
    }
}

/// The first mistake in the paths, of which there is one.
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

/// Stands for an infinite capacity: subtracting from it stays a number.
const BOUNDLESS: f64 = 1e300;

/// Above all levels of finite capacities (1e100 at most), below those of boundless ones (1e300 / 2^32 at least).
const BOUNDLESS_LEVEL: f64 = 1e200;

/// How often the descent may look at each end of a session, on average, before it gives up.
const DESCENT_LIMIT: usize = 16;
