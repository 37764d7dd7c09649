//! The bytes of a tree that a session has given, each counted once.

use std::ops::Range;

use fairwave_proto::ByteRanges;

/// Max ranges. Takers request files in order, and existing files make the gaps. If a taker requests more scattered
/// ranges, each byte counts as often as it is sent.
pub(crate) const MAX_RANGES: usize = 1 << 16;

/// The bytes of a tree that were given. A byte that goes again, since it was lost on the way, is not given again.
#[derive(Debug, Default)]
pub(crate) struct GivenBytes {
    ranges: ByteRanges,
    /// Bytes that are not among the ranges yet: mostly each part starts at the end of the previous one.
    run: Range<u64>,
    /// Up to here nothing behind the run was given.
    clear_to: u64,
}

impl GivenBytes {
    /// Adds a given part; returns the number of new bytes.
    #[inline]
    pub(crate) fn add(&mut self, part: &Range<u64>) -> u64 {
        if part.start == self.run.end && part.end <= self.clear_to {
            self.run.end = part.end;
            return part.end - part.start;
        }
        self.jump(part)
    }

    fn jump(&mut self, part: &Range<u64>) -> u64 {
        self.settle();
        if self.ranges.len() >= MAX_RANGES {
            (self.run, self.clear_to) = (0..0, 0);
            return part.end - part.start;
        }
        let new = self.ranges.insert(part.clone());
        let next = self.ranges.overlapping(&(part.end..u64::MAX)).next();
        self.run = part.end..part.end;
        self.clear_to = next.map_or(u64::MAX, |next| next.start.max(part.end));
        new
    }

    /// All that was given.
    pub(crate) fn ranges(&mut self) -> &ByteRanges {
        self.settle();
        &self.ranges
    }

    fn settle(&mut self) {
        self.ranges.insert(self.run.clone());
        self.run.start = self.run.end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn add__counts_each_byte_once(parts in proptest::collection::vec((0_u64..60, 0_u64..12), 0..80)) {
            let (mut given, mut bytes, mut at) = (GivenBytes::default(), std::collections::BTreeSet::new(), 0);
            for (to, length) in parts {
                // Mostly where the last one ended.
                let start = if to < 40 { at } else { to };
                at = start + length;
                let new = (start..at).filter(|byte| bytes.insert(*byte)).count() as u64;
                prop_assert_eq!(given.add(&(start..at)), new);
            }
            let ranges: Vec<u64> = given.ranges().iter().flatten().collect();
            prop_assert_eq!(ranges, bytes.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn add__scattered_bytes_take_no_more_memory_than_some() {
        let mut given = GivenBytes::default();
        for at in 0..3 * MAX_RANGES as u64 {
            assert_eq!(given.add(&(2 * at..2 * at + 1)), 1);
        }
        assert!(given.ranges().len() <= MAX_RANGES);
    }
}
