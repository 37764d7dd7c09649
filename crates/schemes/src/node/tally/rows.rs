//! The session table of a node, in the order of the session numbers.

use std::collections::{BTreeMap, BTreeSet};

/// A map from sessions to rows with an overhead of eight bytes per row: two vectors in the order of the sessions.
///
/// Insertions and removals since the last [`settle`](Self::settle) are kept separately, so that neither moves all the
/// others. Iterations over all rows call it first.
#[derive(Clone, Debug)]
pub(super) struct Rows<R> {
    sessions: Vec<u64>,
    values: Vec<R>,
    /// Places of rows that were removed.
    gone: BTreeSet<usize>,
    /// Sessions inserted since.
    fresh: BTreeMap<u64, R>,
}

impl<R> Rows<R> {
    pub(super) fn new() -> Self {
        Self { sessions: Vec::new(), values: Vec::new(), gone: BTreeSet::new(), fresh: BTreeMap::new() }
    }

    fn place(&self, session: u64) -> Option<usize> {
        self.sessions.binary_search(&session).ok().filter(|place| !self.gone.contains(place))
    }

    pub(super) fn get(&self, session: u64) -> Option<&R> {
        self.place(session).map(|place| &self.values[place]).or_else(|| self.fresh.get(&session))
    }

    pub(super) fn get_mut(&mut self, session: u64) -> Option<&mut R> {
        match self.place(session) {
            Some(place) => self.values.get_mut(place),
            None => self.fresh.get_mut(&session),
        }
    }

    /// Replaces the row of the session, if any.
    pub(super) fn insert(&mut self, session: u64, row: R) {
        match self.get_mut(session) {
            Some(there) => *there = row,
            None => {
                self.fresh.insert(session, row);
            }
        }
    }

    pub(super) fn get_or_insert_with(&mut self, session: u64, new: impl FnOnce() -> R) -> &mut R {
        match self.place(session) {
            Some(place) => &mut self.values[place],
            None => self.fresh.entry(session).or_insert_with(new),
        }
    }

    /// Returns whether the session had a row.
    pub(super) fn remove(&mut self, session: u64) -> bool {
        match self.place(session) {
            Some(place) => self.gone.insert(place),
            None => self.fresh.remove(&session).is_some(),
        }
    }

    /// Merges insertions and removals, and frees unused memory. Without changes it costs nothing.
    pub(super) fn settle(&mut self) {
        if self.fresh.is_empty() && self.gone.is_empty() {
            return;
        }
        let count = self.sessions.len() - self.gone.len() + self.fresh.len();
        let (mut sessions, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut push = |(session, row)| {
            sessions.push(session);
            values.push(row);
        };
        let gone = std::mem::take(&mut self.gone);
        let old = std::mem::take(&mut self.sessions).into_iter().zip(std::mem::take(&mut self.values));
        let mut fresh = std::mem::take(&mut self.fresh).into_iter().peekable();
        for (_, old) in old.enumerate().filter(|(place, _)| !gone.contains(place)) {
            while let Some(earlier) = fresh.next_if(|(session, _)| *session < old.0) {
                push(earlier);
            }
            push(old);
        }
        fresh.for_each(push);
        (self.sessions, self.values) = (sessions, values);
    }

    /// All rows in the order of the sessions, and those next to them; valid only after [`settle`](Self::settle).
    pub(super) fn settled(&self) -> (&[u64], &[R]) {
        debug_assert!(self.fresh.is_empty() && self.gone.is_empty(), "settled before");
        (&self.sessions, &self.values)
    }

    pub(super) fn settled_mut(&mut self) -> (&[u64], &mut [R]) {
        debug_assert!(self.fresh.is_empty() && self.gone.is_empty(), "settled before");
        (&self.sessions, &mut self.values)
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&R) -> bool) {
        let leaving: Vec<usize> =
            self.values.iter().enumerate().filter(|(_, row)| !stays(row)).map(|(place, _)| place).collect();
        self.gone.extend(leaving);
        self.fresh.retain(|_, row| stays(row));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &R)> {
        let placed = self.sessions.iter().zip(&self.values).enumerate();
        let there = placed.filter(|(place, _)| !self.gone.contains(place)).map(|(_, (session, row))| (*session, row));
        there.chain(self.fresh.iter().map(|(session, row)| (*session, row)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut R)> {
        let gone = &self.gone;
        let placed = self.sessions.iter().zip(&mut self.values).enumerate();
        let there = placed.filter(|(place, _)| !gone.contains(place)).map(|(_, (session, row))| (*session, row));
        there.chain(self.fresh.iter_mut().map(|(session, row)| (*session, row)))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &R> {
        self.iter().map(|(_, row)| row)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.iter_mut().map(|(_, row)| row)
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
        fn rows__equal_a_map(steps in vec((0..6_u8, 0..12_u64), 1..200)) {
            let (mut rows, mut map) = (Rows::new(), BTreeMap::new());
            for (number, (what, session)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        rows.insert(session, number);
                        map.insert(session, number);
                    }
                    2 => {
                        let there = *rows.get_or_insert_with(session, || number);
                        prop_assert_eq!(there, *map.entry(session).or_insert(number));
                    }
                    3 => prop_assert_eq!(rows.remove(session), map.remove(&session).is_some()),
                    4 => {
                        rows.retain(|row| row % 3 != 0);
                        map.retain(|_, row| *row % 3 != 0);
                    }
                    _ => {
                        rows.settle();
                        // In the order of the sessions, and no others.
                        prop_assert!(rows.iter().map(|(session, _)| session).is_sorted());
                        prop_assert_eq!(rows.sessions.capacity(), map.len());
                    }
                }
                prop_assert_eq!(rows.get(session), map.get(&session));
                prop_assert_eq!(rows.get_mut(session).copied(), map.get(&session).copied());
                prop_assert_eq!(rows.iter().map(|(session, row)| (session, *row)).collect::<BTreeMap<_, _>>(), map.clone());
                prop_assert_eq!(rows.iter_mut().count(), map.len());
            }
        }
    }
}
