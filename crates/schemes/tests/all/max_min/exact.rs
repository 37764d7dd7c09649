//! Algorithm 1 as printed, in exact rational arithmetic: slow and simple.

use crate::max_min::instance::{Instance, any_instance};
use num_rational::BigRational;
use proptest::prelude::*;

/// Wu 2007, Algorithm 1, with weights and with "determined" as a flag.
pub fn rates(instance: &Instance) -> Vec<f64> {
    let exact = |value: f64| BigRational::from_float(value).expect("finite");
    let sessions = instance.paths.len();
    let weights: Vec<BigRational> = (0..sessions).map(|k| exact(instance.weight(k))).collect();
    let mut rates: Vec<Option<BigRational>> = vec![None; sessions];
    while rates.iter().any(Option::is_none) {
        // b(v) of the resources that have undetermined sessions and a finite capacity.
        let bottleneck = (0..instance.capacities.len())
            .filter(|&v| instance.capacities[v] < f64::INFINITY)
            .filter_map(|v| {
                let mut remaining = exact(instance.capacities[v]);
                let mut weight = exact(0.0);
                for k in (0..sessions).filter(|&k| instance.paths[k].contains(&(v as u32))) {
                    match &rates[k] {
                        Some(rate) => remaining -= rate,
                        None => weight += &weights[k],
                    }
                }
                (weight > exact(0.0)).then(|| (remaining / weight, v as u32))
            })
            .min();
        let modest = (0..sessions)
            .filter(|&k| rates[k].is_none() && instance.demand(k) < f64::INFINITY)
            .map(|k| (exact(instance.demand(k)) / &weights[k], k))
            .min();
        match (bottleneck, modest) {
            (Some((level, v)), modest) if modest.as_ref().is_none_or(|(demand, _)| level < *demand) => {
                for k in 0..sessions {
                    if rates[k].is_none() && instance.paths[k].contains(&v) {
                        rates[k] = Some(&level * &weights[k]);
                    }
                }
            }
            (_, Some((_, k))) => rates[k] = Some(exact(instance.demand(k))),
            _ => panic!("nothing limits a session"),
        }
    }
    rates.into_iter().map(|rate| to_f64(&rate.expect("determined above"))).collect()
}

/// The nearest f64, through 64 significant bits.
fn to_f64(exact: &BigRational) -> f64 {
    use num_rational::BigRational as R;
    if *exact.numer() == 0.into() {
        return 0.0;
    }
    let bits = exact.numer().bits().cast_signed() - exact.denom().bits().cast_signed();
    let shift = 64 - bits;
    let two = R::from_integer(2.into());
    let scaled = if shift >= 0 { exact * two.pow(shift as i32) } else { exact / two.pow(-shift as i32) };
    let whole: u128 = scaled.round().to_integer().try_into().expect("64 bits or one more");
    // In two halves, as 2^-shift may be out of range.
    let half = -(shift / 2) as i32;
    whole as f64 * 2f64.powi(half) * 2f64.powi(-shift as i32 - half)
}

/// Whether two rates agree within some units in the last place.
pub fn agree(found: f64, exact: f64, ulps: f64) -> bool {
    (found - exact).abs() <= exact * f64::EPSILON * ulps
}

#[test]
fn rates__two_sessions_by_hand() {
    let instance = Instance::new(&[10.0, 4.0], &[&[0], &[0, 1]]);
    assert_eq!(rates(&instance), [6.0, 4.0]);
    assert_eq!(rates(&Instance::new(&[1.0], &[&[0], &[0], &[0]])), [1.0 / 3.0; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn max_min__equals_exact_arithmetic(instance in any_instance()) {
        let found = instance.solve().rates_bps;
        for (session, (&found, exact)) in found.iter().zip(rates(&instance)).enumerate() {
            prop_assert!(agree(found, exact, 4.0), "session {session}: {found:e}, exactly {exact:e}");
        }
    }
}
