//! Which data packets a sink lacks.

use std::collections::VecDeque;
use std::ops::Range;

/// The packet numbers that have not arrived, as far as the source may still want to know.
///
/// A packet is never sent again under its number, so a number that is missing stays missing, and the sink reports it
/// until the source reports it as settled. The source judges whether it is lost or late: see "Lost or late" in
/// docs/explanation/path-model.md.
///
/// Memory follows the gaps, not their size, and the number of gaps is bounded.
#[derive(Clone, Debug, Default)]
pub struct MissingNumbers {
    /// All below are settled.
    base: u64,
    /// One above the highest number that has arrived.
    next: u64,
    /// In order, apart from each other.
    gaps: VecDeque<Range<u64>>,
}

/// The outcome of a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It arrives for the first time.
    New,
    /// It was here before, or is settled.
    Old,
    /// There are too many gaps for another: as if it had been lost on the way.
    Refused,
}

/// Gaps at most; 16 bytes each.
pub const MAX_GAPS: usize = 32_768;

impl MissingNumbers {
    /// One above the highest number that has arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Numbers from the first that is not settled up to the highest that has arrived: gaps are among them.
    pub fn span(&self) -> u64 {
        self.next - self.base
    }

    /// A data packet arrived.
    pub fn on_packet(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            if number > self.next && !self.leave_out(number) {
                return Arrival::Refused;
            }
            self.next = number.saturating_add(1);
            return Arrival::New;
        }
        // The only gap that may hold it is the last one that starts at it or below.
        let place = self.gaps.partition_point(|gap| gap.start <= number);
        let Some(index) = place.checked_sub(1) else { return Arrival::Old };
        let is_full = self.gaps.len() >= MAX_GAPS;
        let Some(gap) = self.gaps.get_mut(index) else { return Arrival::Old };
        let Range { start, end } = *gap;
        if number >= end {
            return Arrival::Old;
        }
        match (number == start, number + 1 == end) {
            (true, true) => {
                self.gaps.remove(index);
            }
            (true, false) => gap.start = number + 1,
            (false, true) => gap.end = number,
            (false, false) if is_full => return Arrival::Refused,
            (false, false) => {
                gap.end = number;
                self.gaps.insert(place, number + 1..end);
            }
        }
        Arrival::New
    }

    /// The source reports that it has sent all numbers below `next`: those that have not come are missing.
    pub fn on_sent(&mut self, next: u64) {
        if next > self.next && self.leave_out(next) {
            self.next = next;
        }
    }

    /// All from the next number to another are missing: whether that can be remembered.
    fn leave_out(&mut self, end: u64) -> bool {
        let is_full = self.gaps.len() >= MAX_GAPS;
        match self.gaps.back_mut() {
            // A gap that ends at the next number is extended.
            Some(last) if last.end == self.next => last.end = end,
            _ if is_full => return false,
            _ => self.gaps.push_back(self.next..end),
        }
        true
    }

    /// Whether there are numbers that the source is not known to have settled.
    pub fn is_open(&self) -> bool {
        self.base < self.next
    }

    /// The source has settled all numbers below.
    pub fn on_settled(&mut self, below: u64) {
        // Of numbers that have not come it cannot say anything that would matter here.
        let below = below.min(self.next);
        self.base = self.base.max(below);
        while let Some(gap) = self.gaps.front_mut() {
            if gap.end > below {
                gap.start = gap.start.max(below);
                break;
            }
            self.gaps.pop_front();
        }
    }

    /// The range of numbers to report; the missing ones among them go into `missing` in order.
    pub fn report(&self, missing: &mut Vec<Range<u64>>) -> Range<u64> {
        missing.clear();
        missing.extend(self.gaps.iter().cloned());
        self.base..self.next
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn report(missing: &MissingNumbers) -> (Range<u64>, Vec<Range<u64>>) {
        let mut lost = Vec::new();
        (missing.report(&mut lost), lost)
    }

    #[test]
    fn report__is_of_all_that_is_not_settled() {
        let mut missing = MissingNumbers::default();
        for number in [0, 3, 5, 6] {
            assert_eq!(missing.on_packet(number), Arrival::New);
        }
        assert_eq!(report(&missing), (0..7, vec![1..3, 4..5]));
        // It was late.
        assert_eq!(missing.on_packet(2), Arrival::New);
        assert_eq!(missing.on_packet(2), Arrival::Old);
        missing.on_settled(2);
        assert_eq!(report(&missing), (2..7, vec![4..5]));
        missing.on_settled(u64::MAX);
        assert_eq!(report(&missing), (7..7, vec![]));
        assert_eq!(missing.on_packet(4), Arrival::Old);
    }

    #[test]
    fn report__of_numbers_that_only_the_source_has_told() {
        let mut missing = MissingNumbers::default();
        missing.on_packet(0);
        for (next, expected) in [(3, 1..3), (2, 1..3), (5, 1..5)] {
            missing.on_sent(next);
            // One range, as ranges of a report do not touch.
            assert_eq!(report(&missing), (0..expected.end, vec![expected]));
        }
        missing.on_packet(7);
        assert_eq!(report(&missing), (0..8, vec![1..7]));
    }

    #[test]
    fn on_packet__bounds_the_gaps() {
        let mut missing = MissingNumbers::default();
        let most = MAX_GAPS as u64;
        for at in 0..most {
            assert_eq!(missing.on_packet(4 * at + 3), Arrival::New);
        }
        assert_eq!(missing.on_packet(1), Arrival::Refused); // it would split a gap
        assert_eq!(missing.on_packet(4 * most + 3), Arrival::Refused);
        assert_eq!(missing.on_packet(4 * most), Arrival::New);
        assert_eq!(missing.on_packet(0), Arrival::New);
    }

    proptest! {
        /// Against a plain set of all that has arrived.
        #[test]
        fn missing__is_what_has_not_arrived(
            steps in proptest::collection::vec((0_u64..60, any::<bool>()), 1..120),
        ) {
            let (mut missing, mut arrived, mut settled) = (MissingNumbers::default(), BTreeSet::new(), 0);
            for (number, is_packet) in steps {
                if is_packet {
                    let expected =
                        if number < settled || arrived.contains(&number) { Arrival::Old } else { Arrival::New };
                    prop_assert_eq!(missing.on_packet(number), expected);
                    if number >= settled {
                        arrived.insert(number);
                    }
                } else {
                    missing.on_settled(number);
                    settled = settled.max(number.min(missing.next()));
                }
                let mut lost = Vec::new();
                let numbers = missing.report(&mut lost);
                prop_assert_eq!(&numbers, &(settled..missing.next()));
                let got: Vec<u64> = lost.iter().cloned().flatten().collect();
                let expected: Vec<u64> = numbers.filter(|number| !arrived.contains(number)).collect();
                prop_assert_eq!(got, expected);
            }
        }
    }
}
