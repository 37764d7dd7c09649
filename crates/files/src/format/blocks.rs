//! The layout of a tree's bytes, and their hashes.
//!
//! A file of L > 0 bytes has ceil(L / 4 MiB) *blocks*, an empty file has 0; the blocks of all files are numbered in the
//! manifest's order. The *value* of a file's only block is the file's BLAKE3 hash; of several, each has the chaining
//! value of its subtree, and the file's hash is the root over them: no byte is hashed twice.
//!
//! ```text
//! record of a block = value (32 bytes), first 16 bytes of BLAKE3 keyed (block number u64 LE, value)
//! ```

use std::ops::Range;

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use thiserror::Error;

use super::footprint::of_elements;
use super::short_hash::short;

/// Size of a block, bytes, except a file's last: 2^12 of BLAKE3's chunks, so that each is a whole subtree.
pub(crate) const BLOCK_BYTES: u64 = 4 << 20;
/// Bytes of a block's record in the stream of hashes.
pub(crate) const HASH_RECORD_BYTES: u64 = 48;
/// Offsets in a stream end here: requests carry them as varints.
const MAX_OFFSET: u64 = (1 << 62) - 1;

/// The hash value of a block.
pub(crate) type BlockHash = [u8; 32];

/// The number of blocks of a file of this size.
pub(crate) fn blocks_of(file_bytes: u64) -> u64 {
    file_bytes.div_ceil(BLOCK_BYTES)
}

/// The value of the block that starts at `offset` in a file of `file_bytes`. It has at least one byte.
pub(crate) fn block_value(file_bytes: u64, offset: u64, block: &[u8]) -> BlockHash {
    let mut hasher = blake3::Hasher::new();
    if file_bytes <= BLOCK_BYTES {
        return hasher.update(block).finalize().into();
    }
    hasher.set_input_offset(offset);
    hasher.update(block).finalize_non_root()
}

/// The hash of a file with these values, in order: equal to `blake3::hash` of its bytes.
pub(crate) fn file_hash(values: &[BlockHash]) -> BlockHash {
    match values {
        [] => blake3::hash(&[]).into(),
        [only] => *only,
        _ => {
            let (left, right) = values.split_at(left_count(values.len()));
            merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).into()
        }
    }
}

/// As deep as the logarithm of the count.
fn subtree(values: &[BlockHash]) -> BlockHash {
    if let [only] = values {
        return *only;
    }
    let (left, right) = values.split_at(left_count(values.len()));
    merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
}

/// The left subtree is the largest that is whole and leaves something for the right one.
fn left_count(count: usize) -> usize {
    count.div_ceil(2).next_power_of_two()
}

/// Authenticates the blocks' values on paths that may change them.
#[derive(Clone)]
pub(crate) struct HashKey([u8; 32]);

impl HashKey {
    /// With the session's secret of the label "hashes".
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The record of a block.
    pub(crate) fn record(&self, block: u64, value: &BlockHash) -> [u8; 48] {
        let mut record = [0; 48];
        let (head, tail) = record.split_at_mut(32);
        head.copy_from_slice(value);
        tail.copy_from_slice(&self.mac(block, value));
        record
    }

    /// The value in a record of 48 bytes, if it is this block's and authentic.
    pub(crate) fn check(&self, block: u64, record: &[u8]) -> Option<BlockHash> {
        let (value, mac) = record.split_first_chunk::<32>()?;
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.mac(block, value), mac).ok()?;
        Some(*value)
    }

    fn mac(&self, block: u64, value: &BlockHash) -> [u8; 16] {
        let mut said = [0; 40];
        let (head, tail) = said.split_at_mut(8);
        head.copy_from_slice(&block.to_le_bytes());
        tail.copy_from_slice(value);
        short(blake3::Hasher::new_keyed(&self.0).update(&said))
    }
}

/// A tree has more bytes than a stream can number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the total size of the files exceeds 2^62 bytes")]
pub(crate) struct TreeTooLarge;

