//! The receiving end of a flow: arrivals and their acknowledgement.

use std::ops::Range;

use crate::packet::{BLOCKS, Block, SackBlocks};
use crate::ranges::Ranges;

/// The state of a receiver. One implementation for all window-based schemes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowReceiver {
    /// The first number that has not arrived.
    next: u64,
    /// Numbers above it that have arrived.
    above: Ranges,
    /// A number in each of the ranges that changed last, newest first.
    recent: [u64; BLOCKS],
    /// Data packets that arrived for the first time.
    delivered_packets: u64,
    /// The last duplicate, if no acknowledgement has reported it.
    duplicate: Option<u64>,
}

impl WindowReceiver {
    /// Records a data packet; returns false if it was a duplicate.
    pub(crate) fn on_data(&mut self, number: u64) -> bool {
        if number == self.next {
            self.next += 1;
            if let Some(first) = self.above.first()
                && first.start == self.next
            {
                self.next = first.end;
                self.above.remove_below(self.next);
            }
            self.delivered_packets += 1;
            return true;
        }
        if number < self.next {
            self.duplicate = Some(number);
            return false;
        }
        let is_new = self.above.insert(number);
        if !is_new {
            self.duplicate = Some(number);
        }
        self.delivered_packets += u64::from(is_new);
        self.remember(number);
        is_new
    }

    /// Whether a number is the next in order, with no arrivals above it.
    pub(crate) fn expects(&self, number: u64) -> bool {
        number == self.next && self.above.is_empty()
    }

    /// The first number that has not arrived.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Numbers below `end` that have not arrived, in order.
    pub(crate) fn missing_below(&self, end: u64) -> impl Iterator<Item = Range<u64>> {
        let begins = std::iter::once(self.next).chain(self.above.iter().map(|range| range.end));
        let ends = self.above.iter().map(|range| range.start).chain(std::iter::once(u64::MAX));
        begins.zip(ends).map(move |(begin, until)| begin..until.min(end)).filter(|range| !range.is_empty())
    }

    /// Data packets that arrived for the first time.
    pub(crate) fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }

    /// Blocks for an acknowledgement (RFC 2018 s4): the newest first, relative to [`WindowReceiver::next`]. `None` if
    /// nothing above it has arrived.
    pub(crate) fn blocks(&self) -> Option<SackBlocks> {
        if self.above.is_empty() {
            return None;
        }
        let mut blocks = [Block::default(); BLOCKS];
        let mut count = 0;
        for number in self.recent {
            let Some(range) = self.above.containing(number) else { continue };
            let block = Block { begin: self.relative(range.start), end: self.relative(range.end) };
            if !blocks[..count].contains(&block) {
                blocks[count] = block;
                count += 1;
            }
        }
        Some(blocks)
    }

    /// Blocks for an acknowledgement, after that of a duplicate that no other one has reported (RFC 2883 s4).
    pub(crate) fn blocks_and_duplicate(&mut self) -> Option<SackBlocks> {
        let blocks = self.blocks();
        let Some(number) = self.duplicate.take() else { return blocks };
        // Relative to the acknowledgement's number: modulo 2^32, as it lies below.
        let begin = number.wrapping_sub(self.next) as u32;
        let [first, second, _] = blocks.unwrap_or_default();
        Some([Block { begin, end: begin.wrapping_add(1) }, first, second])
    }

    /// Moves a number's range to the front of those that changed.
    fn remember(&mut self, number: u64) {
        let Some(range) = self.above.containing(number) else { return };
        // Replaces the old entry of the same range, or else the oldest.
        let place = self.recent.iter().position(|old| range.contains(old)).unwrap_or(BLOCKS - 1);
        self.recent.copy_within(0..place, 1);
        self.recent[0] = number;
    }

    fn relative(&self, number: u64) -> u32 {
        u32::try_from(number - self.next).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(begin: u32, end: u32) -> Block {
        Block { begin, end }
    }

    #[test]
    fn on_data__fills_holes_and_knows_duplicates() {
        let mut receiver = WindowReceiver::default();
        for (number, is_new, next) in
            [(0, true, 1), (2, true, 1), (2, false, 1), (3, true, 1), (1, true, 4), (0, false, 4)]
        {
            assert_eq!((receiver.on_data(number), receiver.next()), (is_new, next), "after {number}");
        }
        assert_eq!(receiver.delivered_packets(), 4);
        assert_eq!(receiver.blocks(), None);
    }

    #[test]
    fn missing_below__is_the_complement_of_arrivals() {
        let mut receiver = WindowReceiver::default();
        let missing = |receiver: &WindowReceiver, end| receiver.missing_below(end).collect::<Vec<_>>();
        assert_eq!(missing(&receiver, 5).first(), Some(&(0..5)));
        for number in [0, 3, 4, 8] {
            receiver.on_data(number);
        }
        assert_eq!(missing(&receiver, 10), [1..3, 5..8, 9..10]);
        assert_eq!(missing(&receiver, 9), [1..3, 5..8]);
        assert_eq!(missing(&receiver, 6), [1..3, 5..6]);
    }

    #[test]
    fn blocks__newest_first() {
        let mut receiver = WindowReceiver::default();
        for number in [2, 4, 6, 8] {
            receiver.on_data(number);
        }
        assert_eq!(receiver.blocks(), Some([block(8, 9), block(6, 7), block(4, 5)]));
        receiver.on_data(5); // joins 4 and 6
        assert_eq!(receiver.blocks(), Some([block(4, 7), block(8, 9), block(0, 0)]));
    }

    #[test]
    fn blocks_and_duplicate__reports_it_once_and_first() {
        let mut receiver = WindowReceiver::default();
        for number in [0, 1, 2, 5, 7, 1] {
            receiver.on_data(number);
        }
        // 1 is two below 3, the first one missing; 5 and 7 are 2 and 4 above.
        assert_eq!(receiver.blocks_and_duplicate(), Some([block(u32::MAX - 1, u32::MAX), block(4, 5), block(2, 3)]));
        assert_eq!(receiver.blocks_and_duplicate(), receiver.blocks());
        receiver.on_data(7);
        assert_eq!(receiver.blocks_and_duplicate(), Some([block(4, 5), block(4, 5), block(2, 3)]));
        let mut receiver = WindowReceiver::default();
        receiver.on_data(0);
        receiver.on_data(0);
        assert_eq!(receiver.blocks_and_duplicate(), Some([block(u32::MAX, 0), block(0, 0), block(0, 0)]));
    }
}
