//! Entries that a walk has found so far, and their positions in the manifest's stream and in the tree's.

use std::ops::Range;
use std::sync::Arc;

use fairwave_proto::ByteRanges;

use crate::delta::chunks::SLOT_BYTES;
use crate::format::blocks::{FileSpan, HASH_RECORD_BYTES, Layout, blocks_of};
use crate::format::holes::Holes;
use crate::format::manifest::{FileIdentity, SegmentEntries, TreeEntry};
use crate::format::segments::SegmentWriter;
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

/// Memory of a listing per file, bytes,
const FILE_BYTES: usize = 24;
/// and for each hole.
const HOLE_BYTES: usize = 16;

/// A manifest in the making.
pub(crate) struct Draft {
    writer: SegmentWriter,
    files: Vec<FoundFile>,
    /// Of the next file.
    holes: Holes,
    files_count: u64,
    tree_bytes: u64,
    stream_bytes: u64,
}

/// A part of a manifest, ready to be sent, and the files in it.
pub(crate) struct ManifestPart {
    segment: Vec<u8>,
    files: Vec<FoundFile>,
}

/// A file in a segment: its length, its holes, and the start of its entry.
struct FoundFile {
    bytes: u64,
    holes: Holes,
    entry: u32,
}

impl Draft {
    /// With the session's secret for the manifest.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let writer = SegmentWriter::new(secret);
        let holes = Holes::default();
        Self { writer, files: Vec::new(), holes, files_count: 0, tree_bytes: 0, stream_bytes: 0 }
    }

    /// Adds an entry: the part that it completes.
    pub(crate) fn add(&mut self, entry: &TreeEntry<'_>) -> Option<ManifestPart> {
        let bytes = if let TreeEntry::File { path, bytes, .. } = *entry {
            if self.tree_bytes.checked_add(bytes).is_none_or(|sum| sum > MAX_TREE_BYTES) {
                return self.add(&TreeEntry::Failed {
                    path,
                    reason: "the files before and this one have more than 2^60 bytes",
                });
            }
            Some(bytes)
        } else {
            None
        };
        let added = self.writer.add(|writer| entry.write(writer)).expect("an entry has less than 64 KiB");
        let part = added.full.map(|segment| self.part(segment));
        if let TreeEntry::Holes { pairs } = *entry {
            self.holes.read_pairs(pairs).expect("they were written here");
            return part;
        }
        let holes = std::mem::take(&mut self.holes);
        if let Some(bytes) = bytes {
            self.files.push(FoundFile { bytes, holes, entry: added.offset as u32 });
            self.files_count += 1;
            self.tree_bytes += bytes;
        }
        part
    }

    /// Adds the last entry.
    pub(crate) fn end(&mut self) -> Option<ManifestPart> {
        self.add(&TreeEntry::End { files: self.files_count, bytes: self.tree_bytes })
    }

    /// Entries added since the last part, if any.
    pub(crate) fn finish(&mut self) -> Option<ManifestPart> {
        let segment = self.writer.finish()?;
        Some(self.part(segment))
    }

    /// Bytes of the parts so far.
    pub(crate) fn stream_bytes(&self) -> u64 {
        self.stream_bytes
    }

    /// Whether nothing more should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.stream_bytes > MAX_MANIFEST_BYTES
    }

    fn part(&mut self, segment: Vec<u8>) -> ManifestPart {
        self.stream_bytes += segment.len() as u64;
        ManifestPart { segment, files: std::mem::take(&mut self.files) }
    }
}

impl ManifestPart {
    /// Memory of the listing, bytes: its entries, and the position of each file and hole.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let holes: usize = self.files.iter().map(|file| file.holes.len()).sum();
        (self.segment.len() + FILE_BYTES * self.files.len() + HOLE_BYTES * holes) as u64
    }

    /// The number of its files that are only a hole, and the bytes of all files that are in holes.
    pub(crate) fn holes(&self) -> (u64, u64) {
        let hollow = self.files.iter().filter(|file| file.bytes > 0 && file.holes.bytes() == file.bytes).count();
        (hollow as u64, self.files.iter().map(|file| file.holes.bytes()).sum())
    }
}

