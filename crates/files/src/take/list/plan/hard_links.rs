//! Files with several names in the list of an archive.

use std::collections::{HashMap, HashSet};

use crate::format::footprint::{of_elements, of_set, of_table};
use crate::format::names::RelativePath;
use crate::format::short_hash::short;
use crate::take::disk::tree::Old;

/// Files with several names in the list: one of them is fetched, and the others are linked to it at the end.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    /// By the number of the inode: the name that is fetched, and its length.
    pub(super) firsts: HashMap<u64, (RelativePath, u64)>,
    pub(super) others: Vec<OtherName>,
    /// Hashes of paths that failed.
    pub(super) failed: HashSet<[u8; 16]>,
    /// Bytes of all paths.
    pub(super) path_bytes: u64,
}

/// Another name of a file.
#[derive(Debug)]
pub(super) struct OtherName {
    pub(super) path: RelativePath,
    pub(super) inode: u64,
    pub(super) old: Old,
}

impl HardLinks {
    /// Bytes that it takes in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let others = of_elements(size_of::<OtherName>(), self.others.len(), self.others.capacity());
        of_table(&self.firsts) + of_set(&self.failed) + others + self.path_bytes
    }

    /// A path failed: it is not linked to.
    pub(super) fn on_failed(&mut self, path: &[u8]) {
        if !self.firsts.is_empty() {
            self.failed.insert(hash(path));
        }
    }
}

pub(super) fn hash(path: &[u8]) -> [u8; 16] {
    short(blake3::Hasher::new().update(path))
}
