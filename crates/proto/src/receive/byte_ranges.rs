//! A set of bytes of one stream.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of offsets, in order, apart from each other. Memory follows the ranges, not their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteRanges {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl ByteRanges {
    /// Bytes in it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges they form.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The range with the lowest offsets.
    pub fn first(&self) -> Option<Range<u64>> {
        self.iter().next()
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Whether any byte of `range` is in it.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        let last = self.ranges.range(..range.end).next_back();
        !range.is_empty() && last.is_some_and(|(_, &end)| end > range.start)
    }

    /// The ranges that have a byte of `range`, in order.
    pub fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let before = self.ranges.range(..range.start).next_back().filter(|(_, end)| **end > range.start);
        let within = self.ranges.range(range.start..range.end.max(range.start));
        before.filter(|_| !range.is_empty()).into_iter().chain(within).map(|(&start, &end)| start..end)
    }

    /// Whether `range` lies within one of the ranges and touches neither of its ends: taking it out makes two of one.
    pub fn would_split(&self, range: &Range<u64>) -> bool {
        self.ranges.range(..range.start).next_back().is_some_and(|(_, &end)| end > range.end)
    }

    /// Adds a range: how many of its bytes are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.bytes;
        let (mut start, mut end) = (range.start, range.end);
        // Those that touch it become one with it, from the last backwards.
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(&other);
            self.bytes -= other_end - other;
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ranges.insert(start, end);
        self.bytes += end - start;
        self.bytes - before
    }

    /// Takes a range out: how many of its bytes were there.
    pub fn remove(&mut self, range: &Range<u64>) -> u64 {
        self.remove_each(range, |_| {})
    }

    /// Removes a range: calls `part` for each part of it that was in the set, from the last backwards, and returns
    /// their total bytes.
    pub fn remove_each(&mut self, range: &Range<u64>, mut part: impl FnMut(Range<u64>)) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.bytes;
        while let Some((&start, &end)) = self.ranges.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.ranges.remove(&start);
            self.bytes -= end - start;
            part(start.max(range.start)..end.min(range.end));
            for (start, end) in [(start, range.start), (range.end, end)] {
                if start < end {
                    self.ranges.insert(start, end);
                    self.bytes += end - start;
                }
            }
            if start <= range.start {
                break;
            }
        }
        before - self.bytes
    }

    /// Removes up to `most` of the first bytes, from one range.
    pub fn take_first(&mut self, most: u64) -> Option<Range<u64>> {
        let Range { start, end } = self.first()?;
        let taken = start..end.min(start.saturating_add(most));
        self.remove(&taken);
        (!taken.is_empty()).then_some(taken)
    }
}

impl From<Range<u64>> for ByteRanges {
    fn from(range: Range<u64>) -> Self {
        let mut ranges = Self::default();
        ranges.insert(range);
        ranges
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn list(ranges: &ByteRanges) -> Vec<Range<u64>> {
        ranges.iter().collect()
    }

    #[test]
    fn insert__joins_what_touches() {
        let mut ranges = ByteRanges::from(10..20);
        assert_eq!(ranges.insert(30..40), 10);
        assert_eq!(list(&ranges), [10..20, 30..40]);
        assert_eq!(ranges.insert(15..30), 10);
        assert_eq!(list(&ranges), [10..40]);
        assert_eq!(ranges.insert(12..38), 0);
        assert_eq!((ranges.insert(5..5), ranges.insert(0..50), ranges.bytes()), (0, 20, 50));
    }

    #[test]
    fn remove__cuts() {
        let mut ranges = ByteRanges::from(0..100);
        assert_eq!(ranges.remove(&(40..60)), 20);
        assert_eq!(ranges.remove(&(50..70)), 10);
        assert_eq!(list(&ranges), [0..40, 70..100]);
        assert_eq!(ranges.take_first(30), Some(0..30));
        assert_eq!(ranges.take_first(30), Some(30..40));
        assert_eq!(ranges.take_first(u64::MAX), Some(70..100));
        assert_eq!((ranges.take_first(1), ranges.is_empty()), (None, true));
    }

    proptest! {
        /// Against a plain set.
        #[test]
        fn byte_ranges__are_a_set(steps in proptest::collection::vec((0_u64..50, 0_u64..20, any::<bool>()), 1..80)) {
            let (mut ranges, mut set) = (ByteRanges::default(), BTreeSet::new());
            for (start, length, is_insert) in steps {
                let range = start..start + length;
                let changed = range.clone().filter(|&byte| set.contains(&byte) != is_insert).count() as u64;
                prop_assert_eq!(ranges.overlaps(&range), range.clone().any(|byte| set.contains(&byte)));
                let overlapping: Vec<_> =
                    list(&ranges).into_iter().filter(|other| other.start < range.end && range.start < other.end).collect();
                let overlapping = if range.is_empty() { vec![] } else { overlapping };
                prop_assert_eq!(ranges.overlapping(&range).collect::<Vec<_>>(), overlapping);
                let ranges_before = ranges.len();
                let would_split = !range.is_empty() && ranges.would_split(&range);
                if is_insert {
                    prop_assert_eq!(ranges.insert(range.clone()), changed);
                    set.extend(range);
                } else {
                    prop_assert_eq!(ranges.remove(&range), changed);
                    prop_assert_eq!(ranges.len() > ranges_before, would_split);
                    set.retain(|byte| !range.contains(byte));
                }
                prop_assert_eq!(ranges.iter().flatten().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.bytes(), set.len() as u64);
                let all = list(&ranges);
                prop_assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
