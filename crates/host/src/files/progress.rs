//! How far a transfer is.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

/// How far a transfer is, as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files to be moved, once all are known.
    pub files_total: Option<u64>,
    /// Their bytes, once all are known.
    pub bytes_total: Option<u64>,
    /// Files known so far.
    pub files_known: u64,
    /// Their bytes.
    pub bytes_known: u64,
    /// Files that are complete at the destination, those included that were so before.
    pub files_done: u64,
    /// Files that failed.
    pub files_failed: u64,
    /// Bytes that are verified and at the destination: of complete files and of others.
    pub bytes_done: u64,
    /// Of those, bytes that were there before.
    pub bytes_resumed: u64,
    /// And bytes in holes, which do not travel.
    pub bytes_holes: u64,
    /// Bytes that came, and are not verified and written yet.
    pub bytes_held: u64,
    /// Whether the tree is still being listed.
    pub is_scanning: bool,
    /// What it waits for, where that is not the network's rate.
    pub waits_for: Option<WaitsFor>,
}

/// What a transfer that does not move waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The giver lists its files.
    List,
    /// The giver reads its disk, or the network brings nothing.
    Peer,
    /// The disk at this end.
    Disk,
    /// What was written is being made durable.
    Sync,
    /// The taker has all, and tells what became of it.
    Results,
    /// Its session ended; it opens another.
    Session,
}

impl Progress {
    /// Bytes that came over the network and are verified and at the destination.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_done.saturating_sub(self.bytes_resumed).saturating_sub(self.bytes_holes)
    }
}

/// The counts behind a [`Progress`]: one thread writes each, any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) files_known: AtomicU64,
    pub(crate) bytes_known: AtomicU64,
    pub(crate) files_done: AtomicU64,
    pub(crate) files_failed: AtomicU64,
    pub(crate) bytes_done: AtomicU64,
    pub(crate) bytes_resumed: AtomicU64,
    pub(crate) bytes_holes: AtomicU64,
    /// Of the bytes that are known, those that are in holes: a giver's, whether it counts them as given or not.
    bytes_hollow: AtomicU64,
    bytes_came: AtomicU64,
    bytes_used: AtomicU64,
    is_listed: AtomicBool,
    waits_for: AtomicU8,
}

const WAITS: [WaitsFor; 6] =
    [WaitsFor::List, WaitsFor::Peer, WaitsFor::Disk, WaitsFor::Sync, WaitsFor::Results, WaitsFor::Session];

impl Tally {
    /// Adds a file to those that are known.
    pub(crate) fn find(&self, bytes: u64) {
        self.files_known.fetch_add(1, Relaxed);
        self.bytes_known.fetch_add(bytes, Relaxed);
    }

    /// Bytes came.
    pub(crate) fn come(&self, bytes: u64) {
        self.bytes_came.fetch_add(bytes, Relaxed);
    }

    /// Bytes that came are verified and written, or dropped.
    pub(crate) fn finish(&self, bytes: u64) {
        self.bytes_used.fetch_add(bytes, Relaxed);
    }

    /// Bytes are verified and written.
    pub(crate) fn write(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Bytes are there from before.
    pub(crate) fn resume(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Relaxed);
        self.bytes_resumed.fetch_add(bytes, Relaxed);
    }

    /// Bytes are in holes, and need not come.
    pub(crate) fn pass_over(&self, bytes: u64) {
        self.bytes_holes.fetch_add(bytes, Relaxed);
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Bytes that are known are in holes.
    pub(crate) fn find_hollow(&self, bytes: u64) {
        self.bytes_hollow.fetch_add(bytes, Relaxed);
    }

    /// Of a giver that does not count holes: bytes that it has sent, each once, and those that there are once all are known.
    pub(crate) fn sent(&self) -> (u64, Option<u64>) {
        let all = self.bytes_known.load(Relaxed).saturating_sub(self.bytes_hollow.load(Relaxed));
        (self.bytes_done.load(Relaxed), self.is_listed.load(Relaxed).then_some(all))
    }

    /// Files are complete.
    pub(crate) fn place(&self, files: u64) {
        self.files_done.fetch_add(files, Relaxed);
    }

    /// A file failed.
    pub(crate) fn fail(&self) {
        self.files_failed.fetch_add(1, Relaxed);
    }

    /// All files are known.
    pub(crate) fn end_list(&self) {
        self.is_listed.store(true, Relaxed);
    }

    pub(crate) fn wait_for(&self, what: Option<WaitsFor>) {
        let code = what.and_then(|what| WAITS.iter().position(|other| *other == what)).map_or(0, |at| at + 1);
        self.waits_for.store(code as u8, Relaxed);
    }

    pub(crate) fn progress(&self) -> Progress {
        let is_listed = self.is_listed.load(Relaxed);
        let (files_known, bytes_known) = (self.files_known.load(Relaxed), self.bytes_known.load(Relaxed));
        Progress {
            files_total: is_listed.then_some(files_known),
            bytes_total: is_listed.then_some(bytes_known),
            files_known,
            bytes_known,
            files_done: self.files_done.load(Relaxed),
            files_failed: self.files_failed.load(Relaxed),
            bytes_done: self.bytes_done.load(Relaxed),
            bytes_resumed: self.bytes_resumed.load(Relaxed),
            bytes_holes: self.bytes_holes.load(Relaxed),
            bytes_held: self.bytes_came.load(Relaxed).saturating_sub(self.bytes_used.load(Relaxed)),
            is_scanning: !is_listed,
            waits_for: usize::from(self.waits_for.load(Relaxed)).checked_sub(1).and_then(|at| WAITS.get(at).copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress__totals_are_known_at_the_end_of_the_list() {
        let tally = Tally::default();
        tally.find(100);
        tally.find(23);
        let progress = tally.progress();
        assert_eq!((progress.files_total, progress.files_known, progress.bytes_known), (None, 2, 123));
        assert!(progress.is_scanning);
        tally.end_list();
        let progress = tally.progress();
        assert_eq!((progress.files_total, progress.bytes_total, progress.is_scanning), (Some(2), Some(123), false));
    }

    #[test]
    fn wait_for__comes_back_as_it_was() {
        let tally = Tally::default();
        for what in WAITS.map(Some).into_iter().chain([None]) {
            tally.wait_for(what);
            assert_eq!(tally.progress().waits_for, what);
        }
    }
}
