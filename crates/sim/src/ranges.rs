//! A set of packet numbers as disjoint ranges.

use std::collections::VecDeque;
use std::ops::Range;

/// Numbers in disjoint, non-adjacent ranges, in order.
///
/// Packets arrive almost in order, and holes are filled almost from the bottom: extending the last range and closing
/// the first gap are the fast paths; everything else is a binary search and a move of the shorter side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: VecDeque<Range<u64>>,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// All ranges, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.ranges.iter()
    }

    pub(crate) fn first(&self) -> Option<&Range<u64>> {
        self.ranges.front()
    }

    /// The range that holds a number.
    pub(crate) fn containing(&self, number: u64) -> Option<Range<u64>> {
        if let Some(last) = self.ranges.back()
            && last.contains(&number)
        {
            return Some(last.clone());
        }
        let at = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(at).filter(|range| range.start <= number).cloned()
    }

    /// Adds one number; returns false if it was already in the set.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        let mut is_new = false;
        self.insert_range(number..number + 1, |_| is_new = true);
        is_new
    }

    /// Adds a range and calls `on_new` with each part of it that was not in the set, in ascending order.
    pub(crate) fn insert_range(&mut self, new: Range<u64>, mut on_new: impl FnMut(Range<u64>)) {
        if new.is_empty() {
            return;
        }
        match self.ranges.back_mut() {
            None => {
                on_new(new.clone());
                self.ranges.push_back(new);
                return;
            }
            Some(last) if new.start >= last.start => {
                let from = new.start.max(last.end);
                if from >= new.end {
                    return;
                }
                on_new(from..new.end);
                if new.start <= last.end {
                    last.end = new.end;
                } else {
                    self.ranges.push_back(new);
                }
                return;
            }
            Some(_) => {}
        }
        // Ranges first..beyond touch the new one and merge with it.
        let first = self.ranges.partition_point(|range| range.end < new.start);
        let mut beyond = first;
        let mut merged = new.clone();
        let mut from = new.start;
        while let Some(range) = self.ranges.get(beyond).filter(|range| range.start <= new.end) {
            if from < range.start {
                on_new(from..range.start.min(new.end));
            }
            from = from.max(range.end);
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
            beyond += 1;
        }
        if from < new.end {
            on_new(from..new.end);
        }
        if beyond == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            if beyond > first + 1 {
                self.ranges.drain(first + 1..beyond);
            }
        }
    }

    /// Removes all numbers below `number`.
    pub(crate) fn remove_below(&mut self, number: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.end <= number {
                self.ranges.pop_front();
            } else {
                first.start = first.start.max(number);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn numbers(ranges: &Ranges) -> BTreeSet<u64> {
        ranges.ranges.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn ranges__are_a_set_of_numbers(steps in proptest::collection::vec((0_u64..100, 0_u64..12, 0_u8..8), 1..100)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, length, what) in steps {
                if what == 0 {
                    ranges.remove_below(start);
                    set.retain(|number| *number >= start);
                } else {
                    let mut new = BTreeSet::new();
                    ranges.insert_range(start..start + length, |part| new.extend(part));
                    let expected: BTreeSet<u64> = (start..start + length).filter(|n| !set.contains(n)).collect();
                    prop_assert_eq!(&new, &expected);
                    set.extend(expected);
                }
                prop_assert_eq!(numbers(&ranges), set.clone());
                let apart = ranges.ranges.iter().zip(ranges.ranges.iter().skip(1)).all(|(a, b)| a.end < b.start);
                prop_assert!(apart, "{:?}", ranges);
                for number in 0..112 {
                    prop_assert_eq!(ranges.containing(number).is_some(), set.contains(&number));
                }
            }
        }
    }
}
