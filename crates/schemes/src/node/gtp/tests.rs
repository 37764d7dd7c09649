use fairwave_units::Duration;
use proptest::prelude::*;

use super::*;
use crate::Terms;
use crate::node::gtp_options::{BUDGET, DRAIN, EXPONENTIAL_START};

const ALPHA: f64 = 0.15;
const BETA: f64 = 0.2;

#[test]
fn allocate__single_session_follows_the_steps_of_the_paper() {
    // Capacity 1: x_n = 0, .15, .2775 ...; while the gap is above beta it shrinks by .85, then +.03 a step;
    // n = 10 gives 1 - .85^10 = .803, then 7 steps to 1.
    let mut rate = 0.0;
    let mut rates = vec![rate];
    while rate < 1.0 {
        rate = one_tick(&mut Gtp::default(), 1.0, &[rate])[0];
        rates.push(rate);
    }
    assert_near(&rates[..3], &[0.0, 0.15, 0.2775]);
    assert_near(&[rates[10]], &[1.0 - 0.85_f64.powi(10)]);
    assert_eq!(rates.len(), 18, "n = 17 reaches the capacity: {rates:?}");
    assert_eq!(rates[17], 1.0, "exactly");
}

#[test]
fn allocate__an_exponential_start_doubles_up_to_its_threshold() {
    let mut options = Options::default();
    EXPONENTIAL_START.set(&mut options, Some(0.5));
    let rule = &mut Gtp::new(Reading::Adopted, &options);
    let mut rate = 0.0;
    let mut next = || {
        rate = one_tick(rule, 1.0, &[rate])[0];
        rate
    };
    let steps = [next(), next(), next()];
    // From nothing one linear step, alpha = .15; then twice as much, and 0.5 is the threshold.
    assert_near(&steps, &[0.15, 0.3, 0.5]);
    assert_near(&[next()], &[0.575]); // 0.5 + alpha x 0.5
}

#[test]
fn allocate__sessions_at_the_fair_share_stay_there() {
    // 0.1, 0.2 limited elsewhere; the others share 0.7 evenly.
    let rates = one_tick(&mut Gtp::default(), 1.0, &[0.35, 0.1, 0.35, 0.2]);
    // The limited ones may rise: .1 + .15 (.25 - .1), .2 + .15 (.3 - .2).
    assert_near(&rates, &[0.35, 0.1225, 0.35, 0.215]);
}

#[test]
fn allocate__lowest_first_in_any_order_of_rows() {
    let rates = one_tick(&mut Gtp::default(), 900.0, &[600.0, 0.0, 100.0]);
    // 900/3 = 300: 0 + 45. 900/2 = 450: 100 + 52.5. 800 left: 600 + max(.15 x 200, .03 x 800).
    assert_near(&rates, &[630.0, 45.0, 152.5]);
}

#[test]
fn allocate__ties_get_one_target() {
    let mut grants = [Grant::default(); 4];
    let idle = rows(&[0.0; 4]);
    Gtp::default().allocate(&interval(1.0), &idle, &mut grants);
    for grant in grants {
        assert_near(&[grant.expected.as_bps(), grant.target.as_bps()], &[ALPHA / 4.0, 0.25]);
    }
    // As printed: alpha / 4, alpha / 3, alpha / 2, alpha, although all four are equal.
    let mut printed = Gtp::new(Reading::Printed, &Options::default());
    assert_near(&one_tick(&mut printed, 1.0, &[0.0; 4]), &[ALPHA / 4.0, ALPHA / 3.0, ALPHA / 2.0, ALPHA]);
    // A billionth apart is a tie, a thousandth is not: the second of these has (1 - .3) / 1 for itself.
    // .3003 + .15 x (.7 - .3003)
    assert_near(&one_tick(&mut Gtp::default(), 1.0, &[0.3, 0.3 * (1.0 + 5e-10)]), &[0.33, 0.33]);
    assert_near(&one_tick(&mut Gtp::default(), 1.0, &[0.3, 0.3003]), &[0.33, 0.360_255]);
}

