//! Division of a capacity: levels, shares and offers.

use std::ops::Range;

use super::claimant::Claimant;
use super::near;
use super::water::{Vessel, Water};

/// A capacity filled max-min fairly by claims: at level L a session has `min(claim, max(minimum, weight x L))`.
///
/// Minima that sum to more than the capacity are scaled down, all by the same factor.
///
/// ```
/// use fairwave_schemes::node::tally::{Claimant, Fill};
///
/// let rows = [100.0, 310.0, f64::INFINITY].map(|claim_bps| Claimant { claim_bps, weight: 1.0, minimum_bps: 0.0 });
/// let fill = Fill::new(1000.0, &rows);
/// assert_eq!(fill.level(), 590.0);
/// assert_eq!(rows.each_ref().map(|row| fill.share_bps(row)), [100.0, 310.0, 590.0]);
/// // The rate that each could have if it took as much as possible.
/// assert_eq!(rows.each_ref().map(|row| fill.offer_bps(row)), [345.0, 450.0, 590.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Fill {
    water: Water,
    capacity_bps: f64,
    minimum_scale: f64,
    level: f64,
}

/// Queries that a [`Fill`] must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queries {
    /// Only level and shares: usually nothing is sorted.
    Shares,
    /// The rows' shares and offers.
    Offers,
    /// Offers to newcomers of any weight: all rows are sorted once.
    Newcomers,
}

impl Fill {
    /// The rows' shares and offers. Only claims between the smallest offer and the level are sorted, and all of them if
    /// there are minima.
    pub fn new(capacity_bps: f64, rows: &[Claimant]) -> Self {
        Self::for_queries(Queries::Offers, capacity_bps, rows)
    }

    pub(super) fn for_queries(asked: Queries, capacity_bps: f64, rows: &[Claimant]) -> Self {
        let (mut minima, mut most_weight) = (0.0, 0.0_f64);
        for row in rows {
            minima += row.minimum_bps;
            most_weight = most_weight.max(row.weight);
        }
        let minimum_scale = if minima > capacity_bps { capacity_bps / minima } else { 1.0 };
        let vessel =
            |row: &Claimant| Vessel { floor: row.minimum_bps * minimum_scale, top: row.claim_bps, weight: row.weight };
        let about = if minima > 0.0 || capacity_bps == f64::INFINITY {
            None
        } else {
            asked.about(capacity_bps, most_weight, rows)
        };
        if let Some(about) = about {
            let water = Water::within(about, rows.iter().map(vessel));
            let level = water.level(capacity_bps);
            if water.knows(level) {
                return Self { water, capacity_bps, minimum_scale, level };
            }
        }
        let water = Water::new(rows.iter().map(vessel));
        let level = water.level(capacity_bps);
        Self { water, capacity_bps, minimum_scale, level }
    }

    /// The rate per unit weight of the sessions that the capacity limits; infinity if the claims leave room, zero if
    /// the minima fill it.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// The guaranteed rate, scaled down if the minima exceed the capacity.
    pub fn minimum_bps(&self, row: &Claimant) -> f64 {
        row.minimum_bps * self.minimum_scale
    }

    /// The row's rate at the level.
    pub fn share_bps(&self, row: &Claimant) -> f64 {
        row.claim_bps.min(self.minimum_bps(row).max(row.weight * self.level))
    }

    /// The rate that the row could have if it claimed without limit and the others kept their claims: one binary
    /// search. Never below `minimum` and never below its share; claims of others beyond their shares do not lower it.
    pub fn offer_bps(&self, row: &Claimant) -> f64 {
        if self.capacity_bps == f64::INFINITY {
            return f64::INFINITY;
        }
        let (claim, minimum, weight) = (row.claim_bps, self.minimum_bps(row), row.weight);
        let share = |level: f64| minimum.max(weight * level);
        // The row already takes as much as possible at the level: no search.
        if claim >= share(self.level) {
            return share(self.level);
        }
        // Beyond its claim the row continues to fill: the sum has its claim, and it is full at the level. A row that
        // claims less than its minimum is full at all levels.
        let level = self.water.level_with(self.capacity_bps, weight, minimum, claim);
        share(level).max(self.share_bps(row))
    }

    /// The rate that a newcomer without limit could have, next to the rows and to further newcomers with that total
    /// weight and those total minima: one binary search.
    pub(super) fn offer_with_newcomers_bps(&self, newcomer: &Claimant, weights: f64, minima_bps: f64) -> f64 {
        if self.capacity_bps == f64::INFINITY {
            return f64::INFINITY;
        }
        let (weight, minimum) = (newcomer.weight + weights, newcomer.minimum_bps + minima_bps);
        let level = self.water.level_with(self.capacity_bps, weight, minimum, 0.0);
        newcomer.minimum_bps.min(self.capacity_bps).max(newcomer.weight * level)
    }
}

impl Queries {
    /// The range of levels that the queries need, for rows without minima.
    fn about(self, capacity_bps: f64, most_weight: f64, rows: &[Claimant]) -> Option<Range<f64>> {
        let level = near::full(capacity_bps, 0.0, rows)?;
        match self {
            Self::Shares => Some(level),
            // The smallest level that any row is offered: the offer to the row of the largest weight, if it claimed
            // nothing.
            Self::Offers => Some(near::full(capacity_bps, most_weight, rows)?.start..level.end),
            Self::Newcomers => None,
        }
    }
}

/// Claims of rows whose sum is limited to `most`; `None` if they claim no more than that.
pub(super) fn narrow(most: Option<fairwave_units::Rate>, rows: &[Claimant]) -> Option<Fill> {
    let most_bps = most?.as_bps();
    let sum: f64 = rows.iter().map(|row| row.claim_bps).sum();
    (sum > most_bps).then(|| Fill::for_queries(Queries::Shares, most_bps, rows))
}
