//! Selects the grants that can be raised out of free capacity.

use super::water::{Vessel, Water};
use crate::global::double::Double;

/// One session in [`settle()`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settling {
    /// Target of its grant in bit/s.
    pub target_bps: f64,
    /// The grant that was last sent, in bit/s.
    pub granted_bps: f64,
    /// The maximum rate that may still arrive, in bit/s: at least `granted_bps`.
    pub reserved_bps: f64,
    /// Weight relative to the other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum_bps: f64,
}

/// The new grants. Cuts take effect immediately. Raises are paid out of `free_bps`, the lowest grant (per unit weight)
/// first; a session's own reserved rate costs nothing. If `free_bps` is negative nothing is raised.
///
/// The raises cost `sum of (new - reserved)+` over the raised rows, and that is at most `free_bps`.
///
/// ```
/// use fairwave_schemes::node::tally::{Settling, settle};
///
/// let row = |[target_bps, granted_bps, reserved_bps]: [f64; 3]| {
///     Settling { target_bps, granted_bps, reserved_bps, weight: 1.0, minimum_bps: 0.0 }
/// };
/// // The cut is sent; nothing is free until it is confirmed.
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
    /// Whether its target exceeds both its grant and its reserved rate.
    pub(super) fn costs(&self) -> bool {
        self.target_bps > self.granted_bps && self.target_bps > self.reserved_bps
    }
}

/// The cost of raising all rows to their targets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    raises: usize,
    bps: Double,
}

/// The extent to which rows are raised:
#[derive(Clone, Copy, Debug)]
pub(super) struct Rise {
    /// to this rate per unit weight,
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

    /// The rise of all visited rows. Usually none is raised, or all are raised to their targets: then the costly rows
    /// are not needed, and nothing is sorted.
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

/// The level to which rows may rise that all cost something, and the share of their minima, if not all can reach their
/// targets.
fn raise(free_bps: f64, rows: &[Settling]) -> (f64, f64) {
    let raised = || rows.iter();
    // The cost of a row at level L is its rate there above its reserved rate: a vessel with the floor R, minus R.
    let reserved: f64 = raised().map(|row| row.reserved_bps).sum();
    let minima: f64 = raised().map(|row| row.target_bps.min(row.minimum_bps).max(row.reserved_bps)).sum();
    if minima - reserved > free_bps {
        // The minima do not fit: they are raised in proportion, to the share at which the cost equals the free
        // capacity.
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