#[test]
fn allocate__idle_sessions_next_to_a_busy_one_exceed_alpha() {
    // K - 1 idle sessions and one at C. With a common target for ties, they get alpha C / K each; the busy one, the
    // only one left, has all of C and is at its target: the sum is C (1 + alpha (K - 1) / K).
    for sessions in [2, 8, 64] {
        let mut measured = vec![0.0; sessions];
        measured[sessions - 1] = 1.0;
        let n = sessions as f64;
        let sum: f64 = one_tick(&mut Gtp::default(), 1.0, &measured).iter().sum();
        assert_near(&[sum], &[1.0 + ALPHA * (n - 1.0) / n]);
        // As printed the idle ones get alpha C (1/K + ... + 1/2), and the busy one steps on by alpha beta C: alpha C
        // (H_K - 1 + beta).
        let mut printed = Gtp::new(Reading::Printed, &Options::default());
        let sum: f64 = one_tick(&mut printed, 1.0, &measured).iter().sum();
        // At its target it takes the even split of line 15; slightly below, the minimum step of line 8.
        assert_near(&[sum], &[1.0 + ALPHA * (harmonic(sessions) - 1.0)]);
        measured[sessions - 1] = 1.0 - 1e-12;
        let sum: f64 = one_tick(&mut printed, 1.0, &measured).iter().sum();
        assert_near(&[sum], &[1.0 + ALPHA * (harmonic(sessions) - 1.0 + BETA)]);
    }
}

#[test]
fn allocate__printed_rule_cycles_and_adopted_one_settles() {
    // One sink of 1 Gb/s, 3 sessions, 50 ms, alpha .15, beta .2; grants take effect half an interval late, and rates
    // are counted in whole bytes like any real measurement. A third is not a whole number of bytes, so a session is
    // measured slightly below it. As printed it then gets the minimum step alpha beta x_f, 3 % of a third, in every
    // interval.
    let settle = |mut rule: Gtp| {
        let (mut before, mut now) = ([0.0; 3], [0.0; 3]);
        let (mut worst, mut queue_s) = (0.0_f64, 0.0_f64);
        for tick in 0..2400 {
            let bytes: Vec<f64> = (0..3).map(|k| (f64::midpoint(before[k], now[k]) * 0.05 / 8.0).floor()).collect();
            let measured: Vec<f64> = bytes.iter().map(|bytes| bytes * 8.0 / 0.05).collect();
            queue_s = (queue_s + (measured.iter().sum::<f64>() / 1e9 - 1.0) * 0.05).max(0.0);
            before = now;
            now.copy_from_slice(&one_tick(&mut rule, 1e9, &measured));
            if tick >= 1200 {
                worst = now.iter().fold(worst, |worst, rate| worst.max((rate * 3.0 / 1e9 - 1.0).abs()));
            }
        }
        (worst, queue_s)
    };
    let (worst, queue_s) = settle(Gtp::default());
    assert!(worst < 1e-6, "error {worst}"); // the bytes that rounding hides: 160 b/s of 333 Mb/s
    assert!(queue_s < 1e-6, "queue {queue_s} s");
    let (worst, queue_s) = settle(Gtp::new(Reading::Printed, &Options::default()));
    assert!((worst - ALPHA * BETA).abs() < 1e-5, "error {worst}");
    assert!(queue_s > 0.5, "the queue grows for ever: {queue_s} s after 120 s");
}

#[test]
fn allocate__noise_of_measurement_costs_the_printed_rule_more() {
    // The same sink; every measured rate has an error of up to .2 %, and the offered load is averaged over 20000
    // intervals.
    let mean_load = |mut rule: Gtp| {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut noise = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            1.0 + 0.002 * ((random >> 11) as f64 / (1_u64 << 52) as f64 - 1.0)
        };
        let (mut rates, mut sum) = (vec![1.0 / 3.0; 3], 0.0);
        for _ in 0..20_000 {
            let measured: Vec<f64> = rates.iter().map(|rate| rate * noise()).collect();
            rates = one_tick(&mut rule, 1.0, &measured);
            sum += rates.iter().sum::<f64>();
        }
        sum / 20_000.0
    };
    let (adopted, printed) = (mean_load(Gtp::default()), mean_load(Gtp::new(Reading::Printed, &Options::default())));
    // 1.0004 and 1.011
    assert!((1.0..1.002).contains(&adopted) && printed > 1.007, "adopted {adopted}, printed {printed}");
}

