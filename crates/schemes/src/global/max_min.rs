//! The max-min fair optimum.

use super::filling;
use super::limit::{self, Limit};
use super::pairs;
use super::problem::{MaxMinError, Paths, Problem};

/// The max-min fair allocation of a [`Problem`].
#[derive(Clone, Debug, PartialEq)]
pub struct MaxMin {
    /// Rate of each session in bit/s.
    pub rates_bps: Vec<f64>,
    /// Level of each resource: the rate per unit weight, in bit/s, of the sessions that it limits; infinity if it
    /// limits none.
    pub levels_bps: Vec<f64>,
}

/// The max-min fair rates (Wu 2007, Algorithm 1 and Definition 2), for any number of resources per session, with
/// demands and weights.
///
/// In this unique allocation no session's rate per unit weight can rise without lowering that of another session that
/// is not higher. A session's rate is its demand or weight x the lowest level among its resources.
///
/// The result is deterministic to the last bit. Capacities are subtracted in twice the precision of f64, for any number
/// of sessions: the rates at a resource that limits any session sum to its capacity within a relative 2^-51 (weights:
/// 2^-50), and each level is the exact one for the demands and for capacities that differ by no more than that. Another
/// order of the sessions or resources changes rates within the same bound.
///
/// # Errors
/// The first [`MaxMinError`] that is found.
pub fn max_min(problem: &Problem<'_>) -> Result<MaxMin, MaxMinError> {
    problem.check()?;
    let levels_bps = pairs::levels(problem).unwrap_or_else(|| filling::levels(problem))?;
    let rates_bps = rates(problem, &levels_bps)?;
    Ok(MaxMin { rates_bps, levels_bps })
}

impl MaxMin {
    /// The limit of each session: its demand, or the first resource on its path that is full and gives no session more
    /// per unit weight. "Full" and "more" count within a relative 1e-12.
    ///
    /// # Panics
    /// If `problem` is not the one that was solved.
    pub fn limits(&self, problem: &Problem<'_>) -> Vec<Limit> {
        limit::limits(problem, &self.rates_bps, &self.levels_bps)
    }
}

/// The rates that follow from the levels.
fn rates(problem: &Problem<'_>, levels: &[f64]) -> Result<Vec<f64>, MaxMinError> {
    let rates = match problem.paths {
        Paths::Rows { width: 2, resources } => {
            let rows = resources.as_chunks().0.iter();
            dress(problem, rows.map(|&[a, b]: &[u32; 2]| level(levels, a).min(level(levels, b))))
        }
        paths => dress(problem, (0..paths.sessions()).map(|session| least(levels, paths.of(session)))),
    };
    match rates.iter().position(|&rate| rate == f64::INFINITY) {
        Some(session) => Err(MaxMinError::Unlimited { session }),
        None => Ok(rates),
    }
}

/// Rates from the lowest level of each path, the weights and the demands.
fn dress(problem: &Problem<'_>, least: impl Iterator<Item = f64>) -> Vec<f64> {
    // Adding zero turns a demand of -0.0 into 0.0.
    match (problem.weights, problem.demands_bps) {
        (None, None) => least.collect(),
        (None, Some(demands)) => least.zip(demands).map(|(level, demand)| level.min(*demand) + 0.0).collect(),
        (Some(weights), None) => least.zip(weights).map(|(level, weight)| level * weight).collect(),
        (Some(weights), Some(demands)) => least
            .zip(weights)
            .zip(demands)
            .map(|((level, weight), demand)| (level * weight).min(*demand) + 0.0)
            .collect(),
    }
}

/// The lowest level on a path.
fn least(levels: &[f64], path: &[u32]) -> f64 {
    path.iter().fold(f64::INFINITY, |least, &resource| least.min(level(levels, resource)))
}

/// The level of a resource; infinity for [`NONE`](super::NONE).
#[inline]
fn level(levels: &[f64], resource: u32) -> f64 {
    levels.get(resource as usize).copied().unwrap_or(f64::INFINITY)
}
