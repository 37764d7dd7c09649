//! Comparing what is at the destination with the hashes of what is given.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender};
use rustix::io::{Errno, pread};

use crate::format::blocks::{BLOCK_BYTES, BlockHash, HashKey, block_value};
use crate::take::disk::disk_error::Trouble;
use crate::take::disk::disk_state::{DiskJob, Report};
use crate::take::disk::tree::Tree;
use crate::take::fetch::parcel::{Parcel, ParcelBlock};
use crate::take::fetch::pool::BufferPool;
use crate::take::fetch::taken_file::TakenFile;
use crate::take::news::TakeNews;
use crate::transfer::zeros::wait_for_zeros;

/// Compares files with received hashes, and writes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Comparer<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) hashes: &'a HashKey,
}

/// The only thread at the disk of a transfer that writes nothing.
pub(crate) struct ComparingReader {
    pub(crate) tree: Arc<Tree>,
    pub(crate) hashes: HashKey,
    pub(crate) jobs: Receiver<DiskJob>,
    pub(crate) news: Sender<TakeNews>,
    pub(crate) pool: BufferPool,
}

impl Comparer<'_> {
    /// Compares the files that are at their places, or what an earlier transfer listed of their temporaries.
    pub(crate) fn check(self, parcel: &Parcel, report: &mut Report, buffer: &mut Vec<u8>) {
        for piece in &parcel.pieces {
            let Some(value) = self.expected(parcel, piece, report) else { continue };
            let item = &piece.item;
            let is_same = item.proves(piece.in_file(), &value).unwrap_or_else(|| {
                let old = self.tree.read(&item.path);
                old.and_then(|old| read_block(&old, item, piece.in_file(), buffer)).is_ok_and(|is_read| {
                    // A file of holes that a peer has made takes little to make.
                    if buffer.iter().all(|byte| *byte == 0) {
                        wait_for_zeros(buffer.len() as u64, 0);
                    }
                    is_read && block_value(item.bytes(), piece.offset(), buffer) == value
                })
            });
            report.checked.push((piece.clone(), is_same.then_some(value)));
        }
    }

    /// The expected value of a piece, if it arrived and its file has not failed.
    pub(crate) fn expected(self, parcel: &Parcel, piece: &ParcelBlock, report: &mut Report) -> Option<BlockHash> {
        if piece.item.is_failed() {
            return None;
        }
        if let Some(reason) = parcel.void(piece) {
            fail(report, &piece.item, Trouble::Void(reason));
            return None;
        }
        let value = self.hashes.check(piece.block, parcel.record(piece));
        if value.is_none() {
            report.wrong.push(piece.clone());
        }
        value
    }
}

fn fail(report: &mut Report, item: &Arc<TakenFile>, trouble: Trouble) {
    if item.fail() {
        report.failed.push((Arc::clone(item), trouble));
    }
}

impl ComparingReader {
    pub(crate) fn start(self) -> io::Result<JoinHandle<()>> {
        let thread = thread::Builder::new().name("fairwave-disk".to_owned());
        thread.spawn(move || self.run())
    }

    /// Works until it is stopped.
    fn run(self) {
        let comparer = Comparer { tree: &self.tree, hashes: &self.hashes };
        let mut buffer = Vec::new();
        while let Ok(DiskJob::Parcel(parcel)) = self.jobs.recv() {
            let mut report = Report {
                parcel_bytes: Some(parcel.bytes.end - parcel.bytes.start),
                tries: parcel.tries,
                is_check: true,
                ..Report::default()
            };
            comparer.check(&parcel, &mut report, &mut buffer);
            self.pool.give((*parcel).into_buffer());
            // A coordinator that has ended needs no report.
            let _ = self.news.send(TakeNews::Worked(report));
        }
    }
}

/// Reads a block of a file; returns whether it is complete.
pub(crate) fn read_block(
    file: &OwnedFd,
    item: &TakenFile,
    block: u64,
    buffer: &mut Vec<u8>,
) -> rustix::io::Result<bool> {
    let start = block * BLOCK_BYTES;
    let length = item.bytes().saturating_sub(start).min(BLOCK_BYTES) as usize;
    buffer.resize(length, 0);
    let mut done = 0;
    while done < length {
        match pread(file, &mut buffer[done..], start + done as u64) {
            Ok(0) => return Ok(false),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
