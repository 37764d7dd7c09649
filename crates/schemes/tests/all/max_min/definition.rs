//! Definition 2 (Wu 2007, read as y_p > x_p implies some q with y_q < x_q <= x_p), checked without an algorithm.

use crate::max_min::instance::{Instance, any_instance, lambda};
use proptest::prelude::*;

/// Permitted relative error of sums and quotients: 2^-50 is four units in the last place.
const NEAR: f64 = 1.0 / (1_u64 << 50) as f64;

/// Whether rates are feasible and max-min fair.
///
/// Some y with y_p > x_p and no q with y_q < x_q <= x_p exists exactly if p is below its demand and has, at each of its
/// resources, room or a session with a higher rate to take from. So x is max-min fair if every session is at its demand
/// or has a full resource where no session has a higher rate. With weights rates are compared per unit weight.
pub fn violation(instance: &Instance, rates: &[f64]) -> Option<String> {
    let mut at: Vec<Vec<usize>> = vec![Vec::new(); instance.capacities.len()];
    for (session, path) in instance.paths.iter().enumerate() {
        for &resource in path {
            at[resource as usize].push(session);
        }
    }
    let loads: Vec<f64> = at.iter().map(|sessions| sum(sessions.iter().map(|&k| rates[k]))).collect();
    for (resource, (&load, &capacity)) in loads.iter().zip(&instance.capacities).enumerate() {
        if load > capacity * (1.0 + NEAR) {
            return Some(format!("resource {resource}: load {load:e} exceeds {capacity:e}"));
        }
    }
    let share = |k: usize| rates[k] / instance.weight(k);
    let most: Vec<f64> = at.iter().map(|sessions| sessions.iter().map(|&k| share(k)).fold(0.0, f64::max)).collect();
    for (p, path) in instance.paths.iter().enumerate() {
        if !(0.0..=instance.demand(p)).contains(&rates[p]) {
            return Some(format!("session {p}: {} is below zero or above its demand", rates[p]));
        }
        let is_bottleneck = |&&r: &&u32| {
            let r = r as usize;
            loads[r] >= instance.capacities[r] * (1.0 - NEAR) && most[r] <= share(p) * (1.0 + NEAR)
        };
        if rates[p] < instance.demand(p) * (1.0 - NEAR) && !path.iter().any(|r| is_bottleneck(&r)) {
            return Some(format!("session {p}: {:e} can rise", rates[p]));
        }
    }
    None
}

/// Neumaier's sum over rising terms.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut terms: Vec<f64> = terms.collect();
    terms.sort_by(f64::total_cmp);
    let (mut sum, mut error) = (0.0, 0.0);
    for term in terms {
        let next = sum + term;
        // Terms rise, so the larger of the two is the term or the sum.
        error += if sum >= term { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + error
}

#[test]
fn violation__knows_unfair_and_infeasible_vectors() {
    // Two sessions over one resource of 10, the second over one of 4 as well: 6 + 4.
    let instance = Instance::new(&[10.0, 4.0], &[&[0], &[0, 1]]);
    assert_eq!(violation(&instance, &[6.0, 4.0]), None);
    assert!(violation(&instance, &[5.0, 4.0]).unwrap().contains("session 0"));
    assert!(violation(&instance, &[7.0, 3.0]).unwrap().contains("session 1"));
    assert!(violation(&instance, &[6.5, 4.0]).unwrap().contains("resource 0"));
    assert!(violation(&instance, &[14.0, -4.0]).unwrap().contains("below zero"));
    let modest = Instance { demands: Some(vec![2.0, f64::INFINITY]), ..instance };
    assert_eq!(violation(&modest, &[2.0, 4.0]), None);
    assert!(violation(&modest, &[6.0, 4.0]).unwrap().contains("demand"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn max_min__satisfies_definition_2(instance in any_instance()) {
        prop_assert_eq!(violation(&instance, &instance.solve().rates_bps), None);
    }

    #[test]
    fn max_min__satisfies_definition_2_in_large_networks(instance in lambda(60, 60, 400)) {
        prop_assert_eq!(violation(&instance, &instance.solve().rates_bps), None);
    }
}
