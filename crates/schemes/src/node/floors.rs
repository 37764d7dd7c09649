//! Minimum rates in a table that is looked at by measured rate.

use crate::Row;

use super::compensated::Compensated;

/// What sessions with a minimum rate take off the top while the rule looks at a table, lowest measured rate first.
///
/// At level L a session with minimum m and weight w is to have max(m, w L), as Hou's rule gives it (docs/explanation/abr.md); here
/// L is the target rate of a unit of weight, which rises from session to session. So those whose minimum is more than
/// their share stand at their minimum at first, and join the others one after the other. A session that is *below* its
/// minimum is limited elsewhere, or has just begun: what it uses counts, and its minimum is its own at once.
///
/// A table without minima is left alone: its levels are those of the rule, to the last bit.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    /// Sessions at or above their minimum, highest minimum per unit of weight first.
    sorted: Vec<Floor>,
    /// So many of these, from the first, stand at their minimum.
    standing: usize,
    /// Weight of those that are at or above their minimum, and are not determined.
    weights: Compensated,
    has_minima: bool,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    /// Minimum rate per unit of weight.
    level: f64,
    /// Sums over this one and all before it.
    minima: f64,
    weights: f64,
}

/// Whether a session uses less than its minimum: it is limited elsewhere, or has just begun.
#[inline]
pub(super) fn is_below(row: &Row) -> bool {
    row.measured < row.minimum
}

impl Floors {
    /// Begins a table, and takes off the capacity what those use that are below their minimum.
    pub(super) fn begin(&mut self, rows: &[Row], remaining: &mut Compensated) {
        self.has_minima = rows.iter().any(|row| row.minimum.as_bps() > 0.0);
        if !self.has_minima {
            return;
        }
        self.sorted.clear();
        self.standing = 0;
        self.weights = Compensated::default();
        for row in rows {
            let (minimum, weight) = (row.minimum.as_bps(), row.weight);
            if is_below(row) {
                remaining.subtract(row.measured.as_bps());
                continue;
            }
            self.weights.add(weight);
            if minimum > 0.0 {
                self.sorted.push(Floor { level: minimum / weight, minima: minimum, weights: weight });
            }
        }
        self.sorted.sort_by(|a, b| b.level.total_cmp(&a.level));
        let (mut minima, mut weights) = (Compensated::default(), Compensated::default());
        for floor in &mut self.sorted {
            minima.add(floor.minima);
            weights.add(floor.weights);
            (floor.minima, floor.weights) = (minima.value(), weights.value());
        }
        while self.sorted.get(self.standing).is_some_and(|next| next.level > self.level(self.standing, *remaining)) {
            self.standing += 1;
        }
    }

    /// Whether a session of the table has a minimum: else there is nothing to ask here.
    #[inline]
    pub(super) fn has_minima(&self) -> bool {
        self.has_minima
    }

    /// The target rate of a unit of weight now, where `remaining` is left by those that are determined.
    pub(super) fn target(&mut self, remaining: Compensated) -> f64 {
        while let Some(before) = self.standing.checked_sub(1)
            && self.sorted.get(before).is_some_and(|last| last.level <= self.level(before, remaining))
        {
            self.standing = before;
        }
        self.level(self.standing, remaining)
    }

    /// The same for a session that is below its minimum, as if it were not.
    pub(super) fn target_below(&mut self, row: &Row, remaining: Compensated) -> f64 {
        let mut left = remaining;
        left.add(row.measured.as_bps());
        self.target(remaining);
        let (minima, weights) = self.sums(self.standing);
        left.subtract(minima);
        (left.value() / (self.weights.value() - weights + row.weight)).max(0.0)
    }

    /// A session at or above its minimum is determined.
    pub(super) fn leave(&mut self, row: &Row) {
        if self.has_minima {
            self.weights.subtract(row.weight);
        }
    }

    /// The level at which the first `standing` have their minimum, and the others share what is left.
    fn level(&self, standing: usize, remaining: Compensated) -> f64 {
        let (minima, weights) = self.sums(standing);
        let mut left = remaining;
        left.subtract(minima);
        let (left, weights) = (left.value(), self.weights.value() - weights);
        // Of sums of the same weights in another order, nothing may be left as a few of the last bits.
        match (left > 0.0, weights > self.weights.value() * 1e-12) {
            (true, true) => left / weights,
            (true, false) => f64::INFINITY,
            (false, _) => 0.0,
        }
    }

    fn sums(&self, standing: usize) -> (f64, f64) {
        let last = standing.checked_sub(1).and_then(|last| self.sorted.get(last));
        last.map_or((0.0, 0.0), |floor| (floor.minima, floor.weights))
    }
}
