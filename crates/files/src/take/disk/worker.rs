//! The disk workers of a transfer: they verify received data and write them.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use crate::delta::base::read_at;
use crate::format::blocks::{BLOCK_BYTES, BlockHash, block_value};
use crate::format::streams::TREE;
use crate::take::disk::committer::GroupJob;
use crate::take::disk::compare::{Comparer, read_block};
use crate::take::disk::disk_error::{DiskError, Doing, Trouble};
use crate::take::disk::disk_state::{BlockMap, DiskJob, DiskState, Hollow, Report};
use crate::take::disk::sparse::{Below, write_sparse};
use crate::take::disk::tree::Old;
use crate::take::disk::worker_slots::WorkerSlots;
use crate::take::fetch::parcel::{Parcel, ParcelBlock, ParcelKind};
use crate::take::fetch::pool::BufferPool;
use crate::take::fetch::taken_file::{TakenFile, Temporary};
use crate::take::news::{Placed, TakeNews};
use crate::take::resume::homes::Home;
use crate::take::resume::journal::Written;
use crate::take::resume::key::{TemporaryKey, TemporaryStamp};
use crate::take::resume::temps::{AtPlace, Finished, LARGE};
use crate::transfer::zeros::wait_for_zeros;

/// One of several threads that do the same.
pub(crate) struct Worker {
    pub(crate) disk: Arc<DiskState>,
    pub(crate) jobs: Receiver<DiskJob>,
    /// Of the ticket, if it is a visitor's.
    pub(crate) slots: Option<Arc<WorkerSlots>>,
    pub(crate) group: Sender<GroupJob>,
    pub(crate) news: Sender<TakeNews>,
    pub(crate) pool: BufferPool,
}

/// Effects of a job besides its report.
#[derive(Default)]
struct JobEffects {
    report: Report,
    written: Vec<Written>,
    /// When temporaries were written to, in that order.
    stamps: Vec<(TemporaryKey, TemporaryStamp)>,
    finished: Vec<Arc<TakenFile>>,
    /// Files that are at their places already.
    placed: Placed,
    /// The directory of the last file.
    home: Option<Home>,
    /// A larger file that is incomplete, and the bytes written of it.
    touched: Option<(Arc<TakenFile>, u64)>,
}

const JOURNAL: &str = "record its progress in the journal";

impl Worker {
    /// Works until all senders are gone.
    pub(crate) fn run(self) {
        let mut buffer = Vec::new();
        while let Ok(job) = self.jobs.recv() {
            let _slot = self.slots.as_ref().map(|slots| slots.take());
            let mut batch = JobEffects::default();
            match job {
                DiskJob::Parcel(mut parcel) => {
                    batch.report.parcel_bytes = Some(parcel.bytes.end - parcel.bytes.start);
                    batch.report.held_bytes = parcel.held_bytes();
                    batch.report.kept_bytes = parcel.recalled_bytes();
                    (batch.report.tries, batch.report.is_check) = (parcel.tries, parcel.is_check());
                    match parcel.kind() {
                        ParcelKind::Hashes => self.comparer().check(&parcel, &mut batch.report, &mut buffer),
                        ParcelKind::Chunks => find_copies(&parcel, &mut batch.report),
                        ParcelKind::Blocks => {
                            batch.report.expanded =
                                Some(parcel.expand(&mut buffer)).filter(|_| parcel.stream() != TREE);
                            self.copy_old(&mut parcel);
                            parcel.fill_holes();
                            self.write(&parcel, &mut batch, &mut buffer);
                        }
                    }
                    self.pool.give((*parcel).into_buffer());
                }
                DiskJob::Make(items) => self.make(items, &mut batch),
                DiskJob::Holes(hollow) => self.leave(hollow, &mut batch, &mut buffer),
                DiskJob::Cut(item, segment) => {
                    batch.report.is_of_holes = true;
                    let is_last = item.base.as_ref().is_some_and(|base| {
                        base.cut(self.disk.temps.tree().read(item.base_path()), &segment, &mut buffer)
                    });
                    batch.report.cut = is_last.then_some(item);
                }
                DiskJob::Rehash(items) => self.rehash(items, &mut batch, &mut buffer),
                DiskJob::Leave => return,
                DiskJob::Finish(items) => {
                    for item in items {
                        self.finish_kept(item, &mut batch, &mut buffer);
                    }
                }
            }
            self.hand_on(batch);
        }
    }

    fn hand_on(&self, batch: JobEffects) {
        // Without its records in the journal a file is fetched again after an interruption: not a reason to fail now.
        let _ = self.disk.journal.append(&batch.written, batch.stamps);
        // A coordinator that has ended needs no report.
        if !batch.finished.is_empty() {
            let _ = self.group.send(GroupJob::Finished(batch.finished));
        }
        if let Some((item, bytes)) = batch.touched {
            let _ = self.group.send(GroupJob::Touched(item, bytes));
        }
        if batch.placed.files > 0 {
            let _ = self.news.send(TakeNews::Placed(batch.placed));
        }
        let _ = self.news.send(TakeNews::Worked(batch.report));
    }