/// Entries that were found and added.
///
/// Files are read in *batches*: whole blocks that follow each other, either one block of a file that has several, or
/// the only blocks of many files. All of a batch's entries are in one segment. Memory: the manifest, 24 bytes a file,
/// and 16 a hole.
#[derive(Default)]
pub(crate) struct Listing {
    /// With where each ends in the stream.
    segments: Vec<(u64, Arc<[u8]>)>,
    layout: Layout,
    /// Position of each file's entry in its segment.
    entries: Vec<u32>,
    runs: Vec<FileRun>,
    /// In the stream of the tree.
    holes: Holes,
    is_complete: bool,
}

/// Files that follow each other: one that has several blocks, or several that have at most one each.
#[derive(Clone, Copy)]
struct FileRun {
    files_end: usize,
    bytes_end: u64,
    blocks_end: u64,
    segment: usize,
}

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
    segment: Arc<[u8]>,
    entry: usize,
}

/// A file, as the manifest has it.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a> {
    /// Its path.
    pub(crate) path: &'a [u8],
    /// Its length.
    pub(crate) bytes: u64,
    /// Identity of the file.
    pub(crate) identity: FileIdentity,
}

impl Listing {
    /// Adds what a draft has completed: the part's bytes as they are sent, and where they end in the stream.
    pub(crate) fn push(&mut self, part: ManifestPart) -> (u64, Arc<[u8]>) {
        let segment: Arc<[u8]> = part.segment.into();
        let end = self.manifest_bytes() + segment.len() as u64;
        self.segments.push((end, segment.clone()));
        let mut together = None;
        for FoundFile { bytes, holes, entry } in part.files {
            let span = self.layout.push(bytes).expect("the draft bounds the sum");
            holes.iter().for_each(|hole| self.holes.push(span.bytes.start + hole.start..span.bytes.start + hole.end));
            self.entries.push(entry);
            let is_small = blocks_of(bytes) <= 1;
            let (files, sum) = together.filter(|_| is_small).unwrap_or((0, 0));
            let fits = files < MAX_TOGETHER && sum + bytes <= TOGETHER_BYTES;
            let run = FileRun {
                files_end: span.file + 1,
                bytes_end: span.bytes.end,
                blocks_end: span.blocks.end,
                segment: self.segments.len() - 1,
            };
            match self.runs.last_mut().filter(|_| files > 0 && fits) {
                Some(last) => *last = run,
                None => self.runs.push(run),
            }
            let begun = if files > 0 && fits { (files + 1, sum + bytes) } else { (1, bytes) };
            together = is_small.then_some(begun);
        }
        (end, segment)
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
            crate::format::streams::MANIFEST => self.manifest_bytes(),
            crate::format::streams::TREE => self.layout.bytes(),
            crate::format::streams::HASHES => self.layout.blocks() * HASH_RECORD_BYTES,
            crate::format::streams::CHUNKS => self.layout.blocks() * SLOT_BYTES,
            _ => 0,
        }
    }

    /// The batch with this byte of the stream of the tree.
    pub(crate) fn batch_at(&self, offset: u64) -> Option<BatchPlan> {
        let run = self.runs.partition_point(|run| run.bytes_end <= offset);
        self.batch(run, |span| span.block_at(offset))
    }

    /// The batch with this block.
    pub(crate) fn batch_of_block(&self, block: u64) -> Option<BatchPlan> {
        let run = self.runs.partition_point(|run| run.blocks_end <= block);
        self.batch(run, |_| block)
    }

    /// The file with this byte of the stream of the tree, and its entry's place.
    pub(crate) fn file_at(&self, offset: u64) -> Option<(FileSpan, BatchPlan)> {
        let span = self.layout.file_at(offset)?;
        let mut batch = self.batch_at(offset)?;
        batch.entry = *self.entries.get(span.file)? as usize;
        Some((span, batch))
    }

    /// The number of files whose last byte is among these given bytes of the tree. Empty files are never requested:
    /// they count if all others were given.
    pub(crate) fn files_given(&self, given: &ByteRanges) -> u64 {
        let (mut files, mut without_data, mut is_all) = (0, 0, true);
        let mut ranges = given.iter().peekable();
        for span in (0..self.layout.files()).map_while(|file| self.layout.span(file)) {
            let end = self.holes.data_end(&span.bytes);
            if end == span.bytes.start {
                without_data += 1;
                continue;
            }
            while ranges.next_if(|range| range.end < end).is_some() {}
            let is_given = ranges.peek().is_some_and(|range| range.start < end);
            files += u64::from(is_given);
            is_all &= is_given;
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
                let Some((span, batch)) = self.file_at(at) else { break };
                let end = range.end.min(span.bytes.end);
                if let Some((_, last)) = files.last_mut().filter(|(file, _)| *file == span.file) {
                    last.given_bytes += end - at;
                } else if files.len() == most {
                    return None;
                } else {
                    let path = batch.listed().next().map_or(&[][..], |listed| listed.path);
                    let name = short(blake3::Hasher::new().update(path));
                    let hollow: u64 = self.holes.within(&span.bytes).map(|hole| hole.end - hole.start).sum();
                    let data_bytes = span.bytes.end - span.bytes.start - hollow;
                    files.push((span.file, GivenFile { name, given_bytes: end - at, data_bytes }));
                }
                at = end;
            }
        }
        Some(files.into_iter().map(|(_, file)| file).collect())
    }

    fn batch(&self, index: usize, block: impl FnOnce(&FileSpan) -> u64) -> Option<BatchPlan> {
        let run = *self.runs.get(index)?;
        let before = index.checked_sub(1).map(|before| self.runs[before]);
        let (file, start, first) = before.map_or((0, 0, 0), |run| (run.files_end, run.bytes_end, run.blocks_end));
        let segment = self.segments.get(run.segment)?.1.clone();
        let entry = *self.entries.get(file)? as usize;
        let (mut bytes, mut blocks, files) = (start..run.bytes_end, first..run.blocks_end, file..run.files_end);
        if files.len() == 1 && blocks.end - blocks.start > 1 {
            let span = self.layout.span(file)?;
            let block = block(&span);
            (bytes, blocks) = (span.block_bytes(block), block..block + 1);
        }
        let (offset, holes) = (bytes.start - start, self.holes.around(&bytes));
        Some(BatchPlan { bytes, blocks, files, offset, holes, segment, entry })
    }

    fn manifest_bytes(&self) -> u64 {
        self.segments.last().map_or(0, |(end, _)| *end)
    }
}

