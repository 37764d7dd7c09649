//! The order in which a node visits its sessions.

use crate::Row;

/// Up to this number of rows a plain insertion sort is fastest.
const SMALL: usize = 24;
/// Shifts per row after which a supposedly sorted table is sorted from scratch.
const PATIENCE: usize = 4;

/// A row's place in the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPlace {
    /// Measured rate per unit of weight.
    pub(super) ratio: f64,
    /// Sum of the weights from this place to the end.
    pub(super) weights: f64,
    /// Index into the rows.
    pub(super) row: u32,
}

/// The rows sorted by (measured rate / weight, index), and the state that speeds up the next sort.
///
/// Rates change little from one interval to the next, so a large table starts with the order of the last call. The
/// result does not depend on it: the index breaks every tie.
#[derive(Clone, Debug, Default)]
pub(super) struct RowOrder {
    places: Vec<RowPlace>,
}

impl RowOrder {
    /// Sorts the rows.
    ///
    /// # Panics
    /// With 2^32 rows or more.
    #[inline]
    pub(super) fn sort(&mut self, rows: &[Row]) -> &[RowPlace] {
        if rows.len() <= SMALL {
            self.sort_small(rows);
        } else {
            self.sort_large(rows);
        }
        let mut weights = 0.0;
        for place in self.places.iter_mut().rev() {
            weights += rows[place.row as usize].terms.weight;
            place.weights = weights;
        }
        &self.places
    }

    #[inline]
    fn sort_small(&mut self, rows: &[Row]) {
        self.places.clear();
        for (row, place) in (0..).zip(rows.iter().map(ratio)) {
            let mut at = self.places.len();
            let place = RowPlace { ratio: place, weights: 0.0, row };
            self.places.push(place);
            // Equal ratios stay in the order of the rows.
            while at > 0 && self.places[at - 1].ratio > place.ratio {
                self.places[at] = self.places[at - 1];
                at -= 1;
            }
            self.places[at] = place;
        }
    }

    fn sort_large(&mut self, rows: &[Row]) {
        if self.places.len() == rows.len() {
            for place in &mut self.places {
                place.ratio = ratio(&rows[place.row as usize]);
            }
        } else {
            let count = u32::try_from(rows.len()).expect("a node has fewer than 2^32 sessions");
            self.places.clear();
            self.places.extend((0..count).zip(rows).map(|(row, of)| RowPlace { ratio: ratio(of), weights: 0.0, row }));
        }
        if !insert_all(&mut self.places) {
            // Ratios are at least zero and never -0, so they order as their bits do.
            self.places.sort_unstable_by_key(|place| (place.ratio.to_bits(), place.row));
        }
    }
}

/// Measured rate per unit of weight; adding zero turns -0 into 0.
#[inline]
fn ratio(row: &Row) -> f64 {
    row.measured.as_bps() / row.terms.weight + 0.0
}

/// An insertion sort that gives up, and returns false, if the places are far from sorted.
fn insert_all(places: &mut [RowPlace]) -> bool {
    let before = |a: &RowPlace, b: &RowPlace| a.ratio < b.ratio || (a.ratio == b.ratio && a.row < b.row);
    let mut left = PATIENCE * places.len();
    for from in 1..places.len() {
        let place = places[from];
        let mut at = from;
        while at > 0 && before(&place, &places[at - 1]) {
            if left == 0 {
                places[at] = place;
                return false;
            }
            left -= 1;
            places[at] = places[at - 1];
            at -= 1;
        }
        places[at] = place;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terms;
    use fairwave_units::Rate;
    use proptest::prelude::*;

    fn row((measured, weight): (u32, u8)) -> Row {
        Row {
            measured: Rate::nearest_bps(f64::from(measured)),
            terms: Terms { weight: f64::from(weight), ..Terms::default() },
        }
    }

    proptest! {
        #[test]
        fn sort__is_the_same_from_any_earlier_order(
            tables in prop::collection::vec(prop::collection::vec((0..40u32, 1..4u8), 0..80), 1..4),
            length in 25..80usize,
        ) {
            let mut warm = RowOrder::default();
            for table in tables {
                // Consecutive tables of one length reach the warm start.
                let rows: Vec<_> = table.into_iter().cycle().take(length).map(row).collect();
                let mut expected: Vec<_> =
                    (0..).zip(&rows).map(|(index, row)| (row.measured.as_bps() / row.terms.weight, index)).collect();
                expected.sort_by(|a: &(f64, u32), b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let places = warm.sort(&rows);
                prop_assert_eq!(places.iter().map(|place| (place.ratio, place.row)).collect::<Vec<_>>(), expected);
                let mut left: f64 = rows.iter().map(|row| row.terms.weight).sum();
                for place in places {
                    prop_assert_eq!(place.weights, left); // whole numbers: exact
                    left -= rows[place.row as usize].terms.weight;
                }
            }
        }
    }
}
