use num_rational::BigRational;
use proptest::prelude::*;

use crate::node::gtp_options::{BUDGET, DRAIN, EXPONENTIAL_START};

use super::*;

/// Demand and terms of one session in a network with a single node.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    group: u32,
    weight: u8,
    minimum: u16,
    maximum: Option<u16>,
    /// Its limit elsewhere in Mb/s, like the other rates.
    limit: Option<u16>,
    begins: u16,
}

/// The exact hierarchical max-min allocation, in Mb/s: groups first, then the sessions of each, by fractions.
fn exact(capacity: u16, terms: &BTreeMap<u32, Terms>, wanted: &[Wanted]) -> Vec<f64> {
    let number = |value: f64| BigRational::from_float(value).unwrap();
    let zero = || number(0.0);
    let cap = |wanted: &Wanted| {
        let caps = [wanted.limit, wanted.maximum].into_iter().flatten().min();
        caps.map(|cap| number(f64::from(cap)))
    };
    let floor = |wanted: &Wanted| {
        let minimum = number(f64::from(wanted.minimum));
        cap(wanted).map_or(minimum.clone(), |cap| cap.min(minimum))
    };
    let mut groups: Vec<u32> = wanted.iter().map(|wanted| wanted.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let vessels: Vec<Vessel> = groups
        .iter()
        .map(|group| {
            let members = || wanted.iter().filter(|wanted| wanted.group == *group);
            let terms = terms.get(group).copied().unwrap_or_default();
            // The sum of their uses, if each of them is limited.
            let used = members().map(cap).try_fold(zero(), |sum, cap| Some(sum + cap?));
            let maximum = terms.maximum.map(|rate| number(rate.as_mbps()));
            let caps = [used, maximum].into_iter().flatten().min();
            let floors = members().map(floor).fold(zero(), |sum, floor| sum + floor);
            Vessel { weight: number(terms.weight), floor: floors.max(number(terms.minimum.as_mbps())), cap: caps }
        })
        .collect();
    let shares = water(&number(f64::from(capacity)), &vessels);
    let mut rates = vec![0.0; wanted.len()];
    for (group, share) in groups.iter().zip(shares) {
        let members: Vec<usize> = (0..wanted.len()).filter(|at| wanted[*at].group == *group).collect();
        let vessel = |at: &usize| {
            let one = &wanted[*at];
            Vessel { weight: number(f64::from(one.weight)), floor: floor(one), cap: cap(one) }
        };
        let vessels: Vec<Vessel> = members.iter().map(vessel).collect();
        for (at, rate) in members.iter().zip(water(&share, &vessels)) {
            rates[*at] = num_traits_to_f64(&rate);
        }
    }
    rates
}

fn num_traits_to_f64(value: &BigRational) -> f64 {
    // Numerators and denominators of small whole numbers: both have digits enough for an f64.
    let digits = |number: String| number.parse::<f64>().unwrap();
    digits(value.numer().to_string()) / digits(value.denom().to_string())
}

#[derive(Clone, Debug)]
struct Vessel {
    weight: BigRational,
    floor: BigRational,
    cap: Option<BigRational>,
}

impl Vessel {
    fn at(&self, level: &BigRational) -> BigRational {
        let filled = (self.weight.clone() * level).max(self.floor.clone());
        self.cap.clone().map_or(filled.clone(), |cap| cap.min(filled))
    }
}

/// Fills vessels to one level and returns the content of each. Between two levels at which the slope of a vessel
/// changes all is linear.
fn water(capacity: &BigRational, vessels: &[Vessel]) -> Vec<BigRational> {
    let zero = BigRational::from_float(0.0).unwrap();
    let one = BigRational::from_float(1.0).unwrap();
    let mut bends: Vec<BigRational> = vessels
        .iter()
        .flat_map(|vessel| [Some(&vessel.floor), vessel.cap.as_ref()].map(|bend| Some(bend? / vessel.weight.clone())))
        .flatten()
        .collect();
    bends.push(zero.clone());
    bends.sort();
    // Far above the last one, where only vessels without a cap rise.
    let sum = |level: &BigRational| vessels.iter().map(|vessel| vessel.at(level)).fold(zero.clone(), |a, b| a + b);
    let above = bends.iter().position(|bend| sum(bend) > *capacity).unwrap_or(bends.len());
    let Some(from) = above.checked_sub(1).map(|below| bends[below].clone()) else {
        return vessels.iter().map(|vessel| vessel.at(&zero)).collect();
    };
    let next = bends.get(above).cloned().unwrap_or_else(|| from.clone() + one);
    let (low, high) = (sum(&from), sum(&next));
    let level = if high == low { next } else { from.clone() + (capacity - low.clone()) * (next - from) / (high - low) };
    vessels.iter().map(|vessel| vessel.at(&level)).collect()
}

#[test]
fn exact__of_a_case_by_hand() {
    let wanted = |group, limit| Wanted { group, weight: 1, minimum: 0, maximum: None, limit, begins: 0 };
    // Groups 1 and 2 share 90: group 1 can use only 20, so group 2 has 70; of that its first session uses 10.
    let rates = exact(90, &BTreeMap::new(), &[wanted(1, Some(20)), wanted(2, Some(10)), wanted(2, None)]);
    assert_eq!(rates, [20.0, 10.0, 60.0]);
    let lifted = Wanted { minimum: 50, ..wanted(2, None) };
    assert_eq!(exact(90, &BTreeMap::new(), &[wanted(1, None), lifted, wanted(2, None)]), [40.0, 50.0, 0.0]);
}

/// Runs a single node until nothing changes: each session uses what it is granted, up to its limit.
fn settle(rule: &mut dyn RateAllocator, capacity: u16, wanted: &[Wanted]) -> Vec<f64> {
    let used = |wanted: &Wanted, rate: Rate| wanted.limit.map_or(rate, |limit| rate.min(Rate::mbps(f64::from(limit))));
    let mut rows: Vec<Row> = wanted
        .iter()
        .map(|one| Row {
            measured: used(one, Rate::mbps(f64::from(one.begins))),
            terms: Terms {
                group: one.group,
                weight: f64::from(one.weight),
                minimum: Rate::mbps(f64::from(one.minimum)),
                maximum: one.maximum.map(|maximum| Rate::mbps(f64::from(maximum))),
                ..Terms::default()
            },
        })
        .collect();
    let mut grants = vec![Grant::default(); rows.len()];
    for _ in 0..3000 {
        rule.allocate(&interval(capacity), &rows, &mut grants);
        let before = rows.clone();
        for ((row, one), grant) in rows.iter_mut().zip(wanted).zip(&grants) {
            row.measured = used(one, grant.expected);
        }
        if rows == before {
            break;
        }
    }
    rows.iter().map(|row| row.measured.as_mbps()).collect()
}

fn interval(capacity: u16) -> Interval {
    Interval { capacity: Rate::mbps(f64::from(capacity)), elapsed: Duration::from_millis(20) }
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let minimum = prop_oneof![4 => Just(0_u16), 1 => 1..40_u16];
    let maximum = prop::option::weighted(0.2, 41..400_u16);
    let limit = prop::option::weighted(0.5, prop_oneof![1 => Just(0_u16), 6 => 1..400_u16]);
    (0..5_u32, 1..4_u8, minimum, maximum, limit, 0..1000_u16).prop_map(
        |(group, weight, minimum, maximum, limit, begins)| Wanted { group, weight, minimum, maximum, limit, begins },
    )
}

fn terms() -> impl Strategy<Value = BTreeMap<u32, Terms>> {
    let one = (1..5_u8, prop_oneof![2 => Just(0_u8), 1 => 1..60_u8], prop::option::weighted(0.3, 500..900_u16));
    prop::collection::btree_map(0..5_u32, one, 0..4).prop_map(|all| {
        let terms = |(weight, minimum, maximum): (u8, u8, Option<u16>)| Terms {
            weight: f64::from(weight),
            minimum: Rate::mbps(f64::from(minimum)),
            maximum: maximum.map(|maximum| Rate::mbps(f64::from(maximum))),
            ..Terms::default()
        };
        all.into_iter().map(|(group, one)| (group, terms(one))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn allocate__converges_to_hierarchical_max_min(
        wanted in prop::collection::vec(wanted(), 1..12), terms in terms(), capacity in 700..1000_u16,
    ) {
        // Minima are at most 11 x 39 and 3 x 59, below the capacity, as admission control ensures.
        let mut rule = Groups::default();
        for (group, terms) in &terms {
            rule.set_group(*group, Some(*terms));
        }
        let (ours, exact) = (settle(&mut rule, capacity, &wanted), exact(capacity, &terms, &wanted));
        for (ours, exact) in ours.iter().zip(&exact) {
            prop_assert!((ours - exact).abs() <= 1e-9 * f64::from(capacity), "{ours:?} for {exact:?}");
        }
    }

    #[test]
    fn allocate__of_one_group_is_gtp_to_the_bit(
        rows in prop::collection::vec((0..1000_u32, 1..9_u8, 0..4_u8, 0..50_u32), 1..40),
        drain: bool, budget in prop::option::of(1.01..1.5_f64), exponential: bool,
    ) {
        let mut options = Options::default();
        DRAIN.set(&mut options, drain);
        if exponential {
            EXPONENTIAL_START.set(&mut options, Some(0.5));
        }
        let rows: Vec<Row> = rows
            .iter()
            .map(|&(measured, weight, alpha, minimum)| Row { measured: Rate::mbps(f64::from(measured) / 3.0), terms: Terms { group: 7, weight: f64::from(weight), minimum: if alpha == 3 { Rate::mbps(f64::from(minimum) / 7.0) } else { Rate::ZERO }, alpha: 0.1 + f64::from(alpha) / 10.0, beta: 0.2, ..Terms::default() } })
            .collect();
        let mut ours = vec![Grant::default(); rows.len()];
        let mut theirs = ours.clone();
        let (mut groups, mut gtp) = (Groups::new(Reading::Adopted, &options), Gtp::new(Reading::Adopted, &options));
        groups.allocate(&interval(900), &rows, &mut ours);
        gtp.allocate(&interval(900), &rows, &mut theirs);
        prop_assert_eq!(&ours, &theirs);
        if let Some(budget) = budget {
            // Over one group the sum of steps is taken in another order.
            BUDGET.set(&mut options, Some(budget));
            Groups::new(Reading::Adopted, &options).allocate(&interval(900), &rows, &mut ours);
            Gtp::new(Reading::Adopted, &options).allocate(&interval(900), &rows, &mut theirs);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                prop_assert!((ours.expected.as_bps() - theirs.expected.as_bps()).abs() <= 1e-12 * 9e8, "{ours:?} {theirs:?}");
            }
        }
    }

    #[test]
    fn allocate__of_one_session_a_group_is_gtp(
        rows in prop::collection::vec((0..1000_u32, 1..9_u8, prop_oneof![3 => Just(0_u32), 1 => 0..20_u32]), 2..40),
    ) {
        let mut rule = Groups::default();
        let rows: Vec<Row> = (0..)
            .zip(&rows)
            .map(|(group, &(measured, weight, minimum))| {
                let weight = f64::from(weight);
                rule.set_group(group, Some(Terms { weight, ..Terms::default() }));
                // A group's minimum counts as far as it is used: both count the same if all of it is used.
                let minimum = Rate::mbps(f64::from(minimum.min(measured)));
                Row { measured: Rate::mbps(f64::from(measured)), terms: Terms { weight, minimum, group, ..Terms::default() } }
            })
            .collect();
        let mut ours = vec![Grant::default(); rows.len()];
        let mut theirs = ours.clone();
        rule.allocate(&interval(900), &rows, &mut ours);
        Gtp::default().allocate(&interval(900), &rows, &mut theirs);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            prop_assert!((ours.expected.as_bps() - theirs.expected.as_bps()).abs() <= 1e-9 * 9e8, "{ours:?} {theirs:?}");
            prop_assert!((ours.target.as_bps() - theirs.target.as_bps()).abs() <= 1e-9 * 9e8, "{ours:?} {theirs:?}");
        }
    }

    #[test]
    fn allocate__budget_holds_over_all_groups(
        rows in prop::collection::vec((0..1000_u32, 0..6_u32), 1..40), budget in 1.01..1.5_f64, capacity in 1..1000_u16,
    ) {
        let mut options = Options::default();
        BUDGET.set(&mut options, Some(budget));
        let of = |&(measured, group): &(u32, u32)| Row { measured: Rate::mbps(f64::from(measured)), terms: Terms { group, ..Terms::default() } };
        let rows: Vec<Row> = rows.iter().map(of).collect();
        let mut grants = vec![Grant::default(); rows.len()];
        Groups::new(Reading::Adopted, &options).allocate(&interval(capacity), &rows, &mut grants);
        let sum: f64 = grants.iter().map(|grant| grant.expected.as_mbps()).sum();
        prop_assert!(sum <= budget * f64::from(capacity) * (1.0 + 1e-9), "{sum} of {capacity}");
    }

    #[test]
    fn allocate__does_not_depend_on_earlier_tables(
        tables in prop::collection::vec(prop::collection::vec((0..40_u32, 0..4_u32), 1..40), 2..5),
    ) {
        let mut warm = Groups::default();
        for table in &tables {
            let rows: Vec<Row> = table
                .iter()
                .map(|&(measured, group)| Row { measured: Rate::mbps(f64::from(measured)), terms: Terms { group, ..Terms::default() } })
                .collect();
            let (mut ours, mut anew) = (vec![Grant::default(); rows.len()], vec![Grant::default(); rows.len()]);
            warm.allocate(&interval(100), &rows, &mut ours);
            Groups::default().allocate(&interval(100), &rows, &mut anew);
            prop_assert_eq!(ours, anew);
        }
    }

    #[test]
    fn allocate__any_finite_input_gives_rates(
        rows in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>(), 0..4_u32, any::<f64>()), 0..30),
        capacity: f64, group: (f64, f64),
    ) {
        let mut rule = Groups::default();
        let weight = group.0.abs().clamp(1e-100, 1e100);
        let weight = if weight.is_finite() { weight } else { 1.0 };
        let minimum = Rate::nearest_bps(group.1);
        rule.set_group(1, Some(Terms { weight, minimum, maximum: Some(Rate::nearest_bps(-group.1)), ..Terms::default() }));
        let rows: Vec<Row> = rows
            .iter()
            .map(|&(measured, minimum, maximum, group, weight)| Row { measured: Rate::nearest_bps(measured), terms: Terms { group, minimum: Rate::nearest_bps(minimum), maximum: (maximum > 0.0).then(|| Rate::nearest_bps(maximum)), weight: if weight.is_finite() { weight.abs().clamp(1e-100, 1e100) } else { 1.0 }, ..Terms::default() } })
            .collect();
        let mut grants = vec![Grant::default(); rows.len()];
        let interval = Interval { capacity: Rate::nearest_bps(capacity), elapsed: Duration::from_millis(20) };
        rule.allocate(&interval, &rows, &mut grants);
        for (row, grant) in rows.iter().zip(&grants) {
            prop_assert!((0.0..=f64::MAX).contains(&grant.expected.as_bps()), "{grant:?}");
            prop_assert!(row.terms.maximum.is_none_or(|maximum| grant.expected <= maximum), "{grant:?}");
            prop_assert!(row.terms.maximum.is_some() || grant.expected >= row.terms.minimum, "{grant:?}");
        }
    }
}

