//! Which data packets a sink lacks.

use std::collections::VecDeque;
use std::ops::Range;

use fairwave_units::{Duration, Time};

/// The packet numbers that have not arrived, as far as the source may still want to know.
///
/// A packet is never sent again under its number, so a number that is missing stays missing, and the sink reports it
/// until the source says that it has settled it. A late packet is not lost yet: what is missing counts as lost when it
/// has been missing for as long as packets are thought to overtake each other.
///
/// Memory follows the gaps, not their size, and there is a bound on the gaps.
#[derive(Clone, Debug, Default)]
pub struct MissingNumbers {
    /// All below are settled.
    base: u64,
    /// One above the highest number that has arrived.
    next: u64,
    /// In order, apart from each other.
    gaps: VecDeque<Gap>,
}

/// Numbers that are missing since a higher one arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    start: u64,
    end: u64,
    since: Time,
}

/// What becomes of a packet by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It arrives for the first time.
    New,
    /// It was here before, or is settled.
    Old,
    /// There are too many gaps for another: as if it had been lost on the way.
    Refused,
}

/// Gaps at the most; 24 bytes each.
pub const MOST_GAPS: usize = 32_768;

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
    pub fn on_packet(&mut self, now: Time, number: u64) -> Arrival {
        if number >= self.next {
            if number > self.next {
                if self.gaps.len() >= MOST_GAPS {
                    return Arrival::Refused;
                }
                self.gaps.push_back(Gap { start: self.next, end: number, since: now });
            }
            self.next = number.saturating_add(1);
            return Arrival::New;
        }
        // The only gap that may hold it is the last one that begins at it or below.
        let place = self.gaps.partition_point(|gap| gap.start <= number);
        let Some(index) = place.checked_sub(1) else { return Arrival::Old };
        let is_full = self.gaps.len() >= MOST_GAPS;
        let Some(gap) = self.gaps.get_mut(index) else { return Arrival::Old };
        let Gap { start, end, since } = *gap;
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
                self.gaps.insert(place, Gap { start: number + 1, end, since });
            }
        }
        Arrival::New
    }

    /// The source says that it has sent all numbers below `next`: those that have not come are missing.
    pub fn on_sent(&mut self, now: Time, next: u64) {
        if next > self.next && self.gaps.len() < MOST_GAPS {
            self.gaps.push_back(Gap { start: self.next, end: next, since: now });
            self.next = next;
        }
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

    /// What to report at `now`: the numbers that are decided, and the lost ones among them, which go into `lost` in
    /// order. What has been missing for less than `patience` is not decided, nor what is above it.
    pub fn report(&self, now: Time, patience: Duration, lost: &mut Vec<Range<u64>>) -> Range<u64> {
        // Gaps came to be in the order of their numbers.
        let decided = self.gaps.partition_point(|gap| now.since(gap.since) >= patience);
        lost.clear();
        lost.extend(self.gaps.range(..decided).map(|gap| gap.start..gap.end));
        // What only the source has told of touches what was missing before.
        lost.dedup_by(|next, last| {
            let touches = next.start == last.end;
            if touches {
                last.end = next.end;
            }
            touches
        });
        self.base..self.gaps.get(decided).map_or(self.next, |gap| gap.start)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn report__leaves_what_may_be_late() {
        let mut missing = MissingNumbers::default();
        for (at, number) in [(0, 0), (1, 3), (4, 5), (4, 6)] {
            assert_eq!(missing.on_packet(ms(at), number), Arrival::New);
        }
        let mut lost = Vec::new();
        let patience = Duration::from_millis(2);
        // 1 and 2 are missing since 1 ms, 4 since 4 ms.
        assert_eq!((missing.report(ms(2), patience, &mut lost), lost.clone()), (0..1, vec![]));
        assert_eq!((missing.report(ms(3), patience, &mut lost), lost.clone()), (0..4, vec![1..3]));
        assert_eq!((missing.report(ms(6), patience, &mut lost), lost.clone()), (0..7, vec![1..3, 4..5]));
        // It was late.
        assert_eq!(missing.on_packet(ms(6), 2), Arrival::New);
        assert_eq!(missing.on_packet(ms(6), 2), Arrival::Old);
        missing.on_settled(2);
        assert_eq!((missing.report(ms(6), patience, &mut lost), lost.clone()), (2..7, vec![4..5]));
        missing.on_settled(u64::MAX);
        assert_eq!((missing.report(ms(6), patience, &mut lost), lost.clone()), (7..7, vec![]));
        assert_eq!(missing.on_packet(ms(6), 4), Arrival::Old);
    }

    #[test]
    fn report__of_numbers_that_only_the_source_has_told() {
        let mut missing = MissingNumbers::default();
        missing.on_packet(ms(0), 0);
        for (at, next) in [(1, 3), (2, 2), (3, 5)] {
            missing.on_sent(ms(at), next);
        }
        let mut lost = Vec::new();
        let patience = Duration::from_millis(2);
        assert_eq!((missing.report(ms(4), patience, &mut lost), lost.clone()), (0..3, vec![1..3]));
        // One range, as ranges of a report do not touch.
        assert_eq!((missing.report(ms(5), patience, &mut lost), lost.clone()), (0..5, vec![1..5]));
    }

    #[test]
    fn on_packet__bounds_the_gaps() {
        let mut missing = MissingNumbers::default();
        let most = MOST_GAPS as u64;
        for at in 0..most {
            assert_eq!(missing.on_packet(ms(0), 4 * at + 3), Arrival::New);
        }
        assert_eq!(missing.on_packet(ms(0), 1), Arrival::Refused); // it would split a gap
        assert_eq!(missing.on_packet(ms(0), 4 * most + 3), Arrival::Refused);
        assert_eq!(missing.on_packet(ms(0), 4 * most), Arrival::New);
        assert_eq!(missing.on_packet(ms(0), 0), Arrival::New);
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
                    prop_assert_eq!(missing.on_packet(ms(0), number), expected);
                    if number >= settled {
                        arrived.insert(number);
                    }
                } else {
                    missing.on_settled(number);
                    settled = settled.max(number.min(missing.next()));
                }
                let mut lost = Vec::new();
                let numbers = missing.report(ms(1), Duration::from_millis(1), &mut lost);
                prop_assert_eq!(&numbers, &(settled..missing.next()));
                let got: Vec<u64> = lost.iter().cloned().flatten().collect();
                let expected: Vec<u64> = numbers.filter(|number| !arrived.contains(number)).collect();
                prop_assert_eq!(got, expected);
            }
        }
    }
}
