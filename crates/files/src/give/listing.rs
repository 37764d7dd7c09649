//! Entries that a walk has found so far, and their positions in the manifest's stream and in the tree's.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use fairwave_host::Lock;
use fairwave_proto::ByteRanges;

use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::{FileSpan, HASH_RECORD_BYTES, Layout, blocks_of};
use crate::format::holes::Holes;
use crate::format::manifest::{FileIdentity, SegmentEntries, TreeEntry};
use crate::format::segments::{LENGTH_BYTES, MAC_BYTES, SegmentWriter, parts_of};
use crate::format::short_hash::short;
use crate::transfer::progress::GivenFile;

/// Max size of a manifest, bytes.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 1 << 30;
/// Max bytes of all files; far below the max offset.
const MAX_TREE_BYTES: u64 = 1 << 60;
/// Max files that are read at once: a thousand take some milliseconds.
const MAX_TOGETHER: usize = 1024;
/// Max bytes of small files that are read at once: of a tree of which little has changed, no more than this is read for
/// each file that has.
pub(crate) const TOGETHER_BYTES: u64 = 64 << 10;

/// Memory of a part per file, bytes,
const FILE_BYTES: usize = 24;
/// and for each hole,
const HOLE_BYTES: usize = 16;
/// and of a part itself.
const PART_BYTES: usize = 384;
/// A part has at least this many bytes of entries,
const MIN_PART_BYTES: usize = 4 << 10;
/// and ends with a file whose identity has none of these bits: one of 64. Walks that differ in some files then make the
/// same parts of the others.
const ENDS_PART: u8 = 63;

/// A manifest in the making.
pub(crate) struct Draft {
    writer: SegmentWriter,
    shared: Arc<SharedParts>,
    files: Vec<FoundFile>,
    /// Of the next file.
    holes: Holes,
    files_count: u64,
    tree_bytes: u64,
    stream_bytes: u64,
}

/// A file in a segment: its length, its holes, and the start of its entry.
struct FoundFile {
    bytes: u64,
    holes: Holes,
    entry: u32,
}

impl Draft {
    /// With the session's secret for the manifest, and the parts of other sessions' manifests.
    pub(crate) fn new(secret: [u8; 32], shared: Arc<SharedParts>) -> Self {
        let writer = SegmentWriter::new(secret);
        let holes = Holes::default();
        Self { writer, shared, files: Vec::new(), holes, files_count: 0, tree_bytes: 0, stream_bytes: 0 }
    }

    /// Adds an entry: the parts that it completes, mostly none.
    pub(crate) fn add(&mut self, entry: &TreeEntry<'_>) -> [Option<ManifestPart>; 2] {
        let (mut bytes, mut ends) = (None, false);
        if let TreeEntry::File { path, bytes: length, identity, .. } = *entry {
            if self.tree_bytes.checked_add(length).is_none_or(|sum| sum > MAX_TREE_BYTES) {
                return self.add(&TreeEntry::Failed {
                    path,
                    reason: "the files before and this one have more than 2^60 bytes",
                });
            }
            (bytes, ends) = (Some(length), identity.0[0] & ENDS_PART == 0);
        }
        let added = self.writer.add(|writer| entry.write(writer)).expect("an entry has less than 64 KiB");
        let full = added.full.map(|segment| self.part(&segment));
        if let TreeEntry::Holes { pairs } = *entry {
            self.holes.read_pairs(pairs).expect("they were written here");
            return [full, None];
        }
        let holes = std::mem::take(&mut self.holes);
        if let Some(bytes) = bytes {
            self.files.push(FoundFile { bytes, holes, entry: added.offset as u32 });
            self.files_count += 1;
            self.tree_bytes += bytes;
        }
        [full, if ends && self.writer.body_bytes() >= MIN_PART_BYTES { self.finish() } else { None }]
    }

    /// Adds the last entry.
    pub(crate) fn end(&mut self) -> [Option<ManifestPart>; 2] {
        self.add(&TreeEntry::End { files: self.files_count, bytes: self.tree_bytes })
    }

