//! Test vectors of the rule, and its lemmas on random rows.

use proptest::collection::vec;
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::fill::Queries;
use super::*;

const INF: f64 = f64::INFINITY;

fn claimants(rows: &[(f64, f64, f64)]) -> Vec<Claimant> {
    rows.iter().map(|&(claim_bps, weight, minimum_bps)| Claimant { claim_bps, weight, minimum_bps }).collect()
}

/// Capacity; claims (claim, weight, minimum); level; shares; offers.
type FillVector<'a> = (f64, &'a [(f64, f64, f64)], f64, &'a [f64], &'a [f64]);

#[test]
fn fill__vectors() {
    let vectors: [FillVector<'_>; 6] = [
        (900.0, &[(INF, 1.0, 0.0); 3], 300.0, &[300.0; 3], &[300.0; 3]),
        // 1000 - 100 - 310 = 590; the first, if it took as much as possible: (1000 - 310) / 2; the second (1000 - 100)
        // / 2.
        (
            1000.0,
            &[(100.0, 1.0, 0.0), (310.0, 1.0, 0.0), (INF, 1.0, 0.0)],
            590.0,
            &[100.0, 310.0, 590.0],
            &[345.0, 450.0, 590.0],
        ),
        (
            1000.0,
            &[(100.0, 1.0, 0.0), (200.0, 1.0, 0.0), (300.0, 1.0, 0.0)],
            INF,
            &[100.0, 200.0, 300.0],
            &[500.0, 600.0, 700.0],
        ),
        // 1000 = L + 3 L + 80; the third at its share of 8 weights: 4 x 125.
        (
            1000.0,
            &[(INF, 1.0, 0.0), (INF, 3.0, 0.0), (80.0, 4.0, 0.0)],
            230.0,
            &[230.0, 690.0, 80.0],
            &[230.0, 690.0, 500.0],
        ),
        (
            1000.0,
            &[(INF, 1.0, 400.0), (100.0, 1.0, 0.0), (INF, 1.0, 0.0), (INF, 1.0, 0.0)],
            250.0,
            &[400.0, 100.0, 250.0, 250.0],
            &[400.0, 200.0, 250.0, 250.0],
        ),
        (100.0, &[(0.0, 1.0, 0.0), (100.0, 1.0, 0.0)], INF, &[0.0, 100.0], &[50.0, 100.0]),
    ];
    for (capacity, rows, level, shares, offers) in vectors {
        let rows = claimants(rows);
        let fill = Fill::new(capacity, &rows);
        assert_eq!(fill.level(), level);
        assert_eq!(rows.iter().map(|row| fill.share_bps(row)).collect::<Vec<_>>(), shares);
        assert_eq!(rows.iter().map(|row| fill.offer_bps(row)).collect::<Vec<_>>(), offers);
    }
}

#[test]
fn fill__minima_beyond_the_capacity_are_scaled() {
    let rows = claimants(&[(INF, 1.0, 900.0), (INF, 1.0, 300.0)]);
    let fill = Fill::new(600.0, &rows);
    assert_eq!(rows.iter().map(|row| fill.share_bps(row)).collect::<Vec<_>>(), [450.0, 150.0]);
}

#[test]
fn fill__weights_a_million_apart_do_not_blur() {
    let rows = claimants(&[(1e-7, 1e6, 0.0), (INF, 1e-6, 0.0), (0.3, 1e6, 0.0), (INF, 3e-6, 0.0)]);
    let fill = Fill::new(1.0, &rows);
    let left = 1.0 - 0.3 - 1e-7;
    for (row, expected) in rows.iter().zip([1e-7, left / 4.0, 0.3, left * 0.75]) {
        assert!((fill.share_bps(row) - expected).abs() <= 1e-15, "{} is not {expected}", fill.share_bps(row));
    }
}

#[test]
fn settle__minima_that_are_too_dear_are_raised_in_proportion() {
    let row =
        |minimum_bps| Settling { target_bps: 90.0, granted_bps: 0.0, reserved_bps: 0.0, weight: 1.0, minimum_bps };
    assert_eq!(settle(30.0, &[row(60.0), row(30.0), row(0.0)]), [20.0, 10.0, 0.0]);
}

/// The largest L with f(L) <= volume, by bisection, for a non-decreasing f.
fn bisect(volume: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e12);
    if f(high) <= volume {
        return INF;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if f(middle) <= volume { low = middle } else { high = middle }
    }
    low
}

