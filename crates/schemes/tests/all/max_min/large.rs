//! Networks of many sessions: errors must not add up, and all algorithms must agree.

use crate::max_min::definition::violation;
use crate::max_min::instance::Instance;
use proptest::prelude::*;

/// A sink and `sources` sources whose capacities are around its share, all different.
fn star(sources: usize) -> Instance {
    let mut capacities: Vec<f64> = (0..sources).map(|k| 0.5 + ((k * 7919) % sources) as f64 / sources as f64).collect();
    capacities.push(0.9 * sources as f64);
    let paths = (0..sources as u32).map(|k| vec![k, sources as u32]).collect();
    Instance { capacities, paths, demands: None, weights: None }
}

/// The share of a hub's sessions rises over another tenth of the leaves each time that the algorithm has visited them
/// all.
fn hub(leaves: usize) -> Instance {
    let mut capacities = Vec::new();
    let (mut rest, mut before, mut level) = (leaves as f64, 0.0, 1.0);
    while capacities.len() < leaves {
        let left = leaves - capacities.len();
        let batch = left.div_ceil(10);
        let leaf = if before == 0.0 { 0.1 } else { before + (level - before) * 1e-3 };
        capacities.extend(std::iter::repeat_n(leaf, batch));
        rest -= leaf * batch as f64;
        (before, level) = (level, if left > batch { rest / (left - batch) as f64 } else { level });
    }
    capacities.reverse();
    capacities.push(leaves as f64);
    let paths = (0..leaves as u32).map(|k| vec![k, leaves as u32]).collect();
    Instance { capacities, paths, demands: None, weights: None }
}

#[test]
fn max_min__rates_of_many_sessions_sum_to_the_capacity() {
    let star = star(100_000);
    let rates = star.solve().rates_bps;
    // 100 000 rates of all sizes: in plain f64 the capacity would be missed by thousands of units in the last place.
    assert_eq!(violation(&star, &rates), None);
}

#[test]
fn max_min__many_sessions_with_weights_and_demands() {
    let mut star = star(30_000);
    star.weights = Some((0..30_000).map(|k| 0.1 + f64::from(k % 97)).collect());
    assert_eq!(violation(&star, &star.solve().rates_bps), None);
    star.demands = Some((0..30_000).map(|k| f64::from(k % 89) / 60.0).collect());
    assert_eq!(violation(&star, &star.solve().rates_bps), None);
}

#[test]
fn max_min__a_hub_that_has_to_be_looked_at_again_and_again() {
    let hub = hub(20_000);
    assert_eq!(violation(&hub, &hub.solve().rates_bps), None);
}

/// Connections from a private generator, as strategies of that size are slow.
fn random(sources: u32, sessions: u32, seed: u64, with_demands: bool) -> Instance {
    let mut state = seed;
    let mut next = |limit: u32| {
        // Knuth's MMIX generator; the high bits are good enough.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(limit)) as u32
    };
    let capacities = (0..2 * sources).map(|_| 1.0 + f64::from(next(1000)) / 100.0).collect();
    let paths = (0..sessions).map(|_| vec![next(sources), sources + next(sources)]).collect();
    let demands = with_demands.then(|| {
        (0..sessions).map(|_| if next(2) == 0 { f64::from(next(1000)) / 300.0 } else { f64::INFINITY }).collect()
    });
    Instance { capacities, paths, demands, weights: None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn max_min__random_networks_of_thousands(sources in 100..2000_u32, seed: u64, with_demands: bool) {
        let instance = random(sources, 6000, seed, with_demands);
        prop_assert_eq!(violation(&instance, &instance.solve().rates_bps), None);
    }
}
