//! Files that are compared with existing ones, block by block.

use std::collections::HashMap;

use crate::format::blocks::BlockHash;
use crate::take::fetch::parcel::ParcelBlock;

/// Files that are compared with existing ones, block by block.
#[derive(Default)]
pub(super) struct Comparisons {
    /// Blocks that were compared, by their files' numbers.
    blocks: HashMap<usize, Vec<Compared>>,
    /// Of a dry run: files that are being compared.
    files: u64,
}

/// A block by its number in the file, and its value if it is the same.
pub(super) type Compared = (u64, Option<BlockHash>);

impl Comparisons {
    /// Starts the comparison of this many files in a dry run.
    pub(super) fn begin(&mut self, files: u64) {
        self.files += files;
    }

    /// A file is compared, or failed.
    pub(super) fn end_file(&mut self) {
        self.files = self.files.saturating_sub(1);
    }

    /// Of a dry run: files that are being compared.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Whether no file is compared in part.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A block was compared. The blocks of its file, in order, when this was the last of them.
    pub(super) fn add(&mut self, piece: &ParcelBlock, value: Option<BlockHash>) -> Option<Vec<Compared>> {
        let item = &piece.item;
        let blocks = self.blocks.entry(item.span.file).or_default();
        blocks.push((piece.in_file(), value));
        let expected = match item.unproven_blocks() {
            0 => item.comparable_blocks(),
            unproven => unproven,
        };
        if (blocks.len() as u64) < expected || item.is_failed() {
            return None;
        }
        let mut blocks = self.blocks.remove(&item.span.file)?;
        blocks.sort_unstable_by_key(|(block, _)| *block);
        self.end_file();
        Some(blocks)
    }
}