#[test]
fn fill__a_minimum_that_is_not_used_is_the_others() {
    // C = 10. The first may have 8 and uses 4: the second has 6, and steps; the first can have its 8 at any time.
    let rows = [(4.0, 8.0), (6.0, 0.0)].map(|(measured, minimum)| Row {
        measured: Rate::mbps(measured),
        terms: Terms { minimum: Rate::mbps(minimum), ..Terms::default() },
    });
    let mut grants = [Grant::default(); 2];
    Gtp::default().allocate(&interval(10), &rows, &mut grants);
    assert_eq!(grants.map(|grant| grant.expected.as_mbps()), [8.0, 6.0]);
}

/// Grants of two sessions of 70 Mb/s each at 120 Mb/s, with such other traffic.
fn beside(rule: &mut Groups, groups: [u32; 2], other: Option<(f64, f64)>) -> [f64; 2] {
    let rows = groups.map(|group| Row { measured: Rate::mbps(70.0), terms: Terms { group, ..Terms::default() } });
    let mut grants = [Grant::default(); 2];
    rule.see_other(other.map(|(weight, mbps)| Others { weight, measured: Rate::mbps(mbps) }));
    let interval = Interval { capacity: Rate::mbps(120.0), elapsed: Duration::from_millis(20) };
    rule.allocate(&interval, &rows, &mut grants);
    grants.map(|grant| grant.expected.as_mbps())
}

