//! Parcels: blocks that are requested, awaited and processed together.

use std::ops::Range;
use std::sync::Arc;

use fairwave_proto::ByteRanges;
use fairwave_proto::codec::VoidReason;

use crate::delta::base::CopiedRange;
use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::HASH_RECORD_BYTES;
use crate::format::holes::Holes;
use crate::format::packed::{may_be_frame, unpack};
use crate::format::streams::{CHUNKS, HASHES, TREE};
use crate::take::fetch::buffer::Buffer;
use crate::take::fetch::taken_file::TakenFile;
use crate::transfer::zeros::wait_for_zeros;

/// Adjacent blocks of the tree: one large one, or those of many small files. The network thread fills it, a worker
/// empties it.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) blocks: Range<u64>,
    /// Its range in the stream of the tree; nothing is requested there if only the hashes are.
    pub(crate) bytes: Range<u64>,
    /// One for each block.
    pub(crate) pieces: Vec<ParcelBlock>,
    /// Number of earlier fetches that failed the check.
    pub(crate) tries: u32,
    kind: ParcelKind,
    /// The stream of its bytes.
    stream: u32,
    data: Reassembly,
    /// Records of hashes, or lists of chunks.
    records: Reassembly,
    /// Zeros among its bytes that are not requested.
    holes: Holes,
    /// Bytes of older files at the blocks' places, which are not requested.
    copied: ByteRanges,
    /// Bytes that an earlier session left.
    recalled: ByteRanges,
    /// Bytes that will not arrive.
    absent: ByteRanges,
    /// Blocks that will not arrive.
    voids: Vec<(Range<u64>, VoidReason)>,
    void_bytes: Vec<(Range<u64>, VoidReason)>,
}

/// The part of its blocks that a parcel fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ParcelKind {
    /// Their bytes, with their hashes.
    #[default]
    Blocks,
    /// Only their hashes, to compare them with existing blocks.
    Hashes,
    /// Only the lists of their chunks, to find those that the file at their place has.
    Chunks,
}

/// Result of unpacking the blocks of a parcel.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// Blocks that the giver does not send in this way.
    pub(crate) refused: Vec<ParcelBlock>,
    /// Whether any was shorter than it is.
    pub(crate) is_shorter: bool,
}

/// A block of a parcel.
#[derive(Clone, Debug)]
pub(crate) struct ParcelBlock {
    pub(crate) item: Arc<TakenFile>,
    /// Its number in the stream of hashes.
    pub(crate) block: u64,
    /// Bytes of it that the older file at its place has.
    pub(crate) copies: Option<Arc<[CopiedRange]>>,
}

/// Bytes of a stream that arrive in any order.
#[derive(Debug)]
struct Reassembly {
    range: Range<u64>,
    /// Everything below has arrived.
    next: u64,
    /// And of what follows, this.
    beyond: ByteRanges,
    buffer: Buffer,
}

impl ParcelBlock {
    /// Its bytes in the stream of the tree.
    pub(crate) fn bytes(&self) -> Range<u64> {
        self.item.span.block_bytes(self.block)
    }

    /// Its number in its file.
    pub(crate) fn in_file(&self) -> u64 {
        self.block - self.item.span.blocks.start
    }

    /// Its offset in its file.
    pub(crate) fn offset(&self) -> u64 {
        self.bytes().start - self.item.span.bytes.start
    }

    /// Its holes, in the stream of the tree.
    fn holes(&self) -> impl Iterator<Item = Range<u64>> {
        let (bytes, start) = (self.bytes(), self.item.span.bytes.start);
        let holes = self.item.holes.within(&(bytes.start - start..bytes.end - start));
        holes.map(move |hole| hole.start + start..hole.end + start)
    }

    /// Bytes of it that the older file has, in the stream of the tree, and their offsets in that file.
    pub(crate) fn copied(&self) -> impl Iterator<Item = (Range<u64>, u64)> + use<'_> {
        let start = self.bytes().start;
        let copies = self.copies.as_deref().unwrap_or_default().iter();
        copies.map(move |copy| (start + copy.start..start + copy.start + copy.bytes, copy.from))
    }

    /// Bytes of it that the older file has.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copies.iter().flat_map(|copies| copies.iter()).map(|copy| copy.bytes).sum()
    }

    /// Bytes of it that are in holes.
    pub(crate) fn hole_bytes(&self) -> u64 {
        self.holes().map(|hole| hole.end - hole.start).sum()
    }
}

