//! The approximate level, before anything is sorted.

use std::ops::Range;

use super::claimant::{Capped, Claimant};

/// Maximum error of a level found with f64, as a share of the capacity that the filling rows share: sums over a million
/// rows have smaller errors.
const MARGIN: f64 = 1e-9;
/// Each pass finds more rows that are full, or that do not fill yet. If this is not enough, a sort is faster.
const MAX_PASSES: usize = 40;

/// The range around the level at which rows that fill from zero to their claims, and one of weight `beside` without
/// limit, use the whole capacity; unbounded above if they leave room. `None` if a few passes did not find it.
///
/// The sum is concave: Newton's method approaches the level from below.
pub(super) fn full(capacity_bps: f64, beside: f64, rows: &[Claimant]) -> Option<Range<f64>> {
    let (mut level, mut taken_bps) = (0.0, 0.0);
    let mut slope = rows.iter().map(|row| row.weight).sum::<f64>() + beside;
    for _ in 0..MAX_PASSES {
        if slope == 0.0 {
            return Some(level..f64::INFINITY);
        }
        let next = (capacity_bps - taken_bps) / slope;
        if next.is_nan() || next <= level {
            return Some(around(level, capacity_bps / slope));
        }
        level = next;
        (taken_bps, slope) = sums(rows, |row| (row.claim_bps, row.weight, row.claim_bps > row.weight * level));
        slope += beside;
    }
    None
}

/// The range around the level to which rows that may grow rise from their limits until the capacity is used up. `None`
/// if a few passes did not find it, or if no row may grow.
///
/// The sum is convex: Newton's method approaches the level from above.
pub(super) fn risen(capacity_bps: f64, rows: &[Capped]) -> Option<Range<f64>> {
    let mut level = f64::INFINITY;
    for _ in 0..MAX_PASSES {
        let fills = |row: &Capped| row.grows && row.limit_bps <= row.weight * level;
        let (taken_bps, slope) = sums(rows, |row| (row.limit_bps, row.weight, fills(row)));
        let next = (capacity_bps - taken_bps) / slope;
        if slope == 0.0 || next.is_nan() {
            return None;
        }
        if next >= level {
            return Some(around(level, capacity_bps / slope));
        }
        level = next;
    }
    None
}

fn around(level: f64, all: f64) -> Range<f64> {
    (level - MARGIN * all).max(0.0)..level + MARGIN * all
}

/// The sum of the rates of the rows that do not fill, and of the weights of those that do: four sums each, so that a
/// processor adds several at a time.
fn sums<R>(rows: &[R], of: impl Fn(&R) -> (f64, f64, bool)) -> (f64, f64) {
    let (mut rates, mut weights) = ([0.0; 4], [0.0; 4]);
    let mut add = |lane: usize, row: &R| {
        let (bps, weight, fills) = of(row);
        rates[lane] += if fills { 0.0 } else { bps };
        weights[lane] += if fills { weight } else { 0.0 };
    };
    let (fours, rest) = rows.as_chunks::<4>();
    for four in fours {
        for (lane, row) in four.iter().enumerate() {
            add(lane, row);
        }
    }
    for row in rest {
        add(0, row);
    }
    (rates.iter().sum(), weights.iter().sum())
}
