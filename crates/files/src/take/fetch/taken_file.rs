//! A file that is being taken.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire};

use fairwave_host::{Held, Lock};
use rustix::fs::FileType;

use crate::delta::base::Base;
use crate::format::blocks::{BLOCK_BYTES, BlockHash, FileSpan};
use crate::format::footprint::{Gauge, Weighed};
use crate::format::holes::Holes;
use crate::format::manifest::{FileIdentity, Meta};
use crate::format::names::RelativePath;
use crate::format::short_hash::short;
use crate::take::disk::attributes::{Attributes, Wanted};
use crate::take::disk::sparse::Below;
use crate::take::disk::tree::{Old, There};
use crate::take::resume::key::TemporaryKey;

/// A file that is being taken: several threads work on its blocks.
#[derive(Debug)]
pub(crate) struct TakenFile {
    pub(crate) path: RelativePath,
    pub(crate) span: FileSpan,
    pub(crate) meta: Meta,
    /// Those of an archive.
    pub(crate) attributes: Option<Arc<Attributes>>,
    /// Names its temporary.
    pub(crate) key: TemporaryKey,
    /// Hash of everything that the giver lists of it: other content has another version.
    pub(crate) version: [u8; 16],
    /// The existing entry at its place when it was planned.
    pub(crate) old: Old,
    /// Zeros of it that are not sent.
    pub(crate) holes: Holes,
    /// The older file at its place, if it may have much of the content.
    pub(crate) base: Option<Box<Base>>,
    /// Its path, if it has another name.
    base_path: Option<RelativePath>,
    /// Number of blocks that are missing.
    left: AtomicU64,
    is_failed: AtomicBool,
    /// Held while the journal records that an older one is void.
    temporary: Lock<Temporary>,
    /// Blocks of its temporary that an earlier transfer listed, until the giver's hashes are compared with them.
    unproven: Lock<BTreeMap<u64, BlockHash>>,
    /// The values of its blocks, if the hash of the whole file will be requested.
    values: Option<Lock<BTreeMap<u64, BlockHash>>>,
    /// Its memory, while it exists.
    weight: Option<Weighed>,
}

/// Memory of an item in queues, jobs and parcels, bytes.
const QUEUED_BYTES: usize = 256;

/// State of a temporary that is written block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Temporary {
    /// Nothing yet.
    Absent,
    /// Nothing yet; these blocks of the old file at its place are right, and to be copied first.
    Copied(Vec<(u64, BlockHash)>),
    /// It has its length.
    There(Below),
}

impl TakenFile {
    pub(crate) fn new(path: RelativePath, span: FileSpan, meta: Meta, identity: FileIdentity, old: Old) -> Self {
        let bytes = span.bytes.end - span.bytes.start;
        let (key, version) = (key(&path, bytes), version(&path, bytes, meta, identity));
        let left = AtomicU64::new(span.blocks.end - span.blocks.start);
        let temporary = Lock::over_leaves(Temporary::Absent);
        let (holes, is_failed) = (Holes::default(), AtomicBool::new(false));
        let unproven = Lock::default();
        Self {
            path,
            span,
            meta,
            attributes: None,
            key,
            version,
            old,
            holes,
            base: None,
            base_path: None,
            left,
            is_failed,
            temporary,
            unproven,
            values: None,
            weight: None,
        }
    }

    /// Sets its holes.
    pub(crate) fn with_holes(mut self, mut holes: Holes) -> Self {
        holes.shrink();
        self.holes = holes;
        self
    }

    /// Chunks that the older file at its place has are not fetched, nor those of a file of its length under another name.
    pub(crate) fn on_base(mut self, alike: Option<RelativePath>) -> Self {
        let bytes = match self.old {
            Old::There(There { kind: FileType::RegularFile, bytes, .. }) => bytes,
            Old::Nothing if alike.is_some() => self.bytes(),
            Old::Nothing | Old::There(_) => return self,
        };
        if self.holes.is_empty() {
            self.base = Base::new(self.bytes(), bytes).map(Box::new);
            self.base_path = alike;
        }
        self
    }

    /// The path of the file whose chunks it may have.
    pub(crate) fn base_path(&self) -> &RelativePath {
        self.base_path.as_ref().unwrap_or(&self.path)
    }

    /// Sets the attributes of an archive's file.
    pub(crate) fn with_attributes(mut self, attributes: Option<Arc<Attributes>>) -> Self {
        self.attributes = attributes;
        self
    }