    /// Entries added since the last part, if any.
    pub(crate) fn finish(&mut self) -> Option<ManifestPart> {
        let segment = self.writer.finish()?;
        Some(self.part(&segment))
    }

    /// Bytes of the parts so far.
    pub(crate) fn stream_bytes(&self) -> u64 {
        self.stream_bytes
    }

    /// Whether nothing more should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.stream_bytes > MAX_MANIFEST_BYTES
    }

    fn part(&mut self, segment: &[u8]) -> ManifestPart {
        self.stream_bytes += segment.len() as u64;
        let (body, proof) = parts_of(segment);
        let files = std::mem::take(&mut self.files);
        ManifestPart { listed: self.shared.share(body, || ListedPart::new(body, files)), proof }
    }
}

/// Parts of the manifests of all sessions of a share: those that list the same hold the same.
#[derive(Default)]
pub(crate) struct SharedParts(Lock<KnownParts>);

#[derive(Default)]
struct KnownParts {
    /// By their hashes.
    parts: HashMap<[u8; 32], Weak<ListedPart>>,
    /// With more, those that nobody holds are removed.
    sweep_at: usize,
}

impl SharedParts {
    fn share(&self, body: &[u8], make: impl FnOnce() -> ListedPart) -> Arc<ListedPart> {
        let hash = blake3::hash(body).into();
        let mut known = self.0.lock();
        if let Some(part) = known.parts.get(&hash).and_then(Weak::upgrade) {
            return part;
        }
        if known.parts.len() >= known.sweep_at {
            known.parts.retain(|_, part| part.strong_count() > 0);
            known.sweep_at = 2 * known.parts.len().max(MAX_TOGETHER);
        }
        let part = Arc::new(make());
        known.parts.insert(hash, Arc::downgrade(&part));
        part
    }
}

/// Some entries of a manifest that follow each other, and the positions of the files in it, from its first byte, block
/// and file on.
///
/// Files are read in *batches*: whole blocks that follow each other, either one block of a file that has several, or
/// the only blocks of many files. A batch does not reach beyond its part.
pub(crate) struct ListedPart {
    /// The version and the entries.
    body: Box<[u8]>,
    layout: Layout,
    /// Position of each file's entry in the body.
    entries: Box<[u32]>,
    /// Ends of the batches' files: of one that has several blocks, or of several that have at most one each.
    runs: Box<[u32]>,
    holes: Holes,
    /// Files that are only a hole.
    hollow_files: u64,
}

impl ListedPart {
    fn new(body: &[u8], files: Vec<FoundFile>) -> Self {
        let (mut layout, mut holes, mut hollow_files) = (Layout::default(), Holes::default(), 0);
        let (mut entries, mut runs) = (Vec::with_capacity(files.len()), Vec::<u32>::new());
        let mut together = None;
        for FoundFile { bytes, holes: of_file, entry } in files {
            let span = layout.push(bytes).expect("the draft bounds the sum");
            of_file.iter().for_each(|hole| holes.push(span.bytes.start + hole.start..span.bytes.start + hole.end));
            hollow_files += u64::from(bytes > 0 && of_file.bytes() == bytes);
            entries.push(entry);
            let is_small = blocks_of(bytes) <= 1;
            let (files, sum) = together.filter(|_| is_small).unwrap_or((0, 0));
            let fits = files > 0 && files < MAX_TOGETHER && sum + bytes <= TOGETHER_BYTES;
            // A part of 64 KiB has fewer files than 2^16.
            let end = span.file as u32 + 1;
            match runs.last_mut().filter(|_| fits) {
                Some(last) => *last = end,
                None => runs.push(end),
            }
            let begun = if fits { (files + 1, sum + bytes) } else { (1, bytes) };
            together = is_small.then_some(begun);
        }
        layout.shrink();
        holes.shrink();
        Self { body: body.into(), layout, entries: entries.into(), runs: runs.into(), holes, hollow_files }
    }
}

/// A part of a manifest, with the session's proof: ready to be sent.
#[derive(Clone)]
pub(crate) struct ManifestPart {
    listed: Arc<ListedPart>,
    proof: [u8; MAC_BYTES],
}