/// Uniform in 0..1.
fn draw(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn any_claimants(random: &mut Pcg64Mcg) -> (f64, Vec<Claimant>) {
    let count = 1 + (draw(random) * 8.0) as usize;
    let row = |random: &mut Pcg64Mcg| Claimant {
        claim_bps: match (draw(random) * 4.0) as u32 {
            0 => INF,
            1 => 0.0,
            _ => (draw(random) * 40.0).ceil() * 25.0,
        },
        weight: [1.0, 1.0, 0.5, 3.0][(draw(random) * 4.0) as usize],
        minimum_bps: if draw(random) < 0.7 { 0.0 } else { (draw(random) * 200.0).ceil() },
    };
    let rows: Vec<_> = (0..count).map(|_| row(random)).collect();
    let minima: f64 = rows.iter().map(|row| row.minimum_bps).sum();
    ((draw(random) * 1000.0).max(minima), rows)
}

/// Number of random rows that are compared with bisection.
fn draws() -> u64 {
    if cfg!(debug_assertions) { 10_000 } else { 100_000 }
}

#[test]
fn fill__equals_bisection() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for draw in 0..draws() {
        let (capacity, rows) = any_claimants(&mut random);
        let fill = Fill::new(capacity, &rows);
        let g = |row: &Claimant, level: f64| row.minimum_bps.max(row.weight * level);
        let sum = |level: f64| rows.iter().map(|row| row.claim_bps.min(g(row, level))).sum::<f64>();
        let level = bisect(capacity * (1.0 + 1e-15), sum);
        for row in &rows {
            let (found, expected) = (fill.share_bps(row), row.claim_bps.min(g(row, level)));
            assert!((found - expected).abs() <= 1e-9 * capacity, "draw {draw}: {found} is not {expected}: {rows:?}");
            let offer = bisect(capacity, |level| sum(level) - row.claim_bps.min(g(row, level)) + g(row, level));
            let (found, expected) = (fill.offer_bps(row), g(row, offer));
            assert!((found - expected).abs() <= 1e-9 * capacity, "draw {draw}: {found} is not {expected}: {rows:?}");
        }
    }
}

#[test]
fn settle__equals_bisection() {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    for number in 0..draws() {
        let (capacity, claims) = any_claimants(&mut random);
        let rows: Vec<Settling> = claims.iter().map(|row| settling(row, &mut random, capacity)).collect();
        let free = (draw(&mut random) - 0.2) * capacity;
        let raised = || rows.iter().filter(|row| row.target_bps > row.granted_bps);
        let to = |row: &Settling, level: f64, scale: f64| {
            row.target_bps.min((row.minimum_bps * scale).max(row.weight * level))
        };
        let cost = |level, scale| raised().map(|row| (to(row, level, scale) - row.reserved_bps).max(0.0)).sum::<f64>();
        let (level, scale) = if free < 0.0 {
            (0.0, 0.0)
        } else if cost(0.0, 1.0) > free {
            (0.0, bisect(free, |scale| cost(0.0, scale)).min(1.0))
        } else {
            (bisect(free, |level| cost(level, 1.0)), 1.0)
        };
        let new = settle(free, &rows);
        for (row, found) in rows.iter().zip(&new) {
            let expected = if row.target_bps < row.granted_bps {
                row.target_bps
            } else {
                row.granted_bps.max(to(row, level, scale))
            };
            assert!(
                (found - expected).abs() <= 1e-9 * capacity.max(1.0),
                "draw {number}: {found}, {expected}: {rows:?}"
            );
        }
    }
}

fn settling(row: &Claimant, random: &mut Pcg64Mcg, capacity: f64) -> Settling {
    let granted_bps = (draw(random) * 4.0).floor() / 4.0 * capacity;
    let reserved_bps = if draw(random) < 0.5 { granted_bps } else { granted_bps + draw(random) * capacity };
    Settling {
        target_bps: row.claim_bps.min(capacity),
        granted_bps,
        reserved_bps,
        weight: row.weight,
        minimum_bps: row.minimum_bps,
    }
}

prop_compose! {
    fn claimant()(
        claim_bps in prop_oneof![Just(INF), Just(0.0), 0.0..1e3],
        weight in 0.01..100.0,
        minimum_bps in prop_oneof![3 => Just(0.0), 1 => 0.0..100.0],
    ) -> Claimant {
        Claimant { claim_bps, weight, minimum_bps }
    }
}

prop_compose! {
    fn settling_row()(
        target_bps in 0.0..1e3,
        granted_bps in 0.0..1e3,
        more in prop_oneof![Just(0.0), 0.0..1e3],
        weight in 0.01..100.0,
        minimum_bps in prop_oneof![3 => Just(0.0), 1 => 0.0..100.0],
    ) -> Settling {
        Settling { target_bps, granted_bps, reserved_bps: granted_bps + more, weight, minimum_bps }
    }
}