#[test]
fn allocate__without_capacity_or_sessions() {
    assert_eq!(one_tick(&mut Gtp::default(), 0.0, &[0.0, 5.0]), [0.0, 0.0]);
    assert!(one_tick(&mut Gtp::default(), 1.0, &[]).is_empty());
}

#[test]
fn allocate__budget_bounds_the_sum() {
    let mut options = Options::default();
    BUDGET.set(&mut options, Some(1.05));
    for reading in [Reading::Adopted, Reading::Printed] {
        let mut measured = vec![0.0; 16];
        measured[7] = 1.0;
        let granted = one_tick(&mut Gtp::new(reading, &options), 1.0, &measured);
        assert_near(&[granted.iter().sum()], &[1.05]);
        assert!(granted.iter().all(|rate| *rate > 0.0), "every step shrinks alike: {granted:?}");
        // Steps that fit remain unchanged.
        let small = [0.4, 0.45];
        assert_eq!(
            one_tick(&mut Gtp::new(reading, &options), 1.0, &small),
            one_tick(&mut Gtp::new(reading, &Options::default()), 1.0, &small)
        );
    }
}

#[test]
fn allocate__drain_allocates_less_until_the_excess_is_gone() {
    let mut options = Options::default();
    DRAIN.set(&mut options, true);
    let mut rule = Gtp::new(Reading::Adopted, &options);
    // 1.2 C for 50 ms leave 10 ms of C: over 0.2 s that is 5 % of C.
    assert_near(&one_tick(&mut rule, 1.0, &[0.6, 0.6]), &[0.475, 0.475]);
    // Rates as granted drain it by 5 %, then 3.75 % ... of C: by a quarter an interval, the sum returns to C.
    let mut rates = vec![0.475; 2];
    for tick in 1..100 {
        rates = one_tick(&mut rule, 1.0, &rates);
        let short = 0.05 * 0.75_f64.powi(tick);
        assert_near(&[rates.iter().sum()], &[1.0 - short]);
    }
}