impl Parcel {
    /// Of pieces that follow each other: at least one.
    pub(crate) fn new(pieces: Vec<ParcelBlock>, tries: u32, kind: ParcelKind) -> Self {
        let ends = pieces.first().zip(pieces.last());
        let (blocks, bytes) = ends
            .map_or((0..0, 0..0), |(first, last)| (first.block..last.block + 1, first.bytes().start..last.bytes().end));
        let mut data =
            Reassembly::new(if kind == ParcelKind::Blocks { bytes.clone() } else { bytes.start..bytes.start });
        let mut holes = Holes::default();
        for hole in pieces.iter().flat_map(ParcelBlock::holes).filter(|_| kind == ParcelKind::Blocks) {
            data.skip(&hole);
            holes.push(hole);
        }
        let mut copied = ByteRanges::default();
        for (range, _) in pieces.iter().flat_map(ParcelBlock::copied) {
            data.skip(&range);
            copied.insert(range);
        }
        let unit = kind.record_bytes();
        let records = Reassembly::new(blocks.start * unit..blocks.end * unit);
        let (recalled, absent) = (ByteRanges::default(), ByteRanges::default());
        let (voids, void_bytes, stream) = (Vec::new(), Vec::new(), TREE);
        Self {
            blocks,
            bytes,
            pieces,
            tries,
            kind,
            stream,
            data,
            records,
            holes,
            copied,
            recalled,
            absent,
            voids,
            void_bytes,
        }
    }

    /// The part that it fetches.
    pub(crate) fn kind(&self) -> ParcelKind {
        self.kind
    }

    /// The stream of its bytes: that of the tree, or of packed blocks.
    pub(crate) fn stream(&self) -> u32 {
        self.stream
    }

    /// Requests its blocks in a stream of packed ones: no parts of them, but all.
    pub(crate) fn packed(mut self, stream: u32) -> Self {
        self.stream = stream;
        self
    }

    fn is_packed(&self) -> bool {
        self.stream != TREE
    }

    /// Whether no bytes of files are fetched, and only what is compared with the existing files.
    pub(crate) fn is_check(&self) -> bool {
        self.kind != ParcelKind::Blocks
    }

    /// Ranges to request in the stream of the tree.
    pub(crate) fn wanted_bytes(&self) -> Vec<Range<u64>> {
        self.data.missing()
    }

    /// Whether bytes of files are still missing.
    pub(crate) fn awaits_bytes(&self) -> bool {
        !self.data.is_filled()
    }