impl BatchPlan {
    /// Its files, in order.
    pub(crate) fn listed(&self) -> impl Iterator<Item = Listed<'_>> {
        let entries = SegmentEntries::new(self.segment.get(self.entry..).unwrap_or_default()).map_while(Result::ok);
        let files = entries.filter_map(|entry| match entry {
            TreeEntry::File { path, bytes, identity, .. } => Some(Listed { path, bytes, identity }),
            _ => None,
        });
        files.take(self.files.len())
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
        let (mut listing, mut draft) = (Listing::default(), Draft::new([1; 32]));
        for (index, length) in lengths.iter().enumerate() {
            let path = format!("data/{index}");
            let directory =
                TreeEntry::Directory { path: path.as_bytes(), meta: crate::format::manifest::Meta::default() };
            let parts = [draft.add(&directory), draft.add(&file(path.as_bytes(), *length))];
            let part = if index % told == told - 1 { draft.finish() } else { None };
            parts.into_iter().chain([part]).flatten().for_each(|part| _ = listing.push(part));
        }
        [draft.end(), draft.finish()].into_iter().flatten().for_each(|part| _ = listing.push(part));
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
        let (span, batch) = listing.file_at(10).unwrap();
        assert_eq!((span.file, batch.listed().next().map(|file| file.path)), (2, Some(&b"data/2"[..])));
    }

    #[test]
    fn add__more_bytes_than_a_stream_has() {
        let mut draft = Draft::new([1; 32]);
        for bytes in [MAX_TREE_BYTES, u64::MAX, 1, 0] {
            assert!(draft.add(&file(b"sparse", bytes)).is_none());
        }
        assert_eq!((draft.files_count, draft.tree_bytes), (2, MAX_TREE_BYTES));
        let mut listing = Listing::default();
        listing.push(draft.finish().unwrap());
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
            prop_assert_eq!(listing.layout.files(), lengths.len());
            prop_assert!(lengths.is_empty() || listing.stream_bytes(MANIFEST) > 0);
        }
    }
}