proptest! {
    #[test]
    fn allocate__sum_is_bounded_by_the_harmonic_number(table in table(), capacity in 0.0..2e9_f64) {
        // Step j is at most alpha x_f, x_f at most C / (sessions not determined); the others share the rest.
        let alpha = table.iter().map(|row| row.terms.alpha).fold(0.0, f64::max);
        let unweighted: Vec<_> = table.iter().map(|row| Row { terms: Terms { weight: 1.0, ..row.terms }, ..*row }).collect();
        for reading in [Reading::Adopted, Reading::Printed] {
            let mut rule = Gtp::new(reading, &Options::default());
            let sum = sum(&grants(&mut rule, capacity, &unweighted));
            let bound = capacity * (1.0 + alpha * harmonic(unweighted.len()));
            prop_assert!(sum <= bound * (1.0 + 1e-8), "{sum} > {bound}");
        }
        // With weights the share w / (weights not determined) takes the place of 1 / (sessions not determined).
        let mut order: Vec<_> = table.iter().map(|row| (row.measured.as_bps() / row.terms.weight, row.terms.weight)).collect();
        order.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let mut weights = 0.0;
        let shares: f64 = order.iter().rev().map(|(_, weight)| { weights += weight; weight / weights }).sum();
        let sum = sum(&grants(&mut Gtp::default(), capacity, &table));
        prop_assert!(sum <= capacity * (1.0 + alpha * shares) * (1.0 + 1e-8));
    }

    #[test]
    fn allocate__budget_is_never_exceeded(table in table(), capacity in 1.0..2e9_f64, budget in 1.01..1.5_f64) {
        let mut options = Options::default();
        BUDGET.set(&mut options, Some(budget));
        for reading in [Reading::Adopted, Reading::Printed] {
            let sum = sum(&grants(&mut Gtp::new(reading, &options), capacity, &table));
            prop_assert!(sum <= budget * capacity * (1.0 + 1e-9), "{sum} > {budget} x {capacity}");
        }
    }

    #[test]
    fn allocate__more_capacity_is_never_less_for_anyone(table in table(), less in 0.0..2e9_f64, more in 0.0..1e9_f64) {
        let small = grants(&mut Gtp::default(), less, &table);
        let large = grants(&mut Gtp::default(), less + more, &table);
        for (index, (small, large)) in small.iter().zip(&large).enumerate() {
            let (a, b) = (small.expected.as_bps(), large.expected.as_bps());
            // Ties are taken at the lowest of them, up to a billionth below their own rate.
            prop_assert!(a <= b * (1.0 + 1e-8) + 1e-6, "row {index}: {a} > {b}");
        }
    }

    #[test]
    fn allocate__scales_with_the_unit(table in table(), capacity in 0.0..2e9_f64, power in -20..20_i32) {
        // A power of two: exact to the last bit.
        let factor = 2.0_f64.powi(power);
        let scaled: Vec<_> = table.iter().map(|row| Row { measured: row.measured * factor, ..*row }).collect();
        let expected: Vec<_> = grants(&mut Gtp::default(), capacity, &table)
            .iter()
            .map(|grant| Grant { expected: grant.expected * factor, target: grant.target * factor })
            .collect();
        prop_assert_eq!(grants(&mut Gtp::default(), capacity * factor, &scaled), expected);
    }

    #[test]
    fn allocate__does_not_depend_on_the_order_of_the_rows(
        (table, shuffled) in table().prop_flat_map(|table| {
            let indices: Vec<usize> = (0..table.len()).collect();
            (Just(table), Just(indices).prop_shuffle())
        }),
        capacity in 0.0..2e9_f64,
    ) {
        let straight = grants(&mut Gtp::default(), capacity, &table);
        let rows: Vec<_> = shuffled.iter().map(|index| table[*index]).collect();
        for (index, grant) in shuffled.iter().zip(grants(&mut Gtp::default(), capacity, &rows)) {
            let (a, b) = (straight[*index].expected.as_bps(), grant.expected.as_bps());
            // Sums over ties are taken in the order of the rows: the last bits differ.
            prop_assert!((a - b).abs() <= 1e-9 * a.max(b), "row {index}: {a} and {b}");
        }
    }

    #[test]
    fn allocate__weight_w_is_w_sessions_of_weight_one(table in table(), capacity in 1.0..2e9_f64) {
        // Holds for the adopted rule because ties share one target; as printed, the copies of a session differ.
        let weighted: Vec<_> = table.iter().map(|row| Row { terms: Terms { weight: row.terms.weight.ceil(), ..row.terms }, ..*row }).collect();
        let mut copies = Vec::new();
        for row in &weighted {
            let one = Row { measured: row.measured * (1.0 / row.terms.weight), terms: Terms { weight: 1.0, ..row.terms } };
            copies.extend(std::iter::repeat_n(one, row.terms.weight as usize));
        }
        let together = grants(&mut Gtp::default(), capacity, &weighted);
        let mut apart = grants(&mut Gtp::default(), capacity, &copies).into_iter();
        for (row, grant) in weighted.iter().zip(together) {
            let copies: Vec<_> = apart.by_ref().take(row.terms.weight as usize).collect();
            let (a, b) = (grant.expected.as_bps(), sum(&copies));
            prop_assert!((a - b).abs() <= 1e-8 * a.max(b), "{a} and {b}");
        }
    }

    #[test]
    fn allocate__a_session_below_its_target_rises_and_never_past_it(table in table(), capacity in 1.0..2e9_f64) {
        for (row, grant) in table.iter().zip(grants(&mut Gtp::default(), capacity, &table)) {
            let (measured, expected, target) = (row.measured.as_bps(), grant.expected.as_bps(), grant.target.as_bps());
            prop_assert!(expected <= target * (1.0 + 1e-9));
            if measured < target * (1.0 - 1e-8) {
                prop_assert!(expected > measured, "{measured} -> {expected}, target {target}");
            } else {
                prop_assert!((expected - target).abs() <= 1e-8 * target);
            }
        }
    }

    #[test]
    fn allocate__any_finite_input_gives_rates(
        rows in prop::collection::vec(
            (wide(), wide(), 0.0..=1.0_f64, 0.0..=1.0_f64).prop_map(|(measured, weight, alpha, beta)| Row { measured: Rate::nearest_bps(measured), terms: Terms { weight: weight.max(f64::MIN_POSITIVE), alpha, beta, ..Terms::default() } }),
            0..40,
        ),
        capacity in wide(),
        elapsed: u64,
        budget in prop::option::of(1.001..1e6_f64),
        drain: bool,
    ) {
        let mut options = Options::default();
        DRAIN.set(&mut options, drain);
        if let Some(budget) = budget {
            BUDGET.set(&mut options, Some(budget));
        }
        for reading in [Reading::Adopted, Reading::Printed] {
            let mut rule = Gtp::new(reading, &options);
            let mut grants = vec![Grant::default(); rows.len()];
            let elapsed = Duration::from_nanos(elapsed);
            for _ in 0..2 {
                rule.allocate(&Interval { capacity: Rate::nearest_bps(capacity), elapsed }, &rows, &mut grants);
                let fine = |rate: Rate| (0.0..=f64::MAX).contains(&rate.as_bps());
                prop_assert!(grants.iter().all(|grant| fine(grant.expected) && fine(grant.target)), "{grants:?}");
            }
        }
    }
}

