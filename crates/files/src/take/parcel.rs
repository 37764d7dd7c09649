//! What is asked for, waited for and worked on in one piece.

use std::ops::Range;
use std::sync::Arc;

use fairwave_proto::ByteRanges;
use fairwave_proto::codec::VoidReason;

use super::buffer::Buffer;
use super::item::Item;
use crate::format::blocks::HASH_RECORD_BYTES;
use crate::format::holes::Holes;

/// Blocks that follow each other in the tree: one large one, or those of many small files. The network thread fills it, a
/// worker empties it.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) blocks: Range<u64>,
    /// In the stream of the tree; nothing is asked for there if only the hashes are.
    pub(crate) bytes: Range<u64>,
    /// One for each block.
    pub(crate) pieces: Vec<Piece>,
    /// How often it came before, and was wrong.
    pub(crate) tries: u32,
    is_check: bool,
    data: Filling,
    records: Filling,
    /// What of its bytes is zeros and is not asked for.
    holes: Holes,
    /// Blocks that will not come.
    voids: Vec<(Range<u64>, VoidReason)>,
    void_bytes: Vec<(Range<u64>, VoidReason)>,
}

/// A block of a parcel.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) item: Arc<Item>,
    /// Its number in the stream of hashes.
    pub(crate) block: u64,
}

/// Bytes of a stream that come in any order.
#[derive(Debug)]
struct Filling {
    range: Range<u64>,
    /// Everything below is there.
    next: u64,
    /// And of what follows, this.
    beyond: ByteRanges,
    buffer: Buffer,
}

impl Piece {
    /// Its bytes in the stream of the tree.
    pub(crate) fn bytes(&self) -> Range<u64> {
        self.item.span.block_bytes(self.block)
    }

    /// Its number in its file.
    pub(crate) fn in_file(&self) -> u64 {
        self.block - self.item.span.blocks.start
    }

    /// Where it begins in its file.
    pub(crate) fn offset(&self) -> u64 {
        self.bytes().start - self.item.span.bytes.start
    }

    /// What of it is in holes, in the stream of the tree.
    fn holes(&self) -> impl Iterator<Item = Range<u64>> {
        let (bytes, start) = (self.bytes(), self.item.span.bytes.start);
        let holes = self.item.holes.within(&(bytes.start - start..bytes.end - start));
        holes.map(move |hole| hole.start + start..hole.end + start)
    }

    /// How much of it is in holes.
    pub(crate) fn hole_bytes(&self) -> u64 {
        self.holes().map(|hole| hole.end - hole.start).sum()
    }
}

impl Parcel {
    /// Of pieces that follow each other: at least one.
    pub(crate) fn new(pieces: Vec<Piece>, tries: u32, is_check: bool) -> Self {
        let ends = pieces.first().zip(pieces.last());
        let (blocks, bytes) = ends
            .map_or((0..0, 0..0), |(first, last)| (first.block..last.block + 1, first.bytes().start..last.bytes().end));
        let mut data = Filling::new(if is_check { bytes.start..bytes.start } else { bytes.clone() });
        let mut holes = Holes::default();
        for hole in pieces.iter().flat_map(Piece::holes).filter(|_| !is_check) {
            data.skip(&hole);
            holes.push(hole);
        }
        let records = Filling::new(blocks.start * HASH_RECORD_BYTES..blocks.end * HASH_RECORD_BYTES);
        let (voids, void_bytes) = (Vec::new(), Vec::new());
        Self { blocks, bytes, pieces, tries, is_check, data, records, holes, voids, void_bytes }
    }

    /// Whether only the hashes come, to compare them with what is there.
    pub(crate) fn is_check(&self) -> bool {
        self.is_check
    }

    /// What to ask for in the stream of the tree.
    pub(crate) fn wanted_bytes(&self) -> Vec<Range<u64>> {
        self.holes.outside(&self.data.range)
    }

    /// How much that is.
    pub(crate) fn wanted_length(&self) -> u64 {
        self.data.range.end - self.data.range.start - self.holes.bytes()
    }

    /// Puts the zeros to what came.
    pub(crate) fn fill_holes(&mut self) {
        for hole in self.holes.iter() {
            self.data.clear(&hole);
        }
    }

    /// What to ask for in the stream of hashes.
    pub(crate) fn wanted_records(&self) -> &Range<u64> {
        &self.records.range
    }

