//! Measures of an allocation, and of its distance from another. Rates in bit/s (or any other common unit), one per
//! session, in the same order everywhere.

use super::problem::{NONE, Problem};

/// Length of the vector, sqrt(sum x^2); zero if empty.
pub fn norm(rates: &[f64]) -> f64 {
    norm_of(rates.iter().copied())
}

/// sqrt(sum x^2), summed in order, without overflow or underflow in the squares; NaN if any is NaN.
pub fn norm_of(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(0.0_f64, |most, x| if x.is_nan() { x } else { most.max(x.abs()) });
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let scale = power_of_two_below(largest);
    scale * values.map(|x| (x / scale) * (x / scale)).sum::<f64>().sqrt()
}

/// 2-norm distance D between two allocations, sqrt(sum (x - y)^2): zero at the optimum (Wu & Chien 2006, section 3.2).
///
/// # Panics
/// If the lengths differ.
pub fn distance(rates: &[f64], others: &[f64]) -> f64 {
    assert_eq!(rates.len(), others.len(), "a rate of each session on both sides");
    norm_of(rates.iter().zip(others).map(|(x, y)| x - y))
}

/// Jain's fairness index, (sum x)^2 / (n sum x^2), from 1/n (one session has everything) to 1 (all rates are equal).
/// One if there are no sessions or all rates are zero.
pub fn jain_index(rates: &[f64]) -> f64 {
    let largest = rates.iter().fold(0.0_f64, |most, rate| most.max(rate.abs()));
    if largest == 0.0 {
        return 1.0;
    }
    let scale = power_of_two_below(largest);
    let (mut sum, mut squares) = (0.0, 0.0);
    for rate in rates {
        let x = rate / scale;
        sum += x;
        squares += x * x;
    }
    // Rounding may take the index of equal rates above one.
    (sum * sum / (rates.len() as f64 * squares)).min(1.0)
}

/// Largest relative difference from the optimum, max |x - x*| / x* over the sessions with x* > 0; zero if there are no
/// such sessions.
///
/// # Panics
/// If the lengths differ.
pub fn gap(rates: &[f64], optimum: &[f64]) -> f64 {
    assert_eq!(rates.len(), optimum.len(), "a rate of each session on both sides");
    rates
        .iter()
        .zip(optimum)
        .filter(|(_, best)| **best > 0.0)
        .fold(0.0, |gap, (x, best)| gap.max((x - best).abs() / best))
}

/// Load of each resource relative to its capacity. Zero for an unlimited resource; for one without capacity zero if
/// idle, otherwise infinity.
///
/// # Panics
/// If there is not one rate per session, or the problem is not valid.
pub fn utilisation(problem: &Problem<'_>, rates: &[f64]) -> Vec<f64> {
    assert_eq!(rates.len(), problem.sessions(), "a rate of each session");
    let mut loads = vec![0.0; problem.capacities_bps.len()];
    for (session, rate) in rates.iter().enumerate() {
        for &resource in problem.paths.of(session) {
            if resource != NONE {
                loads[resource as usize] += rate;
            }
        }
    }
    loads.iter().zip(problem.capacities_bps).map(|(&load, &capacity)| share(load, capacity)).collect()
}

/// Load over capacity, with 0/0 = 0.
fn share(load: f64, capacity: f64) -> f64 {
    if load == 0.0 { 0.0 } else { load / capacity }
}

/// The largest power of two that is at most a number above zero. Divided by it, numbers keep all their
/// digits and their squares neither overflow nor underflow.
fn power_of_two_below(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::Paths;

    #[test]
    fn distance__is_euclid() {
        // sqrt(3^2 + 4^2) = 5
        assert_eq!(distance(&[10.0, 4.0], &[7.0, 8.0]), 5.0);
        assert_eq!(distance(&[1.5e9, 2.0], &[1.5e9, 2.0]), 0.0);
        assert_eq!(distance(&[], &[]), 0.0);
        for scale in [2f64.powi(600), 2f64.powi(-600)] {
            assert_eq!(norm(&[3.0 * scale, 4.0 * scale]), 5.0 * scale);
        }
        assert_eq!(norm(&[0.0, 0.0]), 0.0);
        assert!(norm(&[f64::NAN, 1.0]).is_nan());
        assert!(norm(&[1.0, f64::NAN, 1.0]).is_nan());
        assert_eq!(norm(&[f64::INFINITY, 1.0]), f64::INFINITY);
    }

    #[test]
    fn jain_index__runs_from_one_nth_to_one() {
        assert_eq!(jain_index(&[7.0; 5]), 1.0);
        assert_eq!(jain_index(&[0.0, 0.0, 3.0, 0.0]), 0.25);
        // (1 + 2 + 3)^2 / (3 x 14) = 36/42
        assert!((jain_index(&[1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-15);
        assert_eq!(jain_index(&[1e300, 1e300]), 1.0);
        assert_eq!(jain_index(&[]), 1.0);
        assert_eq!(jain_index(&[0.0; 3]), 1.0);
    }

    #[test]
    fn gap__is_relative_and_skips_sessions_without_a_share() {
        // |80 - 100| / 100 = 0.2 beats |11 - 10| / 10 = 0.1; the third has x* = 0.
        assert!((gap(&[80.0, 11.0, 5.0], &[100.0, 10.0, 0.0]) - 0.2).abs() < 1e-15);
        assert_eq!(gap(&[1.0], &[0.0]), 0.0);
        assert_eq!(gap(&[], &[]), 0.0);
    }

    #[test]
    fn utilisation__is_load_over_capacity() {
        let capacities = [10.0, 4.0, f64::INFINITY, 0.0, 0.0, 8.0];
        let resources = [0, 1, NONE, 0, 2, 3];
        let problem = Problem::new(&capacities, Paths::Rows { width: 3, resources: &resources });
        // 0: (1 + 2) / 10, 1: 1 / 4, 3: 2 / 0, 4 and 5: idle
        assert_eq!(utilisation(&problem, &[1.0, 2.0]), [0.3, 0.25, 0.0, f64::INFINITY, 0.0, 0.0]);
    }
}
