//! Content-defined chunks of a block, and their list in the stream of chunks.
//!
//! ```text
//! slot of a block = lead, chunks; the rest of its 8 KiB is void
//! lead  = bytes of the first chunk before the block (u48 LE)
//! chunk = length (u24 LE), first 3 bytes of its BLAKE3 hash
//! ```
//!
//! Lengths differ as well, so that few chunks have another's entry; a block with such a chunk is wrong, and is fetched.
//! A chunk that lies across the edge of two blocks is in the lists of both. Only chunks between two natural cuts are
//! listed: a giver cannot choose the bytes that it compares with a taker's file, except for a chunk as a whole.

use std::ops::Range;

use fastcdc::v2020::FastCDC;

/// Bytes of a block's slot in the stream of chunks.
pub(crate) const SLOT_BYTES: u64 = 8 << 10;
/// Bytes of an entry of a list, and of its lead.
const ENTRY_BYTES: usize = 6;
/// Mean length of a chunk, bytes: a list has 0.04 % of a file's bytes, and each change costs about two chunks more than
/// it has.
const MEAN_BYTES: u64 = 16 << 10;
/// Larger files have chunks of 2, 4 or 8 times the mean length: 2^21 chunks, 32 GiB.
const MAX_CHUNKS: u64 = 1 << 21;
/// Smaller files are sent whole: the list and its round trip save less.
const MIN_FILE_BYTES: u64 = 512 << 10;
/// So are larger ones: 256 GiB, with chunks of 128 KiB.
const MAX_FILE_BYTES: u64 = MEAN_BYTES * MAX_CHUNKS * 8;
/// Files of which one has more than this many times the other's bytes have little in common.
const MAX_RATIO: u64 = 16;
/// Mean lengths before a block from which on it is cut, so that all cuts in it are those of the whole file: two runs of
/// cuts from different places meet after some chunks.
const APPROACH: u64 = 16;

/// A file's chunk lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkSizes {
    mean: u64,
}

/// A chunk of a list, by its place relative to the block's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedChunk {
    /// Bytes from the block's start: below 0 for a chunk that starts before it.
    pub(crate) start: i64,
    pub(crate) bytes: u64,
    pub(crate) key: ChunkKey,
}

/// Length and hash of a chunk: as they are in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkKey(u64);

impl ChunkKey {
    fn new(content: &[u8]) -> Self {
        let [one, two, three, ..] = *blake3::hash(content).as_bytes();
        Self(content.len() as u64 | u64::from(u32::from_le_bytes([one, two, three, 0])) << 24)
    }

    fn entry(self) -> [u8; ENTRY_BYTES] {
        entry(self.0)
    }

    /// Its entry in a list.
    #[cfg(test)]
    pub(super) fn of(content: &[u8]) -> [u8; ENTRY_BYTES] {
        Self::new(content).entry()
    }

    pub(super) fn bytes(self) -> u64 {
        self.0 & 0xff_ffff
    }
}

/// A number of six bytes.
fn entry(number: u64) -> [u8; ENTRY_BYTES] {
    let [one, two, three, four, five, six, ..] = number.to_le_bytes();
    [one, two, three, four, five, six]
}

impl ChunkSizes {
    /// Of a file of this size.
    pub(crate) fn of(file_bytes: u64) -> Self {
        let mut mean = MEAN_BYTES;
        while file_bytes.div_ceil(MAX_CHUNKS) > mean && mean < 8 * MEAN_BYTES {
            mean *= 2;
        }
        Self { mean }
    }

    /// Of a new file and the older one, if less than the whole file is worth to be requested.
    pub(crate) fn between(new_bytes: u64, old_bytes: u64) -> Option<Self> {
        let (least, most) = (new_bytes.min(old_bytes), new_bytes.max(old_bytes));
        let is_worth_it = least >= MIN_FILE_BYTES && most <= MAX_FILE_BYTES && most / MAX_RATIO <= least;
        Some(Self::of(new_bytes)).filter(|sizes| is_worth_it && sizes.chunks_of(old_bytes) <= MAX_CHUNKS)
    }