    /// Bytes of files came, of which those are taken that belong here. `buffer` gives one when the first of them comes.
    pub(crate) fn on_bytes(&mut self, offset: u64, bytes: &[u8], buffer: impl FnOnce(usize) -> Buffer) {
        self.data.on_data(offset, bytes, buffer);
    }

    /// Records of hashes came.
    pub(crate) fn on_records(&mut self, offset: u64, bytes: &[u8]) {
        self.records.on_data(offset, bytes, Buffer::new);
    }

    /// Bytes of files will not come.
    pub(crate) fn on_void_bytes(&mut self, range: &Range<u64>, reason: VoidReason) {
        if self.data.skip(range) {
            self.void_bytes.push((range.clone(), reason));
        }
    }

    /// Records of hashes will not come.
    pub(crate) fn on_void_records(&mut self, range: &Range<u64>, reason: VoidReason) {
        if self.records.skip(range) {
            self.voids.push((range.start / HASH_RECORD_BYTES..range.end.div_ceil(HASH_RECORD_BYTES), reason));
        }
    }

    /// Whether nothing more comes.
    pub(crate) fn is_filled(&self) -> bool {
        self.data.is_filled() && self.records.is_filled()
    }

    /// Why a piece did not come, if it did not.
    pub(crate) fn void(&self, piece: &Piece) -> Option<VoidReason> {
        let overlaps = |range: &Range<u64>, other: &Range<u64>| range.start < other.end && other.start < range.end;
        let (block, bytes) = (piece.block..piece.block + 1, piece.bytes());
        let by_block = self.voids.iter().find(|(range, _)| overlaps(range, &block));
        let by_bytes = || self.void_bytes.iter().find(|(range, _)| overlaps(range, &bytes));
        by_block.or_else(by_bytes).map(|(_, reason)| *reason)
    }

    /// A piece's bytes.
    pub(crate) fn data(&self, piece: &Piece) -> &[u8] {
        self.data.part(&piece.bytes())
    }

    /// A piece's record of its hash.
    pub(crate) fn record(&self, piece: &Piece) -> &[u8] {
        self.records.part(&(piece.block * HASH_RECORD_BYTES..(piece.block + 1) * HASH_RECORD_BYTES))
    }

    /// The buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.data.buffer
    }
}

impl Filling {
    fn new(range: Range<u64>) -> Self {
        Self { next: range.start, range, beyond: ByteRanges::default(), buffer: Buffer::default() }
    }

    fn is_filled(&self) -> bool {
        self.next >= self.range.end
    }

    fn on_data(&mut self, offset: u64, bytes: &[u8], buffer: impl FnOnce(usize) -> Buffer) {
        let start = offset.max(self.range.start);
        let end = offset.saturating_add(bytes.len() as u64).min(self.range.end);
        if start >= end {
            return;
        }
        if self.buffer.is_empty() {
            self.buffer = buffer((self.range.end - self.range.start) as usize);
        }
        let place = (start - self.range.start) as usize..(end - self.range.start) as usize;
        self.buffer[place].copy_from_slice(&bytes[(start - offset) as usize..(end - offset) as usize]);
        self.take(start..end);
    }

    /// A part is there, or will not come.
    fn take(&mut self, range: Range<u64>) {
        if range.start > self.next {
            self.beyond.insert(range);
            return;
        }
        self.next = self.next.max(range.end);
        while let Some(first) = self.beyond.first().filter(|first| first.start <= self.next) {
            self.next = self.next.max(first.end);
            self.beyond.remove(&first);
        }
    }

    /// A range will not come: whether that concerns this.
    fn skip(&mut self, range: &Range<u64>) -> bool {
        let range = range.start.max(self.range.start)..range.end.min(self.range.end);
        let is_concerned = !range.is_empty();
        if is_concerned {
            self.take(range);
        }
        is_concerned
    }

    fn clear(&mut self, range: &Range<u64>) {
        let place = (range.start - self.range.start) as usize..(range.end - self.range.start) as usize;
        // Without a buffer nothing came, and it is void.
        self.buffer.get_mut(place).unwrap_or_default().fill(0);
    }

    fn part(&self, range: &Range<u64>) -> &[u8] {
        let start = range.start.saturating_sub(self.range.start) as usize;
        self.buffer.get(start..start + (range.end - range.start) as usize).unwrap_or_default()
    }
}