    /// Its mode, time and other attributes.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        Wanted { meta: self.meta, attributes: self.attributes.as_deref() }
    }

    /// Charges its memory to a gauge while it exists.
    pub(crate) fn weighed(mut self, gauge: &Gauge) -> Self {
        let attributes = self.attributes.as_ref().map_or(0, |attributes| attributes.memory_bytes());
        let own = size_of::<Self>() + QUEUED_BYTES + self.path.as_bytes().len();
        let bytes = own + self.holes.memory_bytes() + attributes;
        self.weight = Some(gauge.weigh(bytes as u64));
        self
    }

    /// Keeps its values: its hash will be requested.
    pub(crate) fn with_values(mut self) -> Self {
        // The listed length is not trusted: memory follows the received bytes.
        self.values = Some(Lock::default());
        self
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.span.bytes.end - self.span.bytes.start
    }

    /// Its blocks that are in holes, by their numbers in the file.
    pub(crate) fn hollow(&self, blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let bytes = blocks.start * BLOCK_BYTES..self.bytes().min(blocks.end * BLOCK_BYTES);
        self.holes.blocks_within(&bytes, self.bytes())
    }

    /// Whether it is written as a whole: it has one block or none.
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes() <= BLOCK_BYTES
    }

    /// The number of its blocks, from the first on, that can equal those of the file at its place: those of which all
    /// bytes exist. The value of a file's only block never equals that of a longer file's block, so for another length
    /// it is 0.
    pub(crate) fn comparable_blocks(&self) -> u64 {
        let Old::There(There { kind: FileType::RegularFile, bytes, .. }) = self.old else { return 0 };
        let blocks = self.span.blocks.end - self.span.blocks.start;
        if bytes >= self.bytes() && (bytes == self.bytes() || !self.is_whole()) {
            blocks
        } else {
            (bytes / BLOCK_BYTES).min(if self.is_whole() { 0 } else { blocks })
        }
    }

    /// An earlier transfer listed these blocks of its temporary: the giver's hashes are to be compared with them.
    pub(crate) fn set_unproven(&self, blocks: &[(u64, BlockHash)]) {
        *self.unproven.lock() = blocks.iter().copied().collect();
    }

    /// Whether a block of its temporary is what the giver has, if that is what is compared.
    pub(crate) fn proves(&self, block: u64, value: &BlockHash) -> Option<bool> {
        let unproven = self.unproven.lock();
        (!unproven.is_empty()).then(|| unproven.get(&block) == Some(value))
    }

    /// Number of blocks of its temporary to compare.
    pub(crate) fn unproven_blocks(&self) -> u64 {
        self.unproven.lock().len() as u64
    }

    /// All of them were compared.
    pub(crate) fn end_proof(&self) {
        self.unproven.lock().clear();
    }

    /// Whether its blocks' values are kept.
    pub(crate) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Counts a finished block. Returns whether it was the last: `true` for only one of them.
    pub(crate) fn complete(&self, block: u64, value: BlockHash) -> bool {
        if let Some(values) = &self.values {
            values.lock().insert(block, value);
        }
        self.left.fetch_sub(1, AcqRel) == 1
    }

    /// Counts finished blocks whose values are not needed. Returns whether they were the last.
    pub(crate) fn complete_some(&self, blocks: u64) -> bool {
        self.left.fetch_sub(blocks, AcqRel) == blocks
    }

    /// Whether no block is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.left.load(Acquire) == 0
    }

    /// It failed: whether that is news.
    pub(crate) fn fail(&self) -> bool {
        !self.is_failed.swap(true, AcqRel)
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed.load(Acquire)
    }

    pub(crate) fn temporary(&self) -> Held<'_, Temporary> {
        self.temporary.lock()
    }

    /// The values of all blocks, if they were kept and are complete.
    pub(crate) fn values(&self) -> Option<Vec<BlockHash>> {
        let values = self.values.as_ref()?.lock();
        let is_all = values.len() as u64 == self.span.blocks.end - self.span.blocks.start;
        is_all.then(|| values.values().copied().collect())
    }
}

/// The key of the temporary of a file of this path and length. Its contents are compared with the giver's hashes, so
/// its blocks stay useful if the file's attributes change.
pub(crate) fn key(path: &RelativePath, bytes: u64) -> TemporaryKey {
    short(blake3::Hasher::new().update(&bytes.to_le_bytes()).update(path.as_bytes()))
}

/// Two versions are equal only if the path, the giver's identity of the file and all its listed attributes are equal.
pub(crate) fn version(path: &RelativePath, bytes: u64, meta: Meta, identity: FileIdentity) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&identity.0).update(&bytes.to_le_bytes()).update(&meta.mtime_s.to_le_bytes());
    hasher.update(&meta.mtime_ns.to_le_bytes()).update(path.as_bytes());
    short(&hasher)
}
