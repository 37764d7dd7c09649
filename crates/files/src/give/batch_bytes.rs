//! A batch of files in memory.

use std::ops::Range;
use std::sync::Arc;

use fairwave_proto::codec::VoidReason;

use super::listing::BatchKey;

/// A batch in memory.
#[derive(Debug)]
pub(crate) struct BatchBytes {
    /// Its bytes in the stream of the tree.
    pub(crate) bytes: Range<u64>,
    /// Its blocks.
    pub(crate) blocks: Range<u64>,
    /// Number of files without data after it, except empty ones and those without any data.
    pub(crate) files_ended: usize,
    /// Bytes of it that are in holes, and that need not be requested.
    pub(crate) hole_bytes: u64,
    /// Its bytes, from the first on; the buffer may be longer.
    pub(crate) content: Vec<u8>,
    /// The records of its blocks, if they were hashed.
    pub(crate) records: Vec<u8>,
    /// The lists of its blocks' chunks, if they were cut.
    pub(crate) lists: Option<Vec<Vec<u8>>>,
    /// The ranges of it that could not be read.
    pub(crate) voids: Arc<[Void]>,
    /// Whether its blocks are packed, if they are worth it.
    pub(crate) is_packed: bool,
    /// The ranges of it that are not sent: those, and what is behind the frames of packed blocks.
    pub(crate) gaps: Arc<[Void]>,
}

impl BatchBytes {
    /// Its key in a schedule.
    pub(crate) fn key(&self) -> BatchKey {
        (self.blocks.start, self.is_packed)
    }
}

/// A part of a batch that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Void {
    /// Its bytes.
    pub(crate) bytes: Range<u64>,
    /// Its blocks.
    pub(crate) blocks: Range<u64>,
    /// Why.
    pub(crate) reason: VoidReason,
}
