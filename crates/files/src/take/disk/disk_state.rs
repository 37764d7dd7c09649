//! The state that the disk threads of a transfer share.

use std::ops::Range;
use std::sync::Arc;

use crate::delta::base::CopiedRange;
use crate::format::blocks::{BlockHash, HashKey};
use crate::take::disk::disk_error::{DiskError, Doing, Trouble};
use crate::take::disk::quota::{OverQuota, Quota, Reservation};
use crate::take::fetch::parcel::{Expanded, Parcel, ParcelBlock};
use crate::take::fetch::taken_file::TakenFile;
use crate::take::resume::homes::Home;
use crate::take::resume::journal::Journal;
use crate::take::resume::temps::Temps;

/// The state that the disk threads of a transfer share.
pub(crate) struct DiskState {
    pub(crate) temps: Temps,
    pub(crate) journal: Journal,
    pub(crate) hashes: HashKey,
    /// Whether no file waits at its temporary place, since none is made durable.
    pub(crate) places_at_once: bool,
    /// Limit of all transfers into the same directory, if any.
    pub(crate) quota: Option<Quota>,
}

impl DiskState {
    /// Reserves this many bytes for a file, which stays incomplete after them if it has several blocks. Keep the
    /// reservation until they are written.
    pub(crate) fn claim(&self, item: &TakenFile, bytes: u64) -> Result<Option<Reservation>, OverQuota> {
        let Some(quota) = &self.quota else { return Ok(None) };
        let tree = self.temps.tree();
        if item.is_whole() {
            quota.claim(tree, bytes).map(Some)
        } else {
            quota.claim_part(tree, &item.key, bytes).map(Some)
        }
    }

    /// Temporaries are about to be made in a directory.
    pub(crate) fn note(&self, home: &Home) -> Result<(), DiskError> {
        self.journal.place(&home.path).doing("note in the journal where its temporary is")
    }

    /// Whether files of a file system are at their places without having been made durable.
    pub(crate) fn places_at_once(&self, home: &Home) -> bool {
        self.places_at_once || home.file_system.is_in_memory
    }

    /// The transfer is complete: nothing of it stays but what it brought.
    pub(crate) fn clear(&self) {
        self.journal.close();
        self.temps.clear();
    }

    /// Removes the temporary of a failed file, which frees its space.
    pub(crate) fn discard(&self, item: &TakenFile) {
        match &self.quota {
            Some(quota) => quota.discard(&item.key, || self.temps.remove(&item.key)),
            None => self.temps.remove(&item.key),
        }
    }
}

/// Blocks by their numbers in a file, in order, and their values.
pub(crate) type BlockMap = Vec<(u64, BlockHash)>;

/// Something for a disk worker to do.
#[derive(Debug)]
pub(crate) enum DiskJob {
    /// Verifies and writes received data, or compares them with the existing file.
    Parcel(Box<Parcel>),
    /// To make empty files.
    Make(Vec<Arc<TakenFile>>),
    /// To see to blocks that are in holes.
    Holes(Vec<Hollow>),
    /// To cut a segment of the older file at a file's place into chunks.
    Cut(Arc<TakenFile>, Range<u64>),
    /// To hash again what a journal of another boot lists.
    Rehash(Vec<(Arc<TakenFile>, BlockMap)>),
    /// Finishes files of which every block has been written.
    Finish(Vec<Arc<TakenFile>>),
    /// To end: each worker takes one of these.
    Leave,
}

/// Blocks of a file that are in holes.
#[derive(Debug)]
pub(crate) struct Hollow {
    pub(crate) item: Arc<TakenFile>,
    /// By their numbers in the file.
    pub(crate) blocks: Range<u64>,
    /// Whether their values will be requested.
    pub(crate) has_values: bool,
}

/// The result of a job.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Bytes of a parcel that were freed; `None` for another job.
    pub(crate) parcel_bytes: Option<u64>,
    /// Of those, bytes that were received, or that an earlier session left.
    pub(crate) held_bytes: u64,
    /// Bytes that an earlier session left,
    pub(crate) kept_bytes: u64,
    /// and of these, those that are verified and written.
    pub(crate) resumed_bytes: u64,
    /// Bytes that are verified and written.
    pub(crate) written_bytes: u64,
    /// Bytes that are in holes.
    pub(crate) hole_bytes: u64,
    /// Whether it was about holes or chunks, which received data do not wait for.
    pub(crate) is_of_holes: bool,
    /// Files that failed, each once.
    pub(crate) failed: Vec<(Arc<TakenFile>, Trouble)>,
    /// Files whose mode or time could not be set.
    pub(crate) unset: Vec<(Arc<TakenFile>, DiskError)>,
    /// Whether one of them failed because the disk was full.
    pub(crate) is_full: bool,
    /// Pieces that failed their check, with the number of fetches.
    pub(crate) wrong: Vec<ParcelBlock>,
    pub(crate) tries: u32,
    /// Whether no bytes of them were fetched.
    pub(crate) is_check: bool,
    /// Pieces that were compared with the existing file, with their values if they are equal.
    pub(crate) checked: Vec<(ParcelBlock, Option<BlockHash>)>,
    /// A file of which the older one is cut into chunks.
    pub(crate) cut: Option<Arc<TakenFile>>,
    /// Pieces of which the lists of chunks are here, with what the older file has of them.
    pub(crate) listed: Vec<(ParcelBlock, Arc<[CopiedRange]>)>,
    /// Result of unpacking its blocks.
    pub(crate) expanded: Option<Expanded>,
    /// Files with their complete blocks.
    pub(crate) rehashed: Vec<(Arc<TakenFile>, BlockMap)>,
}

impl Report {
    /// Fails a file; its temporary is removed to free the space.
    pub(crate) fn fail(&mut self, disk: &DiskState, item: &Arc<TakenFile>, trouble: impl Into<Trouble>) {
        if item.fail() {
            disk.discard(item);
            let trouble = trouble.into();
            self.is_full |= trouble.is_full();
            self.failed.push((Arc::clone(item), trouble));
        }
    }
}
