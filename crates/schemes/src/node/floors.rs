//! Minimum rates for a rule that visits its table by measured rate.

use crate::Row;

use super::compensated::Compensated;

/// The capacity that sessions with a minimum rate take in advance while the rule visits a table, lowest measured rate
/// first.
///
/// At level L a session with minimum m and weight w is to have max(m, w L), as in Hou's rule (docs/explanation/abr.md);
/// here L is the target rate of a unit of weight, which rises from session to session. Sessions whose minimum exceeds
/// their share start at their minimum, and join the others one after the other. A session *below* its minimum is
/// limited elsewhere, or has just started: its actual use counts, and its minimum is available to it immediately.
///
/// A table without minima is unchanged: its levels are those of the rule, to the last bit.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    /// Sessions at or above their minimum, highest minimum per unit of weight first.
    sorted: Vec<Floor>,
    /// Number of these, from the first, that stand at their minimum.
    standing: usize,
    /// Weight of those that are at or above their minimum and not yet determined.
    weights: Compensated,
    has_minima: bool,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    /// Minimum rate per unit of weight.
    level: f64,
    /// Sums over this one and all previous ones.
    minima: f64,
    weights: f64,
}

/// Whether a session uses less than its minimum: it is limited elsewhere, or has just started.
#[inline]
pub(super) fn is_below(row: &Row) -> bool {
    row.measured < row.terms.minimum
}

impl Floors {
    /// Starts a table, and subtracts the use of sessions below their minimum from the capacity.
    pub(super) fn begin(&mut self, rows: &[Row], remaining: &mut Compensated) {
        self.has_minima = rows.iter().any(|row| row.terms.minimum.as_bps() > 0.0);
        if !self.has_minima {
            return;
        }
        self.sorted.clear();
        self.standing = 0;
        self.weights = Compensated::default();
        for row in rows {
            let (minimum, weight) = (row.terms.minimum.as_bps(), row.terms.weight);
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

    /// Whether a session of the table has a minimum; otherwise this type is not needed.
    #[inline]
    pub(super) fn has_minima(&self) -> bool {
        self.has_minima
    }

    /// The current target rate of a unit of weight, if the determined sessions leave `remaining`.
    pub(super) fn target(&mut self, remaining: Compensated) -> f64 {
        while let Some(before) = self.standing.checked_sub(1)
            && self.sorted.get(before).is_some_and(|last| last.level <= self.level(before, remaining))
        {
            self.standing = before;
        }
        self.level(self.standing, remaining)
    }

    /// The target for a session below its minimum, as if it were not.
    pub(super) fn target_below(&mut self, row: &Row, remaining: Compensated) -> f64 {
        let mut left = remaining;
        left.add(row.measured.as_bps());
        self.target(remaining);
        let (minima, weights) = self.sums(self.standing);
        left.subtract(minima);
        (left.value() / (self.weights.value() - weights + row.terms.weight)).max(0.0)
    }

    /// Removes a session at or above its minimum that is determined.
    pub(super) fn leave(&mut self, row: &Row) {
        if self.has_minima {
            self.weights.subtract(row.terms.weight);
        }
    }

    /// The level at which the first `standing` have their minimum, and the others share the rest.
    fn level(&self, standing: usize, remaining: Compensated) -> f64 {
        let (minima, weights) = self.sums(standing);
        let mut left = remaining;
        left.subtract(minima);
        let (left, weights) = (left.value(), self.weights.value() - weights);
        // Sums of the same weights in another order may differ in the last bits: that counts as nothing.
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
