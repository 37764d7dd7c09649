//! Which slots the rows of a member have.

/// Rows by their numbers, with the slot of each. Lookups in the order of the rows find each at once.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberRows {
    /// In the order of the rows' numbers.
    sorted: Vec<(u32, usize)>,
    /// The place after the one that was found last.
    next: usize,
}

impl MemberRows {
    /// The slot of a row.
    pub(super) fn find(&mut self, row: u32) -> Option<usize> {
        for next in [self.next, 0] {
            if let Some((number, slot)) = self.sorted.get(next)
                && *number == row
            {
                self.next = next + 1;
                return Some(*slot);
            }
        }
        let place = self.place(row).ok()?;
        self.next = place + 1;
        self.sorted.get(place).map(|(_, slot)| *slot)
    }

    /// In place of the slot that the row had, if any.
    pub(super) fn insert(&mut self, row: u32, slot: usize) {
        match self.place(row) {
            Ok(place) => self.sorted[place].1 = slot,
            Err(place) => self.sorted.insert(place, (row, slot)),
        }
    }

    pub(super) fn remove(&mut self, row: u32) {
        if let Ok(place) = self.place(row) {
            self.sorted.remove(place);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The slots, in the order of the rows' numbers.
    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        self.sorted.iter().map(|(_, slot)| *slot)
    }

    fn place(&self, row: u32) -> Result<usize, usize> {
        self.sorted.binary_search_by_key(&row, |(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows__are_what_a_map_would_be(steps in vec((0..4_u8, 0..12_u32), 1..200)) {
            let (mut rows, mut map) = (MemberRows::default(), BTreeMap::new());
            for (slot, (what, row)) in steps.into_iter().enumerate() {
                match what {
                    0 => {
                        rows.insert(row, slot);
                        map.insert(row, slot);
                    }
                    1 => {
                        rows.remove(row);
                        map.remove(&row);
                    }
                    2 => prop_assert_eq!(rows.find(row), map.get(&row).copied()),
                    // All in their order, as a member is looked at.
                    _ => {
                        for row in 0..12 {
                            prop_assert_eq!(rows.find(row), map.get(&row).copied());
                        }
                    }
                }
                prop_assert_eq!(rows.len(), map.len());
                prop_assert_eq!(rows.slots().collect::<Vec<_>>(), map.values().copied().collect::<Vec<_>>());
            }
        }
    }
}