    /// Mean number of chunks of a file of this length.
    pub(crate) fn chunks_of(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mean)
    }

    /// Max length of a chunk.
    fn most(self) -> u64 {
        4 * self.mean
    }

    /// Min length of a chunk, except at the end of a file.
    fn least(self) -> u64 {
        self.mean / 4
    }

    /// The bytes of a file that decide the chunks that overlap a part of it.
    pub(crate) fn around(self, part: &Range<u64>, file_bytes: u64) -> Range<u64> {
        let start = part.start.saturating_sub(APPROACH * self.mean);
        start..part.end.saturating_add(self.most()).min(file_bytes)
    }

    /// The chunks of `content` that overlap `part` of it.
    pub(crate) fn cut(self, content: &[u8], part: Range<usize>) -> impl Iterator<Item = (Range<usize>, ChunkKey)> {
        let chunks = FastCDC::new(content, self.least() as u32, self.mean as u32, self.most() as u32);
        let ranges = chunks.map(|chunk| chunk.offset..chunk.offset + chunk.length);
        let within =
            ranges.skip_while(move |range| range.end <= part.start).take_while(move |range| range.start < part.end);
        within.map(|range| (range.clone(), ChunkKey::new(&content[range])))
    }

    /// Whether a chunk ends at two natural cuts, or may: a short one at the end of a file would be guessed in no time.
    pub(crate) fn is_whole(self, chunk: &Range<usize>) -> bool {
        chunk.len() as u64 >= self.least()
    }

    /// The list of a block, which is a part of `content`.
    pub(crate) fn list(self, content: &[u8], block: Range<usize>) -> Vec<u8> {
        let mut list = Vec::new();
        for (range, key) in self.cut(content, block.clone()) {
            if list.is_empty() {
                let lead = block.start.saturating_sub(range.start) as u64;
                list.extend(entry(lead));
            }
            list.extend(key.entry());
        }
        list.truncate(SLOT_BYTES as usize);
        list
    }

    /// Reads the list of a block of this many bytes. One that does not add up is empty, like that of a giver that lists
    /// no chunks: the block is fetched.
    pub(crate) fn read(self, list: &[u8], block_bytes: u64) -> Vec<ListedChunk> {
        let mut numbers = list.chunks_exact(ENTRY_BYTES).map(|number| {
            let mut bytes = [0; 8];
            bytes[..ENTRY_BYTES].copy_from_slice(number);
            u64::from_le_bytes(bytes)
        });
        let lead = numbers.next().unwrap_or(0);
        let keys = numbers.map(ChunkKey).take_while(|key| key.bytes() > 0);
        let mut chunks = Vec::new();
        let Some(mut start) =
            i64::try_from(lead).ok().filter(|lead| *lead < self.most().cast_signed()).map(|lead| -lead)
        else {
            return chunks;
        };
        for key in keys {
            let end = start + key.bytes().cast_signed();
            // Each has a part of the block.
            if key.bytes() > self.most() || end <= 0 || start >= block_bytes.cast_signed() {
                return Vec::new();
            }
            chunks.push(ListedChunk { start, bytes: key.bytes(), key });
            start = end;
        }
        chunks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCK: usize = 4 << 20;

    fn content(seed: u8, bytes: usize) -> Vec<u8> {
        let mut content = vec![0; bytes];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut content);
        content
    }

    /// Lists of all blocks, as a giver makes them one by one.
    fn lists(content: &[u8]) -> Vec<Vec<u8>> {
        let sizes = ChunkSizes::of(content.len() as u64);
        let list = |start: usize| {
            let end = content.len().min(start + BLOCK);
            let around = sizes.around(&(start as u64..end as u64), content.len() as u64);
            let from = around.start as usize;
            sizes.list(&content[from..around.end as usize], start - from..end - from)
        };
        (0..content.len()).step_by(BLOCK).map(list).collect()
    }

    #[test]
    fn list__blocks_have_the_chunks_of_the_whole_file() {
        let content = content(1, 10 * BLOCK + 99);
        let sizes = ChunkSizes::of(content.len() as u64);
        let all: Vec<_> = sizes.cut(&content, 0..content.len()).collect();
        let mut found = 0;
        for (block, list) in lists(&content).iter().enumerate() {
            let start = block * BLOCK;
            let end = content.len().min(start + BLOCK);
            for chunk in sizes.read(list, (end - start) as u64) {
                let at = start.checked_add_signed(chunk.start as isize).unwrap();
                assert!(all.contains(&(at..at + chunk.bytes as usize, chunk.key)), "block {block}, {chunk:?}");
                found += chunk.bytes as usize;
            }
        }
        // Those at edges are in two lists.
        assert!((content.len()..content.len() + 10 * (128 << 10)).contains(&found), "{found} bytes are listed");
    }

    #[test]
    fn list__fits_into_its_slot() {
        for bytes in [vec![0; 2 * BLOCK], content(2, 2 * BLOCK), b"abc".repeat(BLOCK / 2)] {
            for list in lists(&bytes) {
                assert!(list.len() <= SLOT_BYTES as usize, "{} bytes", list.len());
            }
        }
        // The shortest chunks: 4 KiB, in a block and at both of its edges.
        let most = ENTRY_BYTES as u64 * (1 + (BLOCK as u64 + 2 * (64 << 10)) / (4 << 10));
        assert!(most <= SLOT_BYTES);
    }

    #[test]
    fn read__lists_that_do_not_add_up_are_empty() {
        let sizes = ChunkSizes::of(BLOCK as u64);
        let list = |lead: u64, lengths: &[u64]| {
            let bytes = lengths.iter().flat_map(|length| entry(length | 7 << 24));
            sizes.read(&entry(lead).into_iter().chain(bytes).collect::<Vec<_>>(), BLOCK as u64).len()
        };
        let most = 64 << 10;
        assert_eq!((list(0, &[1]), list(0, &[most; 64]), list(most - 1, &[most])), (1, 64, 1));
        // Too long, before the block, behind it.
        assert_eq!((list(0, &[most + 1]), list(most, &[most]), list(9, &[9]), list(0, &[most; 65])), (0, 0, 0, 0));
        assert_eq!((list(u64::MAX, &[1]), list(0, &[1, 0, 1]), sizes.read(&[0; 11], 1).len()), (0, 1, 0));
    }

    #[test]
    fn between__files_that_have_little_in_common_are_sent_whole() {
        let mib = 1 << 20;
        assert!(ChunkSizes::between(mib, 2 * mib).is_some() && ChunkSizes::between(16 * mib, mib).is_some());
        assert_eq!(ChunkSizes::between(17 * mib, mib), None);
        assert_eq!(ChunkSizes::between(mib, mib / 4), None);
        assert_eq!(ChunkSizes::between(u64::MAX, u64::MAX), None);
        // An index has 2^21 chunks at most: 64 GiB of 32 KiB, 256 GiB of 128 KiB.
        let gib = 1 << 30;
        assert_eq!(ChunkSizes::between(65 * gib, 64 * gib), Some(ChunkSizes { mean: 64 << 10 }));
        assert_eq!(ChunkSizes::between(256 * gib, 256 * gib), Some(ChunkSizes { mean: 128 << 10 }));
        assert_eq!(ChunkSizes::between(60 * gib, 70 * gib), None);
    }

    proptest! {
        #[test]
        fn read__anything_adds_up(list in prop::collection::vec(any::<u8>(), 0..200), bytes in 1..5_000_000_u64) {
            let sizes = ChunkSizes::of(bytes);
            let mut at = None;
            for chunk in sizes.read(&list, bytes) {
                prop_assert!(at.is_none_or(|at| at == chunk.start));
                prop_assert!(chunk.bytes <= sizes.most() && chunk.start < bytes.cast_signed());
                at = Some(chunk.start + chunk.bytes.cast_signed());
                prop_assert!(at > Some(0));
            }
        }
    }
}