    /// Bytes of files that are held: those received, and those that an earlier session left.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held().bytes()
    }

    fn held(&self) -> ByteRanges {
        let mut held = self.data.dealt_with();
        let elsewhere = self.holes.iter().chain(self.absent.iter()).chain(self.copied.iter());
        elsewhere.for_each(|range| _ = held.remove(&range));
        held
    }

    /// The received parts of each piece: the offset of each in its block, and its bytes.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&ParcelBlock, Vec<(u64, &[u8])>)> {
        // A parcel may have thousands of pieces, and the peer chooses the number of parts: they are sorted once.
        let held = self.held();
        self.pieces.iter().map(move |piece| {
            let bytes = piece.bytes();
            let parts = held.overlapping(&bytes).filter(|_| !self.may_be_packed(&bytes, &held)).map(|part| {
                let part = part.start.max(bytes.start)..part.end.min(bytes.end);
                (part.start - bytes.start, self.data.part(&part))
            });
            (piece, parts.collect())
        })
    }

    /// Whether the received part of a block may be one of its frame.
    fn may_be_packed(&self, block: &Range<u64>, held: &ByteRanges) -> bool {
        let start = held.overlapping(block).next().filter(|part| part.start <= block.start);
        let start = start.map(|part| block.start..part.end.min(block.end).min(block.start + 4));
        self.is_packed() && start.is_none_or(|start| may_be_frame(self.data.part(&start)))
    }

    /// Expands the blocks that came packed, in `room`. Removes those that the giver refused, and returns them. A block
    /// that cannot be expanded is wrong, as its hash shows.
    pub(crate) fn expand(&mut self, room: &mut Vec<u8>) -> Expanded {
        let mut expanded = Expanded::default();
        if !self.is_packed() {
            return expanded;
        }
        let absent = std::mem::take(&mut self.absent);
        for piece in std::mem::take(&mut self.pieces) {
            let bytes = piece.bytes();
            let gap = absent.overlapping(&bytes).next();
            match gap {
                Some(gap) if gap.start <= bytes.start => {
                    expanded.refused.push(piece);
                    continue;
                }
                Some(gap) => {
                    let frame = bytes.start..gap.start;
                    expanded.is_shorter = true;
                    room.clear();
                    room.resize((bytes.end - bytes.start) as usize, 0);
                    wait_for_zeros(bytes.end - gap.start, gap.start - bytes.start);
                    if unpack(self.data.part(&frame), room) {
                        self.data.part_mut(&bytes).copy_from_slice(room);
                    }
                }
                None => {}
            }
            self.pieces.push(piece);
        }
        expanded
    }

    /// Requests its blocks in the stream of the tree after all: parts of them are here.
    pub(crate) fn unpacked(&mut self) {
        self.stream = TREE;
    }

    /// Adds a part of a piece that an earlier session left, at this offset in its block. It is not requested again, and
    /// is verified with the rest.
    pub(crate) fn recall(
        &mut self,
        piece: &ParcelBlock,
        start: u64,
        part: &[u8],
        buffer: impl FnOnce(usize) -> Buffer,
    ) {
        let bytes = piece.bytes();
        let start = bytes.start.saturating_add(start);
        let end = start.saturating_add(part.len() as u64);
        if end > bytes.end {
            return;
        }
        self.data.on_data(start, part, buffer);
        self.recalled.insert(start..end);
        self.holes.within(&(start..end)).for_each(|hole| _ = self.recalled.remove(&hole));
        self.copied.iter().for_each(|range| _ = self.recalled.remove(&range));
    }

    /// Bytes that an earlier session left.
    pub(crate) fn recalled_bytes(&self) -> u64 {
        self.recalled.bytes()
    }

    /// Bytes of a piece that an earlier session left.
    pub(crate) fn recalled_of(&self, piece: &ParcelBlock) -> u64 {
        let bytes = piece.bytes();
        let parts = self.recalled.overlapping(&bytes);
        parts.map(|part| part.end.min(bytes.end) - part.start.max(bytes.start)).sum()
    }

    /// Adds the zeros of its holes.
    pub(crate) fn fill_holes(&mut self) {
        for hole in self.holes.iter() {
            self.data.clear(&hole);
        }
    }

    /// Adds the bytes of a piece that the older file has, as `read` fills them from their offset in that. Those that
    /// cannot be read are wrong, as the block's hash will show.
    pub(crate) fn copy(
        &mut self,
        piece: &ParcelBlock,
        buffer: impl FnOnce(usize) -> Buffer,
        mut read: impl FnMut(u64, &mut [u8]),
    ) {
        self.data.fill(buffer);
        for (range, from) in piece.copied() {
            read(from, self.data.part_mut(&range));
        }
    }

    /// The stream of its records: of hashes, or of chunks.
    pub(crate) fn record_stream(&self) -> u32 {
        if self.kind == ParcelKind::Chunks { CHUNKS } else { HASHES }
    }

    /// The range to request in the stream of its records.
    pub(crate) fn wanted_records(&self) -> &Range<u64> {
        &self.records.range
    }

    /// Adds received bytes of files that belong here. `buffer` is called at the first of them.
    pub(crate) fn on_bytes(&mut self, offset: u64, bytes: &[u8], buffer: impl FnOnce(usize) -> Buffer) {
        self.data.on_data(offset, bytes, buffer);
    }

    /// Adds received records.
    pub(crate) fn on_records(&mut self, offset: u64, bytes: &[u8]) {
        self.records.on_data(offset, bytes, Buffer::new);
    }

    /// Bytes of files will not arrive.
    pub(crate) fn on_void_bytes(&mut self, range: &Range<u64>, reason: VoidReason) {
        for part in self.data.missing_within(range) {
            self.absent.insert(part);
        }
        if self.data.skip(range) && !self.is_packed() {
            self.void_bytes.push((range.clone(), reason));
        }
    }

    /// Records will not arrive.
    pub(crate) fn on_void_records(&mut self, range: &Range<u64>, reason: VoidReason) {
        // A list of chunks ends somewhere in its slot.
        if self.records.skip(range) && self.kind != ParcelKind::Chunks {
            self.voids.push((range.start / HASH_RECORD_BYTES..range.end.div_ceil(HASH_RECORD_BYTES), reason));
        }
    }

    /// Whether nothing more is missing.
    pub(crate) fn is_filled(&self) -> bool {
        self.data.is_filled() && self.records.is_filled()
    }

    /// The reason why a piece did not arrive, if it did not.
    pub(crate) fn void(&self, piece: &ParcelBlock) -> Option<VoidReason> {
        let overlaps = |range: &Range<u64>, other: &Range<u64>| range.start < other.end && other.start < range.end;
        let (block, bytes) = (piece.block..piece.block + 1, piece.bytes());
        let by_block = self.voids.iter().find(|(range, _)| overlaps(range, &block));
        let by_bytes = || self.void_bytes.iter().find(|(range, _)| overlaps(range, &bytes));
        by_block.or_else(by_bytes).map(|(_, reason)| *reason)
    }

    /// A piece's bytes.
    pub(crate) fn data(&self, piece: &ParcelBlock) -> &[u8] {
        self.data.part(&piece.bytes())
    }

    /// A piece's record of its hash, or the list of its chunks.
    pub(crate) fn record(&self, piece: &ParcelBlock) -> &[u8] {
        let unit = self.kind.record_bytes();
        self.records.part(&(piece.block * unit..(piece.block + 1) * unit))
    }

    /// The buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.data.buffer
    }
}