/// Tables of up to 60 rows: many at the same rate, many idle, several at the share of 1 Gb/s.
fn table() -> impl Strategy<Value = Vec<Row>> {
    let measured = prop_oneof![
        2 => Just(0.0),
        2 => (1..10_u8).prop_map(|n| 1e9 / f64::from(n)),
        3 => 0.0..1e9_f64,
        1 => 0.0..1e3_f64,
    ];
    let row = (measured, 0.5..8.0_f64, 0.01..0.99_f64, 0.0..=1.0_f64).prop_map(|(measured, weight, alpha, beta)| Row {
        measured: Rate::nearest_bps(measured),
        terms: Terms { weight, alpha, beta, ..Terms::default() },
    });
    prop::collection::vec(row, 1..60)
}

/// Rates of any magnitude.
fn wide() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
        any::<f64>().prop_map(|x| { if x.is_finite() { x.abs() } else { 1.0 } })
    ]
}

fn rows(measured: &[f64]) -> Vec<Row> {
    measured.iter().map(|rate| Row::new(Rate::nearest_bps(*rate), ALPHA, BETA)).collect()
}

fn interval(capacity: f64) -> Interval {
    Interval { capacity: Rate::nearest_bps(capacity), elapsed: Duration::from_millis(50) }
}

fn grants(rule: &mut Gtp, capacity: f64, rows: &[Row]) -> Vec<Grant> {
    let mut grants = vec![Grant::default(); rows.len()];
    rule.allocate(&interval(capacity), rows, &mut grants);
    grants
}

fn one_tick(rule: &mut Gtp, capacity: f64, measured: &[f64]) -> Vec<f64> {
    grants(rule, capacity, &rows(measured)).iter().map(|grant| grant.expected.as_bps()).collect()
}

fn sum(grants: &[Grant]) -> f64 {
    grants.iter().map(|grant| grant.expected.as_bps()).sum()
}

fn harmonic(n: usize) -> f64 {
    (1..=n).map(|k| 1.0 / k as f64).sum()
}

#[track_caller]
fn assert_near(ours: &[f64], expected: &[f64]) {
    assert_eq!(ours.len(), expected.len());
    for (ours, expected) in ours.iter().zip(expected) {
        assert!((ours - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{ours}, expected {expected}");
    }
}
