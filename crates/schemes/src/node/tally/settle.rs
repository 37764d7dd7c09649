//! Which grants may be raised out of what is free.

use super::water::{Vessel, Water};
use crate::global::double::Double;

/// One session in [`settle()`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settling {
    /// Where its grant is to go.
    pub target_bps: f64,
    /// The grant that was last told.
    pub granted_bps: f64,
    /// The most that may still come of it: at least `granted_bps`.
    pub reserved_bps: f64,
    /// Share relative to the other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum_bps: f64,
}

/// The new grants. Cuts are made at once. Raises are paid out of `free_bps`, the lowest grant (per unit weight) first;
/// what a session still has reserved costs nothing. Below zero nothing is raised.
///
/// The raises cost `sum of (new - reserved)+` over the raised rows, and that is at most `free_bps`.
///
/// ```
/// use fairwave_schemes::node::tally::{Settling, settle};
///
/// let row = |[target_bps, granted_bps, reserved_bps]: [f64; 3]| {
///     Settling { target_bps, granted_bps, reserved_bps, weight: 1.0, minimum_bps: 0.0 }
/// };
/// // The cut is told; nothing is free before it is confirmed.
/// assert_eq!(settle(0.0, &[[50.0, 100.0, 100.0], [50.0, 0.0, 0.0]].map(row)), [50.0, 0.0]);
/// // Confirmed.
/// assert_eq!(settle(50.0, &[[50.0, 50.0, 50.0], [50.0, 0.0, 0.0]].map(row)), [50.0, 50.0]);
/// // The lowest first.
/// assert_eq!(settle(20.0, &[[40.0, 40.0, 70.0], [30.0, 0.0, 0.0], [30.0, 10.0, 10.0]].map(row)), [40.0, 15.0, 15.0]);
/// // The first could go back to 40 for nothing, but not before the lower one.
/// assert_eq!(settle(5.0, &[[40.0, 20.0, 90.0], [60.0, 5.0, 5.0]].map(row)), [20.0, 10.0]);
/// // Over the budget: cuts only.
/// assert_eq!(settle(-20.0, &[[20.0, 90.0, 90.0], [80.0, 30.0, 30.0]].map(row)), [20.0, 30.0]);
/// ```
pub fn settle(free_bps: f64, rows: &[Settling]) -> Vec<f64> {
    let mut cost = Cost::default();
    for row in rows {
        cost.see(row);
    }
    let rise = cost.rise(free_bps, || rows.iter().filter(|row| row.costs()).copied().collect());
    rows.iter().map(|row| rise.grant_bps(row)).collect()
}

impl Settling {
    /// Whether it is to have more than what it has, or may still have, already.
    pub(super) fn costs(&self) -> bool {
        self.target_bps > self.granted_bps && self.target_bps > self.reserved_bps
    }
}

/// What it would take to raise all rows as far as they are to go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    raises: usize,
    bps: Double,
}

/// How far rows are raised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rise {
    /// To this rate per unit weight,
    level: f64,
    /// and to this share of their minima.
    scale: f64,
}

impl Cost {
    pub(super) fn see(&mut self, row: &Settling) {
        if row.costs() {
            self.raises += 1;
            self.bps.add(row.target_bps);
            self.bps.add(-row.reserved_bps);
        }
    }

    /// How far all that were seen are raised. Mostly nobody is to be, or all as far as they want: then nobody asks for
    /// the rows that cost something, and nothing is sorted.
    pub(super) fn rise(&self, free_bps: f64, costly: impl FnOnce() -> Vec<Settling>) -> Rise {
        if free_bps.is_nan() || free_bps < 0.0 {
            return Rise { level: 0.0, scale: 0.0 };
        }
        if self.raises == 0 || self.bps.value() <= free_bps {
            return Rise { level: f64::INFINITY, scale: 1.0 };
        }
        let (level, scale) = raise(free_bps, &costly());
        Rise { level, scale }
    }
}

impl Rise {
    /// The new grant of a row.
    pub(super) fn grant_bps(&self, row: &Settling) -> f64 {
        if row.target_bps < row.granted_bps {
            return row.target_bps;
        }
        let share = (row.minimum_bps * self.scale).max(row.weight * self.level);
        row.granted_bps.max(row.target_bps.min(share))
    }
}

/// To which level rows may rise that all cost something, and how much of the minima they may have, where not all may have
/// what they want.
fn raise(free_bps: f64, rows: &[Settling]) -> (f64, f64) {
    let raised = || rows.iter();
    // The cost of a row at level L is what it has there above what is reserved: a vessel with the floor R, less R.
    let reserved: f64 = raised().map(|row| row.reserved_bps).sum();
    let minima: f64 = raised().map(|row| row.target_bps.min(row.minimum_bps).max(row.reserved_bps)).sum();
    if minima - reserved > free_bps {
        // Not even the minima: they are raised in proportion, to the share of them at which the cost is what is free.
        let vessel = |row: &Settling| Vessel {
            floor: row.reserved_bps,
            top: row.target_bps.min(row.minimum_bps).max(row.reserved_bps),
            weight: row.minimum_bps,
        };
        let water = Water::new(raised().filter(|row| row.minimum_bps > 0.0).map(vessel));
        let others: f64 = raised().filter(|row| row.minimum_bps <= 0.0).map(|row| row.reserved_bps).sum();
        return (0.0, water.level(free_bps + reserved - others).min(1.0));
    }
    let vessel = |row: &Settling| Vessel {
        floor: row.reserved_bps.max(row.minimum_bps),
        top: row.target_bps,
        weight: row.weight,
    };
    (Water::new(raised().map(vessel)).level(free_bps + reserved), 1.0)
}
