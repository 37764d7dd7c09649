//! Pending results of a plan.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::take::disk::disk_state::{BlockMap, DiskJob, Hollow};
use crate::take::fetch::fetch_window::WantedBlocks;
use crate::take::fetch::taken_file::TakenFile;

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
}

/// Files that a worker gets at a time.
const BATCH: usize = 512;
/// Blocks in holes that a worker hashes at a time.
const HOLLOW_BATCH: u64 = 16;

impl Todo {
    /// Adds blocks of a file to fetch, except those in holes.
    pub(super) fn fetch(&mut self, item: &Arc<TakenFile>, blocks: Range<u64>) {
        let first = item.span.blocks.start;
        let in_file = blocks.start - first..blocks.end - first;
        // Holes are resolved when their turn comes: a list with millions of them takes only their own memory.
        if item.hollow(in_file.clone()).next().is_some() {
            self.hollow.push_back((Arc::clone(item), in_file));
        }
        self.wanted.push(WantedBlocks { item: Arc::clone(item), blocks, tries: 0, is_check: false });
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
