//! Properties of any max-min allocation.

use crate::max_min::exact::agree;
use crate::max_min::instance::{Instance, any_instance};
use proptest::prelude::*;

/// Rates from the lowest to the highest, per unit weight.
fn leximin(instance: &Instance, rates: &[f64]) -> Vec<f64> {
    let mut shares: Vec<f64> = rates.iter().enumerate().map(|(k, rate)| rate / instance.weight(k)).collect();
    shares.sort_by(f64::total_cmp);
    shares
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn max_min__the_order_of_sessions_and_resources_does_not_matter(
        (instance, sessions, resources) in any_instance().prop_flat_map(|instance| {
            let sessions: Vec<usize> = (0..instance.paths.len()).collect();
            let resources: Vec<u32> = (0..instance.capacities.len() as u32).collect();
            (Just(instance), Just(sessions).prop_shuffle(), Just(resources).prop_shuffle())
        })
    ) {
        let mut capacities = instance.capacities.clone();
        for (old, &new) in resources.iter().enumerate() {
            capacities[new as usize] = instance.capacities[old];
        }
        let pick = |values: &Vec<f64>| sessions.iter().map(|&k| values[k]).collect();
        let shuffled = Instance {
            capacities,
            paths: sessions
                .iter()
                .map(|&k| instance.paths[k].iter().rev().map(|&r| resources[r as usize]).collect())
                .collect(),
            demands: instance.demands.as_ref().map(pick),
            weights: instance.weights.as_ref().map(pick),
        };
        let (before, after) = (instance.solve().rates_bps, shuffled.solve().rates_bps);
        for (new, &old) in sessions.iter().enumerate() {
            prop_assert!(agree(after[new], before[old], 4.0), "{:e} became {:e}", before[old], after[new]);
        }
    }

    #[test]
    fn max_min__scaling_by_a_power_of_two_scales_every_bit(instance in any_instance(), exponent in -60..60) {
        let scale = |values: &Vec<f64>| values.iter().map(|value| value * 2f64.powi(exponent)).collect::<Vec<f64>>();
        let scaled = Instance {
            capacities: scale(&instance.capacities),
            demands: instance.demands.as_ref().map(scale),
            ..instance.clone()
        };
        prop_assert_eq!(scaled.solve().rates_bps, scale(&instance.solve().rates_bps));
    }

    #[test]
    fn max_min__scaling_all_weights_changes_nothing(instance in any_instance(), exponent in -60..60) {
        let weights = |scale: f64| Some((0..instance.paths.len()).map(|k| instance.weight(k) * scale).collect());
        let weighted = Instance { weights: weights(1.0), ..instance.clone() };
        let scaled = Instance { weights: weights(2f64.powi(exponent)), ..instance.clone() };
        prop_assert_eq!(scaled.solve().rates_bps, weighted.solve().rates_bps);
    }

    #[test]
    fn max_min__equal_weights_are_no_weights(instance in any_instance(), weight in 0.1..10.0_f64) {
        let plain = Instance { weights: None, ..instance };
        let weighted = Instance { weights: Some(vec![weight; plain.paths.len()]), ..plain.clone() };
        for (found, expected) in weighted.solve().rates_bps.iter().zip(plain.solve().rates_bps) {
            prop_assert!(agree(*found, expected, 8.0), "{found:e}, without weights {expected:e}");
        }
    }

    #[test]
    fn max_min__more_capacity_never_worsens_the_leximin_order(
        instance in any_instance(),
        resource in any::<prop::sample::Index>(),
        more in prop_oneof![1.0..3.0_f64, Just(f64::INFINITY)],
    ) {
        let mut richer = instance.clone();
        let capacity = &mut richer.capacities[resource.index(instance.capacities.len())];
        *capacity = if more == f64::INFINITY { 1e60 } else { (*capacity + 0.5) * more };
        let before = leximin(&instance, &instance.solve().rates_bps);
        let after = leximin(&richer, &richer.solve().rates_bps);
        // At the first position where they differ by more than rounding, the richer network is better off.
        let first = before.iter().zip(&after).find(|(b, a)| !agree(**a, **b, 16.0));
        prop_assert!(first.is_none_or(|(b, a)| a > b), "{before:?} became {after:?}");
    }

    #[test]
    fn max_min__a_whole_weight_is_that_many_sessions(
        (instance, copies) in any_instance().prop_flat_map(|instance| {
            let sessions = instance.paths.len();
            (Just(instance), prop::collection::vec(1..5_usize, sessions))
        })
    ) {
        let spread = |values: &Vec<f64>| -> Vec<f64> {
            copies.iter().zip(values).flat_map(|(&n, value)| vec![value / n as f64; n]).collect()
        };
        let weighted =
            Instance { weights: Some(copies.iter().map(|&n| n as f64).collect()), ..instance.clone() };
        let copied = Instance {
            paths: copies.iter().zip(&instance.paths).flat_map(|(&n, path)| vec![path.clone(); n]).collect(),
            demands: instance.demands.as_ref().map(spread),
            weights: None,
            capacities: instance.capacities.clone(),
        };
        let expected = spread(&weighted.solve().rates_bps);
        for (found, expected) in copied.solve().rates_bps.iter().zip(expected) {
            prop_assert!(agree(*found, expected, 8.0), "{found:e}, weighted {expected:e}");
        }
    }
}

/// Source i feeds sinks i and i + 1, and capacities rise, so that each bottleneck waits for the previous one.
fn chain(links: u32) -> Instance {
    Instance {
        capacities: (0..=links).map(|i| 1.0 + f64::from(i)).collect(),
        paths: (0..links).map(|i| vec![i, i + 1]).collect(),
        demands: None,
        weights: None,
    }
}

#[test]
fn max_min__a_chain_resolves_one_after_another() {
    // Resource i has capacity 1 + i and the sessions i - 1 and i: session 0 has 1 (only resource 0), session 1 has 2 -
    // 1 = 1, session 2 has 3 - 1 = 2, session 3 has 4 - 2 = 2, ...
    let rates = chain(1000).solve().rates_bps;
    for (k, rate) in rates.iter().enumerate() {
        assert_eq!(*rate, 1.0 + (k / 2) as f64, "session {k}");
    }
}

#[test]
fn max_min__ties_everywhere() {
    // All sources to all sinks, all equal: C/n each.
    for n in [1, 2, 3, 7, 49] {
        let all = Instance {
            capacities: vec![1.0; 2 * n],
            paths: (0..n * n).map(|k| vec![(k / n) as u32, (n + k % n) as u32]).collect(),
            demands: None,
            weights: None,
        };
        assert_eq!(all.solve().rates_bps, vec![1.0 / n as f64; n * n]);
    }
}