impl ManifestPart {
    /// Memory of the listing, bytes: its entries, and the position of each file and hole.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let ListedPart { body, layout, runs, holes, .. } = &*self.listed;
        let positions = FILE_BYTES * layout.files() + HOLE_BYTES * holes.len() + size_of_val(&**runs);
        (PART_BYTES + body.len() + positions) as u64
    }

    /// The number of its files that are only a hole, and the bytes of all files that are in holes.
    pub(crate) fn holes(&self) -> (u64, u64) {
        (self.listed.hollow_files, self.listed.holes.bytes())
    }

    /// Its bytes in the stream.
    pub(crate) fn stream_bytes(&self) -> u64 {
        (LENGTH_BYTES + self.listed.body.len() + MAC_BYTES) as u64
    }

    /// Hands out a range of its bytes in the stream.
    pub(crate) fn lend(&self, range: Range<u64>, take: &mut dyn FnMut(&[u8])) {
        let length = (self.listed.body.len() as u32).to_be_bytes();
        let mut start = 0;
        for piece in [&length[..], &self.listed.body, &self.proof] {
            let end = start + piece.len() as u64;
            let (from, to) = (range.start.clamp(start, end), range.end.clamp(start, end));
            if from < to {
                take(&piece[(from - start) as usize..(to - start) as usize]);
            }
            start = end;
        }
    }
}

/// Entries that were found and added.
///
/// Memory, which sessions that list the same share: the manifest, at most 24 bytes a file, and 16 a hole.
#[derive(Default)]
pub(crate) struct Listing {
    parts: Vec<PlacedPart>,
    /// Start of the next part.
    end: Position,
    is_complete: bool,
}

/// A part, and where it starts.
struct PlacedPart {
    listed: Arc<ListedPart>,
    start: Position,
}

/// A position in all streams: numbers of files, blocks and bytes before it.
#[derive(Clone, Copy, Default)]
struct Position {
    files: usize,
    blocks: u64,
    bytes: u64,
    stream_bytes: u64,
}

/// The number of a batch's first block, and whether it is packed.
pub(crate) type BatchKey = (u64, bool);

/// A range to read at once.
#[derive(Clone)]
pub(crate) struct BatchPlan {
    /// Its bytes in the stream of the tree.
    pub(crate) bytes: Range<u64>,
    /// Its blocks.
    pub(crate) blocks: Range<u64>,
    /// Its files.
    pub(crate) files: Range<usize>,
    /// Offset of its first byte in its first file.
    pub(crate) offset: u64,
    /// Holes in the stream of the tree that it overlaps, or that start at its end.
    pub(crate) holes: Holes,
    part: Arc<ListedPart>,
    entry: usize,
}

/// A file, as the manifest has it.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a> {
    /// Its path.
    pub(crate) path: &'a [u8],
    /// Its length.
    pub(crate) bytes: u64,
    /// Time of its last change.
    pub(crate) mtime: (i64, u32),
    /// Identity of the file.
    pub(crate) identity: FileIdentity,
}

impl Listing {
    /// Adds what a draft has completed; returns where it ends in the stream.
    pub(crate) fn push(&mut self, part: &ManifestPart) -> u64 {
        let (listed, start) = (Arc::clone(&part.listed), self.end);
        self.end = Position {
            files: start.files + listed.layout.files(),
            blocks: start.blocks + listed.layout.blocks(),
            bytes: start.bytes + listed.layout.bytes(),
            stream_bytes: start.stream_bytes + part.stream_bytes(),
        };
        self.parts.push(PlacedPart { listed, start });
        self.end.stream_bytes
    }

    /// There is no more.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Whether the listing has ended.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Bytes of a stream so far.
    pub(crate) fn stream_bytes(&self, stream: u32) -> u64 {
        match stream {
            crate::format::streams::MANIFEST => self.end.stream_bytes,
            crate::format::streams::TREE => self.end.bytes,
            crate::format::streams::HASHES => self.end.blocks * HASH_RECORD_BYTES,
            crate::format::streams::CHUNKS => self.end.blocks * SLOT_BYTES,
            _ if crate::format::streams::is_packed(stream) => self.end.bytes,
            _ => 0,
        }
    }

