//! Contents of packets; consecutive pieces are kept as one run.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a stream that one packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceAt {
    /// The stream.
    pub stream: u32,
    /// Bytes, at least one.
    pub length: u32,
    /// Offset of the first byte in the stream.
    pub offset: u64,
}

impl PieceAt {
    /// Its bytes in the stream.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(u64::from(self.length))
    }
}

/// Packets whose pieces have one length and follow each other; or numbers that were skipped, with a length of zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRun {
    /// The number of its first packet.
    pub(crate) first: u64,
    /// Piece in the first packet.
    pub(crate) piece: PieceAt,
}

/// Runs that are checked one by one before a binary search.
const NEAR_RUNS: usize = 8;
/// Piece of a number that was skipped.
pub(crate) const SKIPPED: PieceAt = PieceAt { stream: 0, length: 0, offset: 0 };

impl PacketRun {
    /// The piece of a packet, if it is one of this run.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> PieceAt {
        let before = u64::from(self.piece.length).saturating_mul(number - self.first);
        PieceAt { offset: self.piece.offset.saturating_add(before), ..self.piece }
    }
}

/// A place in the runs, which goes forward.
pub(crate) struct Runs<'a> {
    all: &'a VecDeque<PacketRun>,
    index: usize,
    run: PacketRun,
    /// First number of the next run.
    end: u64,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(all: &'a VecDeque<PacketRun>, number: u64) -> Self {
        let run = PacketRun { first: number, piece: SKIPPED };
        let mut runs = Self { all, index: 0, run, end: 0 };
        runs.search(number);
        runs
    }

    /// The run of a packet under way. Numbers go up.
    pub(crate) fn of(&mut self, number: u64) -> &PacketRun {
        if number >= self.end {
            self.find(number);
        }
        &self.run
    }

    fn find(&mut self, number: u64) {
        for _ in 0..NEAR_RUNS {
            self.go(self.index + 1);
            if number < self.end {
                return;
            }
        }
        self.search(number);
    }

    fn search(&mut self, number: u64) {
        self.go(self.all.partition_point(|run| run.first <= number).saturating_sub(1));
    }

    fn go(&mut self, index: usize) {
        if let Some(&run) = self.all.get(index) {
            (self.index, self.run) = (index, run);
        }
        self.end = self.all.get(index + 1).map_or(u64::MAX, |next| next.first);
    }
}