/// Position of a file in the tree's streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSpan {
    /// Its number among the files, in the manifest's order.
    pub(crate) file: usize,
    /// Its bytes in the stream of the tree.
    pub(crate) bytes: Range<u64>,
    /// Its blocks' numbers.
    pub(crate) blocks: Range<u64>,
}

impl FileSpan {
    /// The bytes of one of its blocks, in the stream of the tree.
    pub(crate) fn block_bytes(&self, block: u64) -> Range<u64> {
        let start = self.bytes.start + (block - self.blocks.start) * BLOCK_BYTES;
        start..self.bytes.end.min(start + BLOCK_BYTES)
    }

    /// The block in which a byte of the stream of the tree lies that is the file's.
    pub(crate) fn block_at(&self, offset: u64) -> u64 {
        self.blocks.start + (offset - self.bytes.start) / BLOCK_BYTES
    }
}

/// Positions of the files of a tree: 16 bytes of memory per file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Of each file, where its bytes and its blocks end.
    ends: Vec<(u64, u64)>,
}

impl Layout {
    /// The next file of the manifest.
    pub(crate) fn push(&mut self, file_bytes: u64) -> Result<FileSpan, TreeTooLarge> {
        let (bytes, blocks) = (self.bytes(), self.blocks());
        let end = bytes.checked_add(file_bytes).filter(|end| *end <= MAX_OFFSET).ok_or(TreeTooLarge)?;
        // Each block but a file's last has 4 MiB; and there are fewer than 2^48 files.
        let last = blocks.checked_add(blocks_of(file_bytes)).ok_or(TreeTooLarge)?;
        last.checked_mul(HASH_RECORD_BYTES).filter(|end| *end <= MAX_OFFSET).ok_or(TreeTooLarge)?;
        self.ends.push((end, last));
        Ok(FileSpan { file: self.ends.len() - 1, bytes: bytes..end, blocks: blocks..last })
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        of_elements(size_of::<(u64, u64)>(), self.ends.len(), self.ends.capacity())
    }

    /// No more are added.
    pub(crate) fn shrink(&mut self) {
        self.ends.shrink_to_fit();
    }

    /// Number of files.
    pub(crate) fn files(&self) -> usize {
        self.ends.len()
    }