    /// The batch with this byte of the stream of the tree.
    pub(crate) fn batch_at(&self, offset: u64) -> Option<BatchPlan> {
        let placed = self.part_with(|end| end.bytes <= offset)?;
        let offset = offset - placed.start.bytes;
        let span = placed.listed.layout.file_at(offset)?;
        placed.batch(&span, span.block_at(offset))
    }

    /// The batch with this block.
    pub(crate) fn batch_of_block(&self, block: u64) -> Option<BatchPlan> {
        let placed = self.part_with(|end| end.blocks <= block)?;
        let block = block - placed.start.blocks;
        placed.batch(&placed.listed.layout.file_of_block(block)?, block)
    }

    /// The number of files whose last byte is among these given bytes of the tree. Empty files are never requested:
    /// they count if all others were given.
    pub(crate) fn files_given(&self, given: &ByteRanges) -> u64 {
        let (mut files, mut without_data, mut is_all) = (0, 0, true);
        let mut ranges = given.iter().peekable();
        for PlacedPart { listed, start } in &self.parts {
            for span in (0..listed.layout.files()).map_while(|file| listed.layout.span(file)) {
                let end = listed.holes.data_end(&span.bytes);
                if end == span.bytes.start {
                    without_data += 1;
                    continue;
                }
                let end = start.bytes + end;
                while ranges.next_if(|range| range.end < end).is_some() {}
                let is_given = ranges.peek().is_some_and(|range| range.start < end);
                files += u64::from(is_given);
                is_all &= is_given;
            }
        }
        if is_all { files + without_data } else { files }
    }

    /// Bytes of each file that were given to the holder of these bytes of the tree: of at most `most` files, and `None`
    /// if there are more.
    pub(crate) fn shares_given(&self, given: &ByteRanges, most: usize) -> Option<Vec<GivenFile>> {
        let mut files: Vec<(usize, GivenFile)> = Vec::new();
        for range in given.iter() {
            let mut at = range.start;
            while at < range.end {
                let Some(PlacedPart { listed, start }) = self.part_with(|end| end.bytes <= at) else { break };
                let Some(span) = listed.layout.file_at(at - start.bytes) else { break };
                let (file, end) = (start.files + span.file, range.end.min(start.bytes + span.bytes.end));
                if let Some((_, last)) = files.last_mut().filter(|(other, _)| *other == file) {
                    last.given_bytes += end - at;
                } else if files.len() == most {
                    return None;
                } else {
                    let path = listed.files_from(span.file).next().map_or(&[][..], |listed| listed.path);
                    let name = short(blake3::Hasher::new().update(path));
                    let hollow: u64 = listed.holes.within(&span.bytes).map(|hole| hole.end - hole.start).sum();
                    let data_bytes = span.bytes.end - span.bytes.start - hollow;
                    files.push((file, GivenFile { name, given_bytes: end - at, data_bytes }));
                }
                at = end;
            }
        }
        Some(files.into_iter().map(|(_, file)| file).collect())
    }

    /// The first part of whose end this is not so.
    fn part_with(&self, is_before: impl Fn(&Position) -> bool) -> Option<&PlacedPart> {
        let after = self.parts.partition_point(|part| is_before(&part.start));
        let last = self.parts.get(after.checked_sub(1)?)?;
        (!is_before(&self.end)).then_some(last)
    }
}