proptest! {
    #[test]
    fn fill__shares_sum_to_the_claims_or_the_capacity(rows in vec(claimant(), 1..20), capacity in 1.0..1e4) {
        let fill = Fill::new(capacity, &rows);
        let claimed: f64 = rows.iter().map(|row| row.claim_bps).sum();
        let shared: f64 = rows.iter().map(|row| fill.share_bps(row)).sum();
        prop_assert!((shared - claimed.min(capacity)).abs() <= 1e-9 * capacity, "{shared}");
        prop_assert_eq!(fill.level() == INF, claimed <= capacity);
    }

    /// Lemma (a) of the proof: a session's claim beyond its share lowers no other session's offer.
    #[test]
    fn fill__offer_is_at_least_the_share_at_a_feasible_level(
        rows in vec(claimant(), 2..20), more in vec(claimant(), 20), capacity in 1e3..1e4_f64
    ) {
        let before = Fill::new(capacity, &rows);
        let mut greedy = rows.clone();
        for (row, other) in greedy.iter_mut().zip(&more).skip(1) {
            row.claim_bps = row.claim_bps.max(before.share_bps(row)) + other.claim_bps;
        }
        // All except the first claim more. Its offer is at least its share at the level that all could have.
        let all = greedy.iter().map(|row| Claimant { claim_bps: INF, ..*row }).collect::<Vec<_>>();
        let least = Fill::new(capacity, &all).share_bps(&all[0]);
        let offer = Fill::new(capacity, &greedy).offer_bps(&greedy[0]);
        prop_assert!(offer >= least - 1e-9 * capacity, "{offer} is below {least}");
        // Once the others claim the whole capacity, larger claims change nothing.
        let doubled: Vec<_> = (0..all.len()).map(|k| if k == 0 { greedy[0] } else { all[k] }).collect();
        let further = Fill::new(capacity, &doubled).offer_bps(&doubled[0]);
        prop_assert!((further - least).abs() <= 1e-9 * capacity, "{further} is not {least}");
    }

    /// Lemma (c) of the proof: a node whose sessions all claim at least their share at its level offers exactly that.
    #[test]
    fn fill__offers_are_the_shares_if_all_claim_them(
        rows in vec(claimant(), 1..20), more in vec(0.0..1e3_f64, 20), capacity in 2e3..1e4_f64
    ) {
        let full: Vec<_> = rows.iter().map(|row| Claimant { claim_bps: INF, ..*row }).collect();
        let level = Fill::new(capacity, &full);
        let claims: Vec<_> = full
            .iter()
            .zip(more)
            .map(|(row, more)| Claimant { claim_bps: level.share_bps(row) + more, ..*row })
            .collect();
        let fill = Fill::new(capacity, &claims);
        for (row, claim) in full.iter().zip(&claims) {
            let (share, offer) = (level.share_bps(row), fill.offer_bps(claim));
            prop_assert!((offer - share).abs() <= 1e-9 * capacity, "{offer} is not {share}");
        }
    }

    /// A newcomer's first offer, computed from a filling of the others, equals that of a filling with it.
    #[test]
    fn fill__the_offer_to_a_newcomer_is_that_of_a_filling_with_it(
        rows in vec(claimant(), 0..20), newcomer in claimant(), capacity in 3e3..1e4_f64
    ) {
        let newcomer = Claimant { claim_bps: INF, ..newcomer };
        let beside = Fill::for_queries(Queries::Newcomers, capacity, &rows).offer_with_newcomers_bps(&newcomer, 0.0, 0.0);
        let all: Vec<_> = rows.into_iter().chain([newcomer]).collect();
        let offer = Fill::new(capacity, &all).offer_bps(&newcomer);
        prop_assert!((beside - offer).abs() <= 1e-9 * capacity, "{beside} is not {offer}");
    }

    /// For many rows without minima it is enough to sort those whose claims are near the level: levels, shares and
    /// offers equal those of a filling that sorts all, up to rounding of sums in another order.
    #[test]
    fn fill__partial_sort_equals_full_sort(
        rows in vec(claimant(), 0..200), is_weighted in any::<bool>(), capacity in 1.0..3e5_f64
    ) {
        let weight = |row: &Claimant| if is_weighted { row.weight } else { 1.0 };
        let rows: Vec<_> = rows.iter().map(|row| Claimant { minimum_bps: 0.0, weight: weight(row), ..*row }).collect();
        let (fill, shares) = (Fill::new(capacity, &rows), Fill::for_queries(Queries::Shares, capacity, &rows));
        let all = Fill::for_queries(Queries::Newcomers, capacity, &rows);
        let is_close = |found: f64, expected: f64| found == expected || (found - expected).abs() <= 1e-12 * expected;
        prop_assert!(is_close(fill.level(), all.level()) && is_close(shares.level(), all.level()));
        for row in &rows {
            let (offer, expected) = (fill.offer_bps(row), all.offer_bps(row));
            prop_assert!(is_close(offer, expected), "{offer} is not {expected}");
        }
    }

    /// Theorem T3's step: if the free capacity pays for raising all rows to a level, all reach it.
    #[test]
    fn settle__raises_all_to_a_level_that_is_paid_for(rows in vec(settling_row(), 1..20), level in 0.0..100.0_f64) {
        let to = |row: &Settling| row.target_bps.min(row.minimum_bps.max(row.weight * level));
        let raised = rows.iter().filter(|row| row.target_bps > row.granted_bps);
        let cost: f64 = raised.map(|row| (to(row) - row.reserved_bps).max(0.0)).sum();
        for (row, new) in rows.iter().zip(settle(cost * (1.0 + 1e-12) + 1e-9, &rows)) {
            prop_assert!(new >= to(row) - 1e-6, "{new} is below {}", to(row));
        }
    }

    /// Theorem T1's bound: the headroom of all sessions of a node together is at most its share of the capacity.
    #[test]
    fn headroom__of_all_sessions_is_at_most_its_share(rows in vec(claimant(), 1..20), capacity in 3e3..1e4_f64) {
        let fill = Fill::new(capacity, &rows);
        let weights: f64 = rows.iter().map(|row| row.weight).sum();
        let head = |row: &Claimant| headroom::head_bps(0.02, fill.share_bps(row), capacity, row.weight / weights);
        let sum: f64 = rows.iter().map(head).sum();
        prop_assert!(sum <= 0.02 * capacity * (1.0 + 1e-12), "{sum} of {capacity}");
    }

    #[test]
    fn settle__never_spends_more_than_is_free(rows in vec(settling_row(), 1..20), free in -100.0..3e3) {
        let new = settle(free, &rows);
        let raised = rows.iter().zip(&new).filter(|(row, new)| **new > row.granted_bps);
        let cost: f64 = raised.clone().map(|(row, new)| (new - row.reserved_bps).max(0.0)).sum();
        prop_assert!(cost <= free.max(0.0) * (1.0 + 1e-12) + 1e-9, "{cost} of {free}");
        prop_assert!(free >= 0.0 || raised.count() == 0);
    }

    #[test]
    fn settle__cuts_immediately_and_stops_at_the_target(rows in vec(settling_row(), 1..20), free in -10.0..3e3) {
        for (row, new) in rows.iter().zip(settle(free, &rows)) {
            if row.target_bps <= row.granted_bps {
                prop_assert_eq!(new, row.target_bps);
            } else {
                prop_assert!((row.granted_bps..=row.target_bps).contains(&new));
            }
        }
    }

    /// No row below its target was passed over for a row that now has more per unit weight and was raised.
    #[test]
    fn settle__raises_the_lowest_first(rows in vec(settling_row(), 2..20), free in 0.0..3e3) {
        let rows: Vec<_> = rows.into_iter().map(|row| Settling { minimum_bps: 0.0, ..row }).collect();
        let new = settle(free, &rows);
        let lowest_unmet = rows.iter().zip(&new).filter(|(row, new)| **new < row.target_bps);
        let lowest = lowest_unmet.map(|(row, new)| new / row.weight).fold(INF, f64::min);
        for (row, new) in rows.iter().zip(&new).filter(|(row, new)| **new > row.granted_bps) {
            prop_assert!(new / row.weight <= lowest * (1.0 + 1e-9), "{} above {lowest}", new / row.weight);
        }
    }

    #[test]
    fn caps__fill_the_capacity_and_never_exceed_it(
        rows in vec((0.0..1e3, 0.01..100.0, any::<bool>()), 1..20), capacity in 1.0..1e4_f64
    ) {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(limit_bps, weight, grows)| Capped { limit_bps, weight, minimum_bps: 0.0, grows })
            .collect();
        let caps = caps(capacity, &rows);
        let sum: f64 = caps.iter().sum();
        let limits: f64 = rows.iter().map(|row| row.limit_bps).sum();
        prop_assert!(sum <= capacity * (1.0 + 1e-12));
        if rows.iter().any(|row| row.grows) || limits >= capacity {
            prop_assert!((sum - capacity).abs() <= 1e-9 * capacity, "{sum} of {capacity}");
        }
        for (row, cap) in rows.iter().zip(caps) {
            prop_assert!(cap <= row.limit_bps || row.grows);
        }
    }
}
