//! The limits of sessions, and the order of ties.

use crate::max_min::instance::{Instance, any_instance};
use fairwave_schemes::global::Limit::{self, Demand, Resource};
use proptest::prelude::*;

fn limits(instance: &Instance) -> Vec<Limit> {
    instance.with_lists(|problem| instance.solve().limits(problem))
}

#[test]
fn limits__names_the_bottleneck() {
    // 10 over two sessions, one of which is limited to 4 elsewhere.
    assert_eq!(limits(&Instance::new(&[10.0, 4.0], &[&[0], &[0, 1]])), [Resource(0), Resource(1)]);
}

#[test]
fn limits__ties_go_to_demand_then_along_the_path() {
    let one_to_one = Instance::new(&[9.0, 9.0, 9.0], &[&[2, 0, 1]]);
    assert_eq!(limits(&one_to_one), [Resource(2)]);
    assert_eq!(limits(&Instance { demands: Some(vec![9.0]), ..one_to_one.clone() }), [Demand]);
    assert_eq!(limits(&Instance { demands: Some(vec![9.1]), ..one_to_one }), [Resource(2)]);
    // Sources 0 and 1 of 5 and 5 have one session each to a sink of 10: all three are full at the same level.
    assert_eq!(limits(&Instance::new(&[5.0, 5.0, 10.0], &[&[0, 2], &[1, 2]])), [Resource(0), Resource(1)]);
    assert_eq!(limits(&Instance::new(&[5.0, 5.0, 10.0], &[&[2, 0], &[2, 1]])), [Resource(2), Resource(2)]);
}

#[test]
fn limits__a_full_resource_need_not_limit_a_session() {
    // Resource 2 is full with 2 + 6, but the first session has less there than the second.
    assert_eq!(limits(&Instance::new(&[2.0, 6.0, 8.0], &[&[2, 0], &[2, 1]])), [Resource(0), Resource(2)]);
}

#[test]
fn limits__thirds_tie_in_floating_point() {
    // 0.1 x 3 is not 0.3 in f64; both sides have 0.1 a session within a unit in the last place.
    let instance = Instance::new(&[0.1, 0.1, 0.1, 0.1 * 3.0], &[&[0, 3], &[1, 3], &[2, 3]]);
    assert_eq!(limits(&instance), [Resource(0), Resource(1), Resource(2)]);
}

#[test]
fn limits__without_capacity_and_without_demand() {
    let instance = Instance { demands: Some(vec![0.0, 1.0]), ..Instance::new(&[0.0, 5.0], &[&[0, 1], &[0, 1]]) };
    assert_eq!(instance.solve().rates_bps, [0.0, 0.0]);
    assert_eq!(limits(&instance), [Demand, Resource(0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A bottleneck by the definition, and no earlier one on the path; within about 1e-12 of a tie both results are
    /// accepted.
    #[test]
    fn limits__is_the_first_bottleneck_of_the_definition(instance in any_instance()) {
        let rates = instance.solve().rates_bps;
        let paths = &instance.paths;
        let share = |k: usize| rates[k] / instance.weight(k);
        let users = |r: u32| (0..paths.len()).filter(move |&k| paths[k].contains(&r));
        for (session, limit) in limits(&instance).into_iter().enumerate() {
            let is_bottleneck = |r: u32, tie: f64| {
                let load: f64 = users(r).map(|k| rates[k]).sum();
                let capacity = instance.capacities[r as usize];
                capacity < f64::INFINITY
                    && load >= capacity * (1.0 - tie)
                    && users(r).all(|k| share(k) <= share(session) * (1.0 + tie))
            };
            let is_at_demand = |tie: f64| instance.demand(session) <= rates[session] * (1.0 + tie);
            match limit {
                Demand => prop_assert!(is_at_demand(2e-12)),
                Resource(limit) => {
                    prop_assert!(!is_at_demand(5e-13));
                    prop_assert!(is_bottleneck(limit, 2e-12));
                    for &earlier in paths[session].iter().take_while(|&&r| r != limit) {
                        prop_assert!(!is_bottleneck(earlier, 5e-13), "{earlier} comes before {limit}");
                    }
                }
            }
        }
    }
}