    /// Total bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.ends.last().map_or(0, |end| end.0)
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.ends.last().map_or(0, |end| end.1)
    }

    /// The position of a file.
    pub(crate) fn span(&self, file: usize) -> Option<FileSpan> {
        let (end, last) = *self.ends.get(file)?;
        let (start, first) = file.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or((0, 0));
        Some(FileSpan { file, bytes: start..end, blocks: first..last })
    }

    /// The file that has this byte of the stream of the tree.
    pub(crate) fn file_at(&self, offset: u64) -> Option<FileSpan> {
        self.span(self.ends.partition_point(|end| end.0 <= offset))
    }

    /// The file that has this block.
    pub(crate) fn file_of_block(&self, block: u64) -> Option<FileSpan> {
        self.span(self.ends.partition_point(|end| end.1 <= block))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8 ^ (at >> 13) as u8).collect()
    }

    fn values(content: &[u8]) -> Vec<BlockHash> {
        let blocks = content.chunks(BLOCK_BYTES as usize).enumerate();
        blocks.map(|(i, block)| block_value(content.len() as u64, i as u64 * BLOCK_BYTES, block)).collect()
    }

    #[test]
    fn file_hash__is_blake3_around_all_edges() {
        let content = content(5 * (BLOCK_BYTES as usize) + 2);
        let near = |blocks: usize| {
            let edge = blocks * BLOCK_BYTES as usize;
            [edge.saturating_sub(1025), edge.saturating_sub(1), edge, edge + 1, edge + 2]
        };
        for length in [0, 1, 2, 1023, 1024, 1025].into_iter().chain((1..=5).flat_map(near)) {
            let values = values(&content[..length]);
            assert_eq!(values.len() as u64, blocks_of(length as u64), "{length} bytes");
            assert_eq!(file_hash(&values), *blake3::hash(&content[..length]).as_bytes(), "{length} bytes");
        }
    }

    #[test]
    fn record__says_which_block_it_is_of() {
        let key = HashKey::new([3; 32]);
        let record = key.record(7, &[1; 32]);
        assert_eq!(key.check(7, &record), Some([1; 32]));
        assert_eq!(key.check(8, &record), None);
        assert_eq!(HashKey::new([4; 32]).check(7, &record), None);
        for at in 0..48 {
            let mut forged = record;
            forged[at] ^= 1;
            assert_eq!(key.check(7, &forged), None);
        }
        assert_eq!(key.check(7, &record[..47]), None);
    }

    #[test]
    fn layout__empty_files_have_a_place_and_no_bytes() {
        let mut layout = Layout::default();
        let lengths = [0, 1, 0, BLOCK_BYTES, BLOCK_BYTES + 1, 0];
        let spans: Vec<_> = lengths.into_iter().map(|length| layout.push(length).unwrap()).collect();
        assert_eq!((layout.files(), layout.bytes(), layout.blocks()), (6, 2 * BLOCK_BYTES + 2, 4));
        assert_eq!(spans[4], FileSpan { file: 4, bytes: 1 + BLOCK_BYTES..2 * BLOCK_BYTES + 2, blocks: 2..4 });
        assert_eq!(layout.file_at(0).unwrap().file, 1);
        assert_eq!(layout.file_at(1).unwrap().file, 3);
        assert_eq!(layout.file_at(2 * BLOCK_BYTES + 2), None);
        assert_eq!(spans[4].block_bytes(3), 2 * BLOCK_BYTES + 1..2 * BLOCK_BYTES + 2);
        assert_eq!((spans[4].block_at(1 + BLOCK_BYTES), spans[4].block_at(2 * BLOCK_BYTES + 1)), (2, 3));
    }

    #[test]
    fn layout__ends_where_offsets_end() {
        let mut layout = Layout::default();
        layout.push(MAX_OFFSET).unwrap();
        assert_eq!((layout.push(1), layout.push(u64::MAX)), (Err(TreeTooLarge), Err(TreeTooLarge)));
        assert_eq!(layout.push(0).map(|span| span.file), Ok(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn file_hash__is_blake3(length in 0..3 * BLOCK_BYTES as usize) {
            let content = content(length);
            prop_assert_eq!(file_hash(&values(&content)), *blake3::hash(&content).as_bytes());
        }

        /// The tree's shape for many blocks: BLAKE3 over single chunks has the same.
        #[test]
        fn file_hash__of_many_values(chunks in 2_usize..600) {
            let content = content(chunks * 1024 - 1);
            let values: Vec<_> = content.chunks(1024).enumerate().map(|(i, chunk)| {
                let mut hasher = blake3::Hasher::new();
                hasher.set_input_offset(1024 * i as u64);
                hasher.update(chunk).finalize_non_root()
            }).collect();
            prop_assert_eq!(file_hash(&values), *blake3::hash(&content).as_bytes());
        }

        #[test]
        fn layout__finds_every_byte_and_block(lengths in proptest::collection::vec(
            prop_oneof![Just(0), 1_u64..5, BLOCK_BYTES - 2..BLOCK_BYTES + 3, Just(3 * BLOCK_BYTES)], 1..20,
        )) {
            let mut layout = Layout::default();
            let spans: Vec<_> = lengths.iter().map(|length| layout.push(*length).unwrap()).collect();
            for (file, span) in spans.iter().enumerate() {
                prop_assert_eq!(layout.span(file), Some(span.clone()));
                let mut at = span.bytes.start;
                for block in span.blocks.clone() {
                    let bytes = span.block_bytes(block);
                    prop_assert_eq!(bytes.start, at);
                    prop_assert!(!bytes.is_empty());
                    at = bytes.end;
                    for offset in [bytes.start, bytes.end - 1] {
                        prop_assert_eq!(layout.file_at(offset).map(|span| span.file), Some(file));
                        prop_assert_eq!(span.block_at(offset), block);
                    }
                }
                prop_assert_eq!(at, span.bytes.end);
            }
        }
    }
}