    fn write(&self, parcel: &Parcel, batch: &mut JobEffects, buffer: &mut Vec<u8>) {
        for piece in &parcel.pieces {
            let Some(value) = self.expected(parcel, piece, &mut batch.report) else { continue };
            let (item, data) = (&piece.item, parcel.data(piece));
            let hole_bytes = piece.hole_bytes();
            if hole_bytes > 0 {
                wait_for_zeros(hole_bytes, data.len() as u64 - hole_bytes);
            }
            if block_value(item.bytes(), piece.offset(), data) != value {
                batch.report.wrong.push(piece.clone());
                continue;
            }
            if item.is_whole() {
                if self.write_whole(piece, data, value, batch) {
                    batch.report.resumed_bytes += parcel.recalled_of(piece) + piece.copied_bytes();
                }
                continue;
            }
            if let Err(trouble) = self.write_block(piece, data, batch, buffer) {
                batch.report.fail(&self.disk, item, trouble);
                continue;
            }
            let hole_bytes = piece.hole_bytes();
            let data_bytes = data.len() as u64 - hole_bytes;
            batch.report.written_bytes += data_bytes;
            batch.report.hole_bytes += hole_bytes;
            batch.report.resumed_bytes += parcel.recalled_of(piece) + piece.copied_bytes();
            batch.written.push(Written { key: item.key, block: piece.in_file(), value });
            if item.complete(piece.in_file(), value) {
                self.finish(Arc::clone(item), batch);
            } else {
                let bytes = batch.touched.take().map_or(0, |(_, bytes)| bytes) + data_bytes;
                batch.touched = Some((Arc::clone(item), bytes));
            }
        }
    }

    /// Adds to the blocks of a parcel what the older files at their places have of them.
    fn copy_old(&self, parcel: &mut Parcel) {
        let pieces: Vec<_> = parcel.pieces.iter().filter(|piece| piece.copied_bytes() > 0).cloned().collect();
        for piece in pieces {
            let old = self.disk.temps.tree().read(piece.item.base_path());
            // Bytes that cannot be read, or a file that is gone, fail the check of the block's hash, and are fetched.
            let mut read = |from, into: &mut [u8]| _ = old.as_ref().map(|old| read_at(old, from, into));
            parcel.copy(&piece, |length| self.pool.take(length), &mut read);
        }
    }

    /// A file of one block, which is here. Whether it did not fail.
    fn write_whole(&self, piece: &ParcelBlock, data: &[u8], value: BlockHash, batch: &mut JobEffects) -> bool {
        let (item, hole_bytes) = (&piece.item, piece.hole_bytes());
        if !self.make_whole(item, data, batch) {
            return false;
        }
        batch.report.written_bytes += data.len() as u64 - hole_bytes;
        batch.report.hole_bytes += hole_bytes;
        item.complete(0, value);
        if batch.finished.last().is_some_and(|last| Arc::ptr_eq(last, item)) {
            batch.written.push(Written { key: item.key, block: 0, value });
        }
        true
    }

    /// Writes all of a file, to its place if possible at once. Returns whether it succeeded.
    fn make_whole(&self, item: &Arc<TakenFile>, data: &[u8], batch: &mut JobEffects) -> bool {
        let claimed = self.disk.claim(item, item.bytes() - item.holes.bytes());
        let _claim = match claimed {
            Ok(claim) => claim,
            Err(error) => {
                batch.report.fail(&self.disk, item, error);
                return false;
            }
        };
        let home = match self.home(item, &mut batch.home) {
            Ok(home) => home,
            Err(error) => {
                batch.report.fail(&self.disk, item, error);
                return false;
            }
        };
        match self.write_at_place(item, data, home) {
            Ok(Some(AtPlace { unset })) => {
                batch.report.unset.extend(unset.map(|error| (Arc::clone(item), error)));
                batch.placed.files += 1;
                batch.placed.bytes += item.bytes();
                batch.placed.items.push(Arc::clone(item));
                return true;
            }
            Ok(None) => {}
            Err(error) => {
                batch.report.fail(&self.disk, item, error);
                return false;
            }
        }
        let written = self.disk.note(home);
        match written.and_then(|()| self.disk.temps.write_whole(home, &item.key, data, item.wanted())) {
            Ok(finished) => batch.note(item, finished),
            Err(error) => {
                batch.report.fail(&self.disk, item, error);
                return false;
            }
        }
        batch.finished.push(Arc::clone(item));
        true
    }

