//! Pending results of a plan.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::take::disk::disk_state::{BlockMap, DiskJob, Hollow};
use crate::take::fetch::fetch_window::WantedBlocks;
use crate::take::fetch::parcel::ParcelKind;
use crate::take::fetch::taken_file::TakenFile;
use crate::transfer::memory::Room;

/// Pending results of a plan: blocks to request, and jobs for the workers.
#[derive(Debug, Default)]
pub(super) struct Todo {
    pub(super) wanted: Vec<WantedBlocks>,
    /// Files without a byte.
    pub(super) make: Vec<Arc<TakenFile>>,
    /// Files of which every block has been written.
    pub(super) finish: Vec<Arc<TakenFile>>,
    pub(super) rehash: Vec<(Arc<TakenFile>, BlockMap)>,
    /// Files with blocks that are in holes, and where to look for them, by the blocks' numbers in their files.
    hollow: VecDeque<(Arc<TakenFile>, Range<u64>)>,
    /// Files of which the older ones have not been cut into chunks.
    bases: VecDeque<Arc<TakenFile>>,
    /// Files of which the older ones' chunks are in memory or will be.
    cut: Vec<Arc<TakenFile>>,
}

/// Files that a worker gets at a time.
const BATCH: usize = 512;
/// Blocks in holes that a worker hashes at a time.
const HOLLOW_BATCH: u64 = 16;
/// Max memory of the chunks of older files, bytes, unless it is one file's: those of 32 GiB.
const MAX_CUT_BYTES: u64 = 32 << 20;

impl Todo {
    /// Adds blocks of a file to fetch, except those in holes.
    pub(super) fn fetch(&mut self, item: &Arc<TakenFile>, blocks: Range<u64>) {
        let first = item.span.blocks.start;
        let in_file = blocks.start - first..blocks.end - first;
        // Holes are resolved when their turn comes: a list with millions of them takes only their own memory.
        if item.hollow(in_file.clone()).next().is_some() {
            self.hollow.push_back((Arc::clone(item), in_file));
        }
        if let Some(base) = &item.base {
            // Once for all of its gaps.
            if !base.is_used() {
                self.bases.push_back(Arc::clone(item));
            }
            return base.want(blocks);
        }
        self.wanted.push(WantedBlocks::new(Arc::clone(item), blocks, ParcelKind::Blocks));
    }

    /// Whether older files wait for their turn to be cut into chunks.
    pub(super) fn has_bases(&self) -> bool {
        !self.bases.is_empty()
    }

    /// A part of an older file, for a worker to cut into chunks, as far as there is memory for these. Files that need
    /// more, although no other uses it, are fetched whole.
    pub(super) fn next_segment(&mut self, room: &mut Room) -> Option<DiskJob> {
        let is_used =
            |item: &Arc<TakenFile>| !item.is_failed() && item.base.as_ref().is_some_and(|base| base.is_used());
        self.cut.retain(is_used);
        let bytes_of = |item: &Arc<TakenFile>| item.base.as_ref().map_or(0, |base| base.memory_bytes());
        room.keep(self.cut.iter().map(bytes_of).sum());
        while let Some(item) = self.bases.front().cloned() {
            let Some(base) = item.base.as_ref().filter(|_| !item.is_failed()) else {
                self.bases.pop_front();
                continue;
            };
            let is_cut = self.cut.last().is_some_and(|last| Arc::ptr_eq(last, &item));
            if !is_cut && !self.cut.is_empty() && room.bytes() + base.memory_bytes() > MAX_CUT_BYTES {
                return None;
            }
            if !is_cut && !room.grow(base.memory_bytes()) {
                let whole = base.take_wanted().into_iter();
                self.wanted
                    .extend(whole.map(|blocks| WantedBlocks::new(Arc::clone(&item), blocks, ParcelKind::Blocks)));
                self.bases.pop_front();
                continue;
            }
            if !is_cut {
                self.cut.push(Arc::clone(&item));
            }
            if let Some(segment) = base.next_segment() {
                return Some(DiskJob::Cut(item, segment));
            }
            self.bases.pop_front();
        }
        None
    }

    /// The accumulated jobs for the workers; all of them if `is_all`.
    pub(super) fn jobs(&mut self, is_all: bool) -> Vec<DiskJob> {
        let least = if is_all { 1 } else { BATCH };
        let mut jobs = Vec::new();
        if self.make.len() >= least {
            jobs.push(DiskJob::Make(std::mem::take(&mut self.make)));
        }
        if self.finish.len() >= least {
            jobs.push(DiskJob::Finish(std::mem::take(&mut self.finish)));
        }
        if self.rehash.len() >= least.min(8) {
            jobs.push(DiskJob::Rehash(std::mem::take(&mut self.rehash)));
        }
        jobs
    }

    /// Blocks in holes, for a worker to process: some milliseconds of work. `is_only`: there is one file so far, whose
    /// hash may be reported.
    pub(super) fn next_hollow(&mut self, is_only: bool) -> Option<DiskJob> {
        let mut some = Vec::new();
        while some.len() < BATCH
            && let Some((item, blocks)) = self.hollow.front_mut()
        {
            let Some(hollow) = item.hollow(blocks.clone()).next() else {
                self.hollow.pop_front();
                continue;
            };
            // With a second file no hash is reported.
            let has_values = item.has_values() && is_only;
            let most = if has_values { HOLLOW_BATCH } else { u64::MAX };
            let end = hollow.end.min(hollow.start.saturating_add(most));
            some.push(Hollow { item: Arc::clone(item), blocks: hollow.start..end, has_values });
            blocks.start = end;
            if has_values {
                break;
            }
        }
        (!some.is_empty()).then_some(DiskJob::Holes(some))
    }
}