impl PlacedPart {
    /// The batch with a block of a file, all counted from the part's start.
    fn batch(&self, span: &FileSpan, block: u64) -> Option<BatchPlan> {
        let ListedPart { layout, runs, holes, .. } = &*self.listed;
        let index = runs.partition_point(|end| *end as usize <= span.file);
        let first = index.checked_sub(1).and_then(|before| runs.get(before)).map_or(0, |end| *end as usize);
        let files = first..*runs.get(index)? as usize;
        let (start, end) = (layout.span(first)?, layout.span(files.end - 1)?);
        let (mut bytes, mut blocks) = (start.bytes.start..end.bytes.end, start.blocks.start..end.blocks.end);
        if files.len() == 1 && blocks.end - blocks.start > 1 {
            (bytes, blocks) = (span.block_bytes(block), block..block + 1);
        }
        let mut around = Holes::default();
        for hole in holes.around(&bytes).iter() {
            around.push(self.start.bytes + hole.start..self.start.bytes + hole.end);
        }
        Some(BatchPlan {
            offset: bytes.start - start.bytes.start,
            bytes: self.start.bytes + bytes.start..self.start.bytes + bytes.end,
            blocks: self.start.blocks + blocks.start..self.start.blocks + blocks.end,
            files: self.start.files + files.start..self.start.files + files.end,
            holes: around,
            part: Arc::clone(&self.listed),
            entry: first,
        })
    }
}

impl ListedPart {
    /// Its files from one on, in order.
    fn files_from(&self, file: usize) -> impl Iterator<Item = Listed<'_>> {
        let entry = self.entries.get(file).map_or(usize::MAX, |entry| *entry as usize);
        let entries = SegmentEntries::new(self.body.get(entry..).unwrap_or_default()).map_while(Result::ok);
        entries.filter_map(|entry| match entry {
            TreeEntry::File { path, bytes, meta, identity } => {
                Some(Listed { path, bytes, mtime: (meta.mtime_s, meta.mtime_ns), identity })
            }
            _ => None,
        })
    }
}

impl BatchPlan {
    /// Its files, in order.
    pub(crate) fn listed(&self) -> impl Iterator<Item = Listed<'_>> {
        self.part.files_from(self.entry).take(self.files.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::blocks::BLOCK_BYTES;
    use crate::format::streams::{HASHES, MANIFEST, TREE};

    fn file(path: &[u8], bytes: u64) -> TreeEntry<'_> {
        let identity = FileIdentity([path.len() as u8; 16]);
        TreeEntry::File { path, bytes, meta: crate::format::manifest::Meta::default(), identity }
    }

    /// A listing of files of these lengths, reported after each of `told` files and when a segment is full.
    fn listing(lengths: &[u64], told: usize) -> Listing {
        let (mut listing, mut draft) = (Listing::default(), Draft::new([1; 32], Arc::default()));
        for (index, length) in lengths.iter().enumerate() {
            let path = format!("data/{index}");
            let directory =
                TreeEntry::Directory { path: path.as_bytes(), meta: crate::format::manifest::Meta::default() };
            let parts = [draft.add(&directory), draft.add(&file(path.as_bytes(), *length))];
            let part = if index % told == told - 1 { draft.finish() } else { None };
            parts.into_iter().flatten().chain([part]).flatten().for_each(|part| _ = listing.push(&part));
        }
        let last = [draft.end(), [draft.finish(), None]];
        last.into_iter().flatten().flatten().for_each(|part| _ = listing.push(&part));
        listing
    }