impl ParcelKind {
    /// Bytes of a block's record.
    fn record_bytes(self) -> u64 {
        if self == Self::Chunks { SLOT_BYTES } else { HASH_RECORD_BYTES }
    }
}

impl Reassembly {
    fn new(range: Range<u64>) -> Self {
        Self { next: range.start, range, beyond: ByteRanges::default(), buffer: Buffer::default() }
    }

    fn is_filled(&self) -> bool {
        self.next >= self.range.end
    }

    /// Ranges that have arrived or will not arrive.
    fn dealt_with(&self) -> ByteRanges {
        let mut ranges = self.beyond.clone();
        ranges.insert(self.range.start..self.next);
        ranges
    }

    /// Ranges still missing.
    fn missing(&self) -> Vec<Range<u64>> {
        self.missing_within(&self.range)
    }

    /// The missing parts of a range: its cost does not depend on the number of parts elsewhere.
    fn missing_within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let (mut at, end) = (range.start.max(self.next), range.end.min(self.range.end));
        let mut missing = Vec::new();
        if at >= end {
            return missing;
        }
        for there in self.beyond.overlapping(&(at..end)).chain(std::iter::once(end..end)) {
            if at < there.start {
                missing.push(at..there.start);
            }
            at = at.max(there.end);
        }
        missing
    }

    fn on_data(&mut self, offset: u64, bytes: &[u8], buffer: impl FnOnce(usize) -> Buffer) {
        let start = offset.max(self.range.start);
        let end = offset.saturating_add(bytes.len() as u64).min(self.range.end);
        if start >= end {
            return;
        }
        self.fill(buffer);
        let place = (start - self.range.start) as usize..(end - self.range.start) as usize;
        self.buffer[place].copy_from_slice(&bytes[(start - offset) as usize..(end - offset) as usize]);
        self.take(start..end);
    }

    fn fill(&mut self, buffer: impl FnOnce(usize) -> Buffer) {
        if self.buffer.is_empty() {
            self.buffer = buffer((self.range.end - self.range.start) as usize);
        }
    }

    /// A part has arrived, or will not arrive.
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

    /// A range will not arrive; returns whether it overlaps this.
    fn skip(&mut self, range: &Range<u64>) -> bool {
        let range = range.start.max(self.range.start)..range.end.min(self.range.end);
        let is_concerned = !range.is_empty();
        if is_concerned {
            self.take(range);
        }
        is_concerned
    }

    fn clear(&mut self, range: &Range<u64>) {
        // Without a buffer nothing arrived, and it is void.
        self.part_mut(range).fill(0);
    }

    fn part_mut(&mut self, range: &Range<u64>) -> &mut [u8] {
        let place = (range.start - self.range.start) as usize..(range.end - self.range.start) as usize;
        self.buffer.get_mut(place).unwrap_or_default()
    }

    fn part(&self, range: &Range<u64>) -> &[u8] {
        let start = range.start.saturating_sub(self.range.start) as usize;
        self.buffer.get(start..start + (range.end - range.start) as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::blocks::Layout;
    use crate::format::manifest::{FileIdentity, Meta};
    use crate::format::names::RelativePath;
    use crate::take::disk::tree::Old;

    /// Two files of one block each, the second with a hole from its 10th byte to its 20th.
    fn parcel() -> Parcel {
        let mut layout = Layout::default();
        let mut pieces = Vec::new();
        for (name, bytes) in [("a", 50), ("b", 100)] {
            let span = layout.push(bytes).unwrap();
            let path = RelativePath::new(name.as_bytes()).unwrap();
            let item = TakenFile::new(path, span.clone(), Meta::default(), FileIdentity([1; 16]), Old::Nothing);
            let mut holes = Holes::default();
            if name == "b" {
                holes.push(10..20);
            }
            pieces.push(ParcelBlock { item: Arc::new(item.with_holes(holes)), block: span.blocks.start, copies: None });
        }
        Parcel::new(pieces, 0, ParcelKind::Blocks)
    }

    fn parts(parcel: &Parcel, piece: usize) -> Vec<(u64, Vec<u8>)> {
        let (_, parts) = parcel.parts().nth(piece).unwrap();
        parts.into_iter().map(|(start, bytes)| (start, bytes.to_vec())).collect()
    }

    #[test]
    fn recall__is_not_asked_for_again() {
        let mut parcel = parcel();
        assert_eq!(parcel.wanted_bytes(), [0..60, 70..150]);
        let (one, other) = (parcel.pieces[0].clone(), parcel.pieces[1].clone());
        parcel.recall(&one, 5, &[1; 10], Buffer::new);
        // One that overlaps it, one around the hole, and one that is longer than its block.
        parcel.recall(&one, 10, &[2; 10], Buffer::new);
        parcel.recall(&other, 5, &[3; 30], Buffer::new);
        parcel.recall(&other, 95, &[4; 6], Buffer::new);
        assert_eq!(parcel.wanted_bytes(), [0..5, 20..55, 85..150]);
        assert_eq!((parcel.recalled_bytes(), parcel.held_bytes()), (35, 35));
        assert_eq!((parcel.recalled_of(&one), parcel.recalled_of(&other)), (15, 20));
        parcel.on_bytes(0, &[5; 5], Buffer::new);
        // It ends in bytes that had arrived.
        parcel.on_bytes(48, &[6; 7], Buffer::new);
        assert_eq!(parcel.held_bytes(), 47);
        assert_eq!(parts(&parcel, 0), [(0, [vec![5; 5], vec![1; 5], vec![2; 10]].concat()), (48, vec![6; 2])]);
        assert_eq!(parts(&parcel, 1), [(0, [vec![6; 5], vec![3; 5]].concat()), (20, vec![3; 15])]);
    }

    #[test]
    fn held__is_what_came_and_not_what_is_void() {
        let mut parcel = parcel();
        parcel.on_bytes(0, &[1; 30], Buffer::new);
        parcel.on_void_bytes(&(20..80), VoidReason::Shrank);
        assert_eq!(parcel.held_bytes(), 30);
        assert!(parcel.wanted_bytes().into_iter().eq(std::iter::once(80..150)));
        parcel.on_bytes(80, &[2; 70], Buffer::new);
        assert_eq!((parcel.held_bytes(), parcel.awaits_bytes(), parcel.is_filled()), (100, false, false));
        assert_eq!(parts(&parcel, 0), [(0, vec![1; 30])]);
        assert_eq!(parts(&parcel, 1), [(30, vec![2; 70])]);
    }

    /// Files of this size, bytes.
    fn parcel_of(files: usize, bytes: u64) -> Parcel {
        let mut layout = Layout::default();
        let pieces = (0..files).map(|number| {
            let span = layout.push(bytes).unwrap();
            let path = RelativePath::new(number.to_string().as_bytes()).unwrap();
            let item = TakenFile::new(path, span.clone(), Meta::default(), FileIdentity([1; 16]), Old::Nothing);
            ParcelBlock { item: Arc::new(item), block: span.blocks.start, copies: None }
        });
        Parcel::new(pieces.collect(), 0, ParcelKind::Blocks)
    }

    /// Each void would look at all the gaps before it: two hundred thousand times a hundred thousand.
    #[test]
    fn on_void_bytes__of_single_bytes_without_number_costs_each_its_own() {
        let mut parcel = parcel_of(1, 400_000);
        for byte in (1..400_000).step_by(2) {
            parcel.on_void_bytes(&(byte..byte + 1), VoidReason::Shrank);
        }
        assert_eq!((parcel.wanted_bytes().len(), parcel.held_bytes()), (200_000, 0));
    }

    /// Each piece would sort out all parts of the parcel: four thousand times a hundred thousand.
    #[test]
    fn parts__of_thousands_of_pieces_are_sorted_out_once() {
        let mut parcel = parcel_of(4000, 250);
        for byte in (1..1_000_000).step_by(10) {
            parcel.on_bytes(byte, &[7; 5], Buffer::new);
        }
        let parts = parcel.parts().map(|(_, parts)| parts.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
        assert!(parts.eq(std::iter::repeat_n(125, 4000)));
    }
}
