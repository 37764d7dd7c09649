//! Errors of invalid input, and unusual input that is valid.

use crate::max_min::instance::Instance;
use fairwave_schemes::global::{MaxMinError, NONE, Paths, PerSession, Problem, max_min};

fn error(instance: &Instance) -> MaxMinError {
    let lists = instance.with_lists(|problem| max_min(problem).unwrap_err());
    let rows = instance.with_rows(|problem| max_min(problem).unwrap_err());
    assert_eq!(lists.to_string(), rows.to_string());
    lists
}

/// Two sessions over resource 0, the second over resource 1 as well.
fn small() -> Instance {
    Instance::new(&[10.0, 4.0], &[&[0], &[0, 1]])
}

#[test]
fn max_min__bad_quantities_are_named() {
    for bad in [-1.0, f64::NAN, f64::NEG_INFINITY, 1e101] {
        let mut instance = small();
        instance.capacities[1] = bad;
        assert!(matches!(error(&instance), MaxMinError::Capacity { resource: 1, .. }), "{bad}");
        let instance = Instance { demands: Some(vec![1.0, bad]), ..small() };
        assert!(matches!(error(&instance), MaxMinError::Demand { session: 1, .. }), "{bad}");
    }
    for bad in [-1.0, 0.0, f64::NAN, f64::INFINITY, 1e101, 1e-101] {
        let instance = Instance { weights: Some(vec![bad, 1.0]), ..small() };
        assert!(matches!(error(&instance), MaxMinError::Weight { session: 0, .. }), "{bad}");
    }
}

#[test]
fn max_min__bad_paths_are_named() {
    assert_eq!(
        error(&Instance::new(&[1.0, 1.0], &[&[0, 1], &[1, 2]])),
        MaxMinError::UnknownResource { session: 1, resource: 2, resources: 2 }
    );
    for path in [&[0, 0][..], &[1, 0, 1]] {
        let resource = path[0];
        let instance = Instance::new(&[1.0, 1.0], &[&[0, 1], path]);
        assert_eq!(error(&instance), MaxMinError::RepeatedResource { session: 1, resource });
    }
}

#[test]
fn max_min__unlimited_sessions_are_errors() {
    let inf = f64::INFINITY;
    for path in [&[][..], &[1], &[1, 2]] {
        let free = Instance::new(&[1.0, inf, inf], &[&[0, 1], path]);
        assert_eq!(error(&free), MaxMinError::Unlimited { session: 1 });
        let rates = Instance { demands: Some(vec![inf, 7.0]), ..free }.solve().rates_bps;
        assert_eq!(rates, [1.0, 7.0]);
    }
}

#[test]
fn max_min__lengths_must_fit() {
    let demands = Instance { demands: Some(vec![1.0]), ..small() };
    assert_eq!(error(&demands), MaxMinError::Length { what: PerSession::Demands, found: 1, sessions: 2 });
    let weights = Instance { weights: Some(vec![1.0; 3]), ..small() };
    assert_eq!(error(&weights), MaxMinError::Length { what: PerSession::Weights, found: 3, sessions: 2 });
    let solve = |paths| max_min(&Problem::new(&[1.0; 4], paths)).unwrap_err();
    let resources = &[0, 1, 2];
    assert_eq!(solve(Paths::Rows { width: 2, resources }), MaxMinError::Rows { found: 3, width: 2 });
    assert_eq!(solve(Paths::Rows { width: 0, resources }), MaxMinError::Rows { found: 3, width: 0 });
    for (offsets, position) in [(&[][..], 0), (&[1, 3], 0), (&[0, 2, 1, 3], 2), (&[0, 2], 1), (&[0, 4, 3], 2)] {
        assert_eq!(solve(Paths::Lists { offsets, resources }), MaxMinError::Offsets { position, length: 3 });
    }
}

#[test]
fn max_min__messages_name_item_position_and_limit() {
    let instance = Instance { capacities: vec![10.0, -4.0], ..small() };
    assert_eq!(
        error(&instance).to_string(),
        "capacity -4 bit/s of resource 1 must be from 0 to 1e100, or infinity if unlimited"
    );
    let instance = Instance::new(&[f64::INFINITY], &[&[0]]);
    assert_eq!(
        error(&instance).to_string(),
        "session 0 is unlimited: give it a demand, or one of its resources a finite capacity"
    );
}

#[test]
fn max_min__accepts_empty_problems() {
    assert_eq!(Instance::new(&[], &[]).solve().rates_bps, [0.0; 0]);
    assert_eq!(Instance::new(&[5.0, 0.0], &[]).solve().rates_bps, [0.0; 0]);
    let none = max_min(&Problem::new(&[1.0], Paths::Rows { width: 0, resources: &[] })).unwrap();
    assert_eq!(none.rates_bps, [0.0; 0]);
    let demands = Some([2.0, -0.0].as_slice());
    let padding = Paths::Rows { width: 2, resources: &[NONE; 4] };
    let modest = max_min(&Problem { demands_bps: demands, ..Problem::new(&[], padding) }).unwrap();
    assert_eq!(modest.rates_bps, [2.0, 0.0]);
    assert!(modest.rates_bps[1].is_sign_positive());
}

#[test]
fn max_min__zero_demands_and_zero_capacities_give_zero_rates() {
    let instance =
        Instance { demands: Some(vec![0.0, 9.0, 1.0]), ..Instance::new(&[6.0, 0.0], &[&[0], &[0], &[0, 1]]) };
    assert_eq!(instance.solve().rates_bps, [0.0, 6.0, 0.0]);
    for zero in [0.0, -0.0] {
        // The last session shares a sink with the first, which gets nothing: it takes all 5.
        let instance = Instance::new(&[zero, 9.0, 5.0, 7.0, zero], &[&[0, 2], &[0, 3], &[1, 4], &[1, 2]]);
        let rates = instance.solve().rates_bps;
        assert_eq!(rates, [0.0, 0.0, 0.0, 5.0]);
        assert!(rates.iter().all(|rate| rate.is_sign_positive()), "{rates:?}");
    }
}

#[test]
fn max_min__the_largest_and_the_smallest_quantities() {
    // 1e100 over weights 1e100 and 1e-100: the light one gets 1e-100, all below the last digit of the other.
    let instance = Instance { weights: Some(vec![1e100, 1e-100]), ..Instance::new(&[1e100], &[&[0], &[0]]) };
    assert_eq!(instance.solve().rates_bps, [1e100, 1e-100]);
    // The heavy one stays at its demand, the light one takes the rest.
    let instance = Instance { demands: Some(vec![1.0, f64::INFINITY]), ..instance };
    assert_eq!(instance.solve().rates_bps, [1.0, 1e100]);
    let instance = Instance::new(&[f64::MIN_POSITIVE, 1e100], &[&[0, 1], &[0, 1], &[1]]);
    assert_eq!(instance.solve().rates_bps, [f64::MIN_POSITIVE / 2.0, f64::MIN_POSITIVE / 2.0, 1e100]);
}