    #[test]
    fn files_given__are_those_whose_last_byte_was() {
        let listing = listing(&[10, 0, 20, 0, 30], 2);
        let of = |ranges: &[(u64, u64)]| {
            let mut given = ByteRanges::default();
            for (start, end) in ranges {
                given.insert(*start..*end);
            }
            listing.files_given(&given)
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(0, 9)]), 0);
        assert_eq!(of(&[(0, 10)]), 1);
        assert_eq!(of(&[(5, 11), (29, 31)]), 2);
        // The empty ones as well.
        assert_eq!(of(&[(0, 60)]), 5);
        assert_eq!(of(&[(9, 10), (29, 30), (59, 60)]), 5);
    }

    #[test]
    fn batch__small_files_together_and_large_ones_by_blocks() {
        let lengths = [10, 0, 20, BLOCK_BYTES + 1, 5, TOGETHER_BYTES - 5, 1];
        let listing = listing(&lengths, 100);
        let batch = listing.batch_at(9).unwrap();
        assert_eq!((batch.bytes.clone(), batch.blocks.clone(), batch.files.clone()), (0..30, 0..2, 0..3));
        assert_eq!(batch.listed().map(|file| file.bytes).collect::<Vec<_>>(), [10, 0, 20]);
        let last = listing.batch_at(30 + BLOCK_BYTES).unwrap();
        assert_eq!(
            (last.bytes.clone(), last.blocks.clone(), last.offset),
            (30 + BLOCK_BYTES..31 + BLOCK_BYTES, 3..4, BLOCK_BYTES)
        );
        assert_eq!(last.listed().map(|file| file.path).collect::<Vec<_>>(), [b"data/3"]);
        // 5 bytes and the rest of 64 KiB go together, one more does not.
        let [full, one] = [4, 6].map(|block| listing.batch_of_block(block).unwrap());
        assert_eq!((full.files, full.blocks, one.files, one.blocks), (4..6, 4..6, 6..7, 6..7));
        assert_eq!(listing.stream_bytes(TREE), lengths.iter().sum::<u64>());
        assert_eq!(listing.stream_bytes(HASHES), 7 * 48);
        assert!(listing.batch_of_block(7).is_none() && listing.batch_at(listing.stream_bytes(TREE)).is_none());
        let mut given = ByteRanges::default();
        given.insert(9..12);
        let shares = listing.shares_given(&given, 9).unwrap();
        assert_eq!(shares.iter().map(|file| file.given_bytes).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn add__more_bytes_than_a_stream_has() {
        let mut draft = Draft::new([1; 32], Arc::default());
        for bytes in [MAX_TREE_BYTES, u64::MAX, 1, 0] {
            assert!(draft.add(&file(b"sparse", bytes)).iter().all(Option::is_none));
        }
        assert_eq!((draft.files_count, draft.tree_bytes), (2, MAX_TREE_BYTES));
        let mut listing = Listing::default();
        listing.push(&draft.finish().unwrap());
        // One file of 2^38 blocks; its blocks take no memory.
        assert_eq!(listing.batch_at(MAX_TREE_BYTES - 1).unwrap().blocks, (1 << 38) - 1..1 << 38);
    }

    proptest! {
        /// Batches are whole blocks, follow each other, and name the files that they have.
        #[test]
        fn batch__covers_all(
            lengths in proptest::collection::vec(
                prop_oneof![Just(0), 1_u64..3000, Just(BLOCK_BYTES), BLOCK_BYTES - 9..3 * BLOCK_BYTES], 0..60),
            repeat in 1_usize..40,
            told in 1_usize..50,
        ) {
            let lengths = lengths.repeat(repeat);
            let listing = listing(&lengths, told);
            let (mut byte, mut block) = (0, 0);
            while let Some(batch) = listing.batch_at(byte) {
                prop_assert_eq!(batch.bytes.start, byte);
                prop_assert_eq!(batch.blocks.start, block);
                let most = if batch.files.len() > 1 { TOGETHER_BYTES } else { BLOCK_BYTES };
                prop_assert!(batch.bytes.end - batch.bytes.start <= most);
                prop_assert!(batch.files.len() <= MAX_TOGETHER);
                for at in [batch.bytes.start, batch.bytes.end - 1] {
                    prop_assert_eq!(&listing.batch_at(at).unwrap().bytes, &batch.bytes);
                }
                for at in [batch.blocks.start, batch.blocks.end - 1] {
                    prop_assert_eq!(&listing.batch_of_block(at).unwrap().bytes, &batch.bytes);
                }
                let listed: Vec<_> = batch.listed().collect();
                prop_assert_eq!(listed.len(), batch.files.len());
                for (file, listed) in batch.files.clone().zip(&listed) {
                    prop_assert_eq!(listed.bytes, lengths[file]);
                    let path = format!("data/{file}");
                    prop_assert_eq!(listed.path, path.as_bytes());
                }
                (byte, block) = (batch.bytes.end, batch.blocks.end);
            }
            prop_assert_eq!(byte, lengths.iter().sum::<u64>());
            prop_assert_eq!(block * HASH_RECORD_BYTES, listing.stream_bytes(HASHES));
            prop_assert_eq!(listing.end.files, lengths.len());
            prop_assert!(lengths.is_empty() || listing.stream_bytes(MANIFEST) > 0);
        }
    }
}