    /// The directory of a file. Files that follow each other often have the same.
    fn home<'a>(&self, item: &TakenFile, last: &'a mut Option<Home>) -> Result<&'a Home, DiskError> {
        let last_path = last.as_ref().map(|home| &*home.path);
        if last_path != Some(item.path.parent()) {
            *last = Some(self.disk.temps.home(item.path.parent()).doing("open its directory")?);
        }
        Ok(last.as_ref().expect("opened above"))
    }

    /// Returns a result if it is at its place then.
    fn write_at_place(&self, item: &TakenFile, data: &[u8], home: &Home) -> Result<Option<AtPlace>, DiskError> {
        // The replaced file stays until the new one is complete.
        if !self.disk.places_at_once(home) || item.old != Old::Nothing {
            return Ok(None);
        }
        self.disk.temps.write_at_place(home, item.path.name(), data, item.wanted())
    }

    /// The expected value of a piece, if it arrived and its file has not failed.
    fn expected(&self, parcel: &Parcel, piece: &ParcelBlock, report: &mut Report) -> Option<BlockHash> {
        let value = self.comparer().expected(parcel, piece, report);
        if value.is_none() && piece.item.is_failed() {
            // Frees its space.
            self.disk.discard(&piece.item);
        }
        value
    }

    fn comparer(&self) -> Comparer<'_> {
        Comparer { tree: self.disk.temps.tree(), hashes: &self.disk.hashes }
    }

    /// A block of a file that has more than one.
    fn write_block(
        &self,
        piece: &ParcelBlock,
        data: &[u8],
        batch: &mut JobEffects,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Trouble> {
        let (item, temps) = (&piece.item, &self.disk.temps);
        let mut below = self.prepare(item, batch, buffer)?;
        let _claim = self.disk.claim(item, data.len() as u64 - piece.hole_bytes())?;
        let (mut offset, mut rest) = (piece.offset(), data);
        let file = temps.reopen(&item.key).doing("open its partial data")?;
        // One that will have holes needs less than its length.
        if item.holes.is_empty() && temps.set_aside(&item.key, &file, item.bytes(), offset, data.len() as u64) {
            below = Below::Anything;
        }
        if item.bytes() >= LARGE {
            let done = temps.write_directly(&item.key, offset, data).doing("write it")?;
            offset += done as u64;
            rest = &data[done..];
        }
        if !rest.is_empty() {
            write_sparse(&file, offset, rest, below).doing("write it")?;
        }
        batch.stamps.extend(temps.stamps([item.key]));
        Ok(())
    }

    /// Ensures that a temporary of the file's length exists; returns the storage below the writes.
    fn prepare(&self, item: &TakenFile, batch: &mut JobEffects, buffer: &mut Vec<u8>) -> Result<Below, Trouble> {
        // Before the lock is taken: a quota may have to measure the directory.
        let bytes = match &*item.temporary() {
            Temporary::There(below) => return Ok(*below),
            Temporary::Absent => 0,
            Temporary::Copied(good) => good.len() as u64 * BLOCK_BYTES,
        };
        let _claim = self.disk.claim(item, bytes)?;
        let mut temporary = item.temporary();
        let below = match &*temporary {
            Temporary::There(below) => *below,
            Temporary::Absent => {
                self.begin(item, batch)?;
                Below::Hole
            }
            Temporary::Copied(good) => {
                self.begin(item, batch)?;
                self.copy(item, good, batch, buffer)?;
                Below::Anything
            }
        };
        *temporary = Temporary::There(below);
        Ok(below)
    }

    fn begin(&self, item: &TakenFile, batch: &mut JobEffects) -> Result<(), Trouble> {
        // The journal's blocks of an older temporary must be void before a new one has its length.
        self.disk.journal.begin_anew(&item.key).doing(JOURNAL)?;
        let home = self.home(item, &mut batch.home)?;
        self.disk.note(home)?;
        Ok(self.disk.temps.begin(home, &item.key, item.bytes())?)
    }

    /// Copies the blocks that are right from the file that is at the item's place.
    fn copy(
        &self,
        item: &TakenFile,
        good: &[(u64, BlockHash)],
        batch: &mut JobEffects,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Trouble> {
        let old = self.disk.temps.tree().read(&item.path).doing("read the old file")?;
        let new = self.disk.temps.reopen(&item.key).doing("open its copy")?;
        for &(block, value) in good {
            let is_read = read_block(&old, item, block, buffer).doing("read the old file")?;
            if !is_read || block_value(item.bytes(), block * BLOCK_BYTES, buffer) != value {
                return Err(Trouble::OldChanged);
            }
            write_sparse(&new, block * BLOCK_BYTES, buffer, Below::Anything).doing("write it")?;
            batch.written.push(Written { key: item.key, block, value });
        }
        batch.stamps.extend(self.disk.temps.stamps([item.key]));
        Ok(())
    }

    fn make(&self, items: Vec<Arc<TakenFile>>, batch: &mut JobEffects) {
        for item in items {
            self.make_whole(&item, &[], batch);
        }
    }

    /// Blocks without data: nothing is written, but a temporary has to exist.
    fn leave(&self, hollow: Vec<Hollow>, batch: &mut JobEffects, buffer: &mut Vec<u8>) {
        batch.report.is_of_holes = true;
        for Hollow { item, blocks, has_values } in hollow.into_iter().filter(|hollow| !hollow.item.is_failed()) {
            let bytes = item.bytes().min(blocks.end * BLOCK_BYTES) - blocks.start * BLOCK_BYTES;
            if item.is_whole() && has_values {
                wait_for_zeros(bytes, 0);
                fill_with_zeros(buffer, bytes);
                if self.make_whole(&item, buffer, batch) {
                    item.complete(0, block_value(bytes, 0, buffer));
                    batch.report.hole_bytes += bytes;
                }
                continue;
            }
            if let Err(trouble) = self.prepare(&item, batch, buffer) {
                batch.report.fail(&self.disk, &item, trouble);
                continue;
            }
            batch.report.hole_bytes += bytes;
            let is_last = if has_values {
                wait_for_zeros(blocks.end.saturating_sub(blocks.start) * BLOCK_BYTES, 0);
                fill_with_zeros(buffer, bytes);
                let mut values = blocks.map(|block| {
                    let offset = block * BLOCK_BYTES;
                    let length = (item.bytes() - offset).min(BLOCK_BYTES) as usize;
                    (block, block_value(item.bytes(), offset, &buffer[..length]))
                });
                // No other block follows the last of all.
                values.any(|(block, value)| item.complete(block, value))
            } else {
                item.complete_some(blocks.end - blocks.start)
            };
            if is_last {
                self.finish(item, batch);
            }
        }
    }

    fn rehash(&self, items: Vec<(Arc<TakenFile>, BlockMap)>, batch: &mut JobEffects, buffer: &mut Vec<u8>) {
        for (item, mut blocks) in items {
            match self.disk.temps.read(&item.key) {
                Ok(file) => blocks.retain(|(block, value)| {
                    let is_read = read_block(&file, &item, *block, buffer).unwrap_or(false);
                    is_read && block_value(item.bytes(), block * BLOCK_BYTES, buffer) == *value
                }),
                Err(_) => blocks.clear(),
            }
            batch.stamps.extend(self.disk.temps.stamps([item.key]));
            batch.written.extend(blocks.iter().map(|&(block, value)| Written { key: item.key, block, value }));
            batch.report.rehashed.push((item, blocks));
        }
    }

    /// All blocks of a file existed: in its temporary, or in a longer file at its place.
    fn finish_kept(&self, item: Arc<TakenFile>, batch: &mut JobEffects, buffer: &mut Vec<u8>) {
        let is_elsewhere = matches!(*item.temporary(), Temporary::Copied(_));
        if is_elsewhere && let Err(trouble) = self.prepare(&item, batch, buffer) {
            batch.report.fail(&self.disk, &item, trouble);
            return;
        }
        self.finish(item, batch);
    }

    /// All blocks of a file have been written.
    fn finish(&self, item: Arc<TakenFile>, batch: &mut JobEffects) {
        match self.disk.temps.finish(&item.key, item.wanted()) {
            Ok(finished) => {
                self.disk.quota.iter().for_each(|quota| quota.keep(&item.key));
                batch.note(&item, finished);
                batch.finished.push(item);
            }
            Err(error) => batch.report.fail(&self.disk, &item, error),
        }
    }
}

impl JobEffects {
    /// All of a file is written to its temporary.
    fn note(&mut self, item: &Arc<TakenFile>, Finished { stamp, unset }: Finished) {
        self.stamps.push((item.key, stamp));
        self.report.unset.extend(unset.map(|error| (Arc::clone(item), error)));
    }
}

/// Finds what the older files at the pieces' places have of them, by the lists of their chunks.
fn find_copies(parcel: &Parcel, report: &mut Report) {
    for piece in &parcel.pieces {
        let Some(base) = piece.item.base.as_ref() else { continue };
        let bytes = piece.bytes();
        let copies = base.copies(parcel.record(piece), bytes.end - bytes.start);
        report.listed.push((piece.clone(), copies.into()));
    }
}

/// Fills the buffer with the zeros of one block.
fn fill_with_zeros(buffer: &mut Vec<u8>, bytes: u64) {
    buffer.clear();
    buffer.resize(bytes.min(BLOCK_BYTES) as usize, 0);
}