#[test]
fn see_other__leaves_other_traffic_its_used_share() {
    let mut rule = Groups::default();
    for (other, expected) in [
        (None, 60.0),
        // Less than its half of 120: its use plus a step towards that, 30 + 0.1 x 30. More: its half. With weight one
        // half: a third.
        (Some((1.0, 30.0)), 43.5),
        (Some((1.0, 0.0)), 60.0),
        (Some((1.0, 200.0)), 30.0),
        (Some((0.5, 200.0)), 40.0),
        (Some((3.0, 200.0)), 15.0),
        (None, 60.0),
    ] {
        assert_eq!(beside(&mut rule, [0, 0], other), [expected; 2], "{other:?}");
    }
    // With two owners it is a third one.
    assert_eq!(beside(&mut rule, [1, 2], Some((1.0, 200.0))), [40.0; 2]);
}

#[test]
fn see_other__takes_its_share_off_the_budget_of_steps() {
    let mut options = Options::default();
    BUDGET.set(&mut options, Some(1.05));
    let mut rule = Groups::new(Reading::Adopted, &options);
    let step = |rule: &mut Groups, other: Option<Others>| {
        // Two sessions on their way up, with steps as large as the gap.
        let rows = [Row::new(Rate::mbps(10.0), 0.9, 0.2); 2];
        let mut grants = [Grant::default(); 2];
        rule.see_other(other);
        let interval = Interval { capacity: Rate::mbps(120.0), elapsed: Duration::from_millis(20) };
        rule.allocate(&interval, &rows, &mut grants);
        grants.iter().map(|grant| grant.expected.as_mbps()).sum::<f64>()
    };
    // Without others up to 1.05 x 120; with 100 of others, of which 60 are their share, up to 1.05 x 60.
    assert!(step(&mut rule, None) <= 126.0 + 1e-9);
    let sum = step(&mut rule, Some(Others { weight: 1.0, measured: Rate::mbps(100.0) }));
    assert!(sum <= 63.0 + 1e-9 && sum > 20.0, "{sum}");
}

#[test]
fn see_other__drain_excludes_the_queue_of_other_traffic() {
    let mut options = Options::default();
    DRAIN.set(&mut options, true);
    let mut rule = Groups::new(Reading::Adopted, &options);
    // The sessions keep to their half; they need not drain the queue that the others build.
    for _ in 0..50 {
        let rows = [Row::new(Rate::mbps(30.0), 0.1, 0.2); 2];
        let mut grants = [Grant::default(); 2];
        rule.see_queue(Duration::from_millis(100));
        rule.see_other(Some(Others { weight: 1.0, measured: Rate::mbps(90.0) }));
        let interval = Interval { capacity: Rate::mbps(120.0), elapsed: Duration::from_millis(20) };
        rule.allocate(&interval, &rows, &mut grants);
        assert_eq!(grants.map(|grant| grant.expected.as_mbps()), [30.0; 2]);
    }
}
