//! Progress of a transfer.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fairwave_host::Lock;

use super::hold::{Hold, Holds};
pub(crate) use fairwave_host::WaitsFor;

/// Progress of a transfer at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files to move, once all are known. The server of a `get` never knows: the client chooses from the list.
    pub files_total: Option<u64>,
    /// Their bytes, once all are known.
    pub bytes_total: Option<u64>,
    /// Files known so far.
    pub files_known: u64,
    /// Their bytes.
    pub bytes_known: u64,
    /// Files that are complete at the destination, including those that were so at the start.
    pub files_done: u64,
    /// Files that failed.
    pub files_failed: u64,
    /// Bytes that are verified and at the destination: of complete files and of others.
    pub bytes_done: u64,
    /// Of those, bytes that were at the destination at the start.
    pub bytes_resumed: u64,
    /// And bytes in holes, which do not travel.
    pub bytes_holes: u64,
    /// Bytes of blocks that are incomplete, or not verified and written yet: those received, and those that an earlier
    /// session left. At the end of a session they are kept for the next one.
    pub bytes_held: u64,
    /// Of those, bytes that an earlier session left.
    pub bytes_kept: u64,
    /// Bytes that matched in an unfinished comparison (`--check`). At the giver: bytes for which the taker requested
    /// only the hashes, unless it is about to fetch them.
    pub bytes_compared: u64,
    /// Whether the tree is still being listed.
    pub is_scanning: bool,
    /// Whether this end gives the files.
    pub gives: bool,
    /// The bottleneck, if it is not the network's rate.
    pub waits_for: Option<WaitsFor>,
}

impl Progress {
    /// Bytes that were received, and are verified and at the destination.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_done.saturating_sub(self.bytes_resumed).saturating_sub(self.bytes_holes)
    }

    /// Bytes that were received, verified or not.
    pub fn bytes_come(&self) -> u64 {
        self.bytes_moved().saturating_add(self.bytes_held.saturating_sub(self.bytes_kept))
    }

    /// Bytes that another session need not fetch: those at the destination, and the received parts of incomplete
    /// blocks.
    pub fn bytes_there(&self) -> u64 {
        self.bytes_done.saturating_add(self.bytes_held)
    }
}

/// The counts behind a [`Progress`]: one thread writes each, any thread reads.
#[derive(Debug, Default)]
pub(crate) struct ProgressCounts {
    pub(crate) files_known: AtomicU64,
    pub(crate) bytes_known: AtomicU64,
    pub(crate) files_done: AtomicU64,
    pub(crate) files_failed: AtomicU64,
    pub(crate) bytes_done: AtomicU64,
    pub(crate) bytes_resumed: AtomicU64,
    pub(crate) bytes_holes: AtomicU64,
    bytes_came: AtomicU64,
    bytes_used: AtomicU64,
    bytes_kept: AtomicU64,
    bytes_compared: AtomicU64,
    is_listed: AtomicBool,
    /// Whether the peer chooses from the list: the total is unknown here.
    is_choice: AtomicBool,
    waits_for: AtomicU8,
    /// At a giver with a ticket for one transfer: what it gave of each file, once it is over.
    given: Lock<GivenFiles>,
    /// At a giver: what holds it.
    holds: Lock<Option<Holds>>,
}

/// Bytes that a session gave of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenFile {
    /// A hash of its path.
    pub(crate) name: [u8; 16],
    /// Each byte counted once.
    pub(crate) given_bytes: u64,
    /// Its bytes that are not in holes.
    pub(crate) data_bytes: u64,
}

/// Bytes that a session gave of each file, if counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum GivenFiles {
    /// Not needed.
    #[default]
    Uncounted,
    Counted(Vec<GivenFile>),
    /// Of more files than are counted.
    TooMany,
}

/// More files of one session are not counted one by one: 4 MiB.
const MAX_GIVEN: usize = 1 << 17;

const WAITS: [WaitsFor; 7] = [
    WaitsFor::List,
    WaitsFor::Peer,
    WaitsFor::Disk,
    WaitsFor::Sync,
    WaitsFor::Results,
    WaitsFor::Session,
    WaitsFor::Comparing,
];

impl ProgressCounts {
    /// Adds a known file.
    pub(crate) fn find(&self, bytes: u64) {
        self.files_known.fetch_add(1, Relaxed);
        self.bytes_known.fetch_add(bytes, Relaxed);
    }

    /// Adds received bytes.
    pub(crate) fn come(&self, bytes: u64) {
        self.bytes_came.fetch_add(bytes, Relaxed);
    }

    /// Bytes that an earlier session left are held, to be verified with the rest of their blocks.
    pub(crate) fn recall(&self, bytes: u64) {
        self.bytes_came.fetch_add(bytes, Relaxed);
        self.bytes_kept.fetch_add(bytes, Relaxed);
    }

    /// Subtracts bytes kept from an earlier session: they are verified and written, or were wrong.
    pub(crate) fn drop_kept(&self, bytes: u64) {
        // Every subtraction follows its addition.
        self.bytes_kept.fetch_sub(bytes, Relaxed);
    }

    /// Bytes that are verified and written were left by an earlier session.
    pub(crate) fn resume_kept(&self, bytes: u64) {
        self.bytes_resumed.fetch_add(bytes, Relaxed);
    }

    /// Bytes that are held are verified and written, or dropped.
    pub(crate) fn finish(&self, bytes: u64) {
        self.bytes_used.fetch_add(bytes, Relaxed);
    }

    /// Bytes are verified and written.
    pub(crate) fn write(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Adds bytes that existed at the start.
    pub(crate) fn resume(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Relaxed);
        self.bytes_resumed.fetch_add(bytes, Relaxed);
    }

    /// Adds bytes that are in holes, and need not be sent.
    pub(crate) fn pass_over(&self, bytes: u64) {
        self.bytes_holes.fetch_add(bytes, Relaxed);
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// At a giver: at its end it is to be known what it gave of each file.
    pub(crate) fn count_files(&self) {
        *self.given.lock() = GivenFiles::Counted(Vec::new());
    }

    /// Ends a giver. `count` returns the bytes given per file, for at most the given number of files.
    pub(crate) fn give_files(&self, count: impl FnOnce(usize) -> Option<Vec<GivenFile>>) {
        if *self.given.lock() != GivenFiles::Uncounted {
            let given = count(MAX_GIVEN).map_or(GivenFiles::TooMany, GivenFiles::Counted);
            *self.given.lock() = given;
        }
    }

    /// Takes out what a giver that is over gave of each file.
    pub(crate) fn take_given(&self) -> GivenFiles {
        std::mem::take(&mut *self.given.lock())
    }

    /// Adds bytes that matched, or whose hashes alone were requested.
    pub(crate) fn compare(&self, bytes: u64) {
        self.bytes_compared.fetch_add(bytes, Relaxed);
    }

    /// Subtracts bytes whose comparison has ended.
    pub(crate) fn end_comparison(&self, bytes: u64) {
        // Every subtraction follows its addition.
        self.bytes_compared.fetch_sub(bytes, Relaxed);
    }

    /// The peer chooses from the list: its sum is not a total of the transfer.
    pub(crate) fn let_choose(&self) {
        self.is_choice.store(true, Relaxed);
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

    /// At a giver: what holds it from now on; nothing once it is over.
    pub(crate) fn hold(&self, hold: Option<Hold>) {
        let (mut holds, now) = (self.holds.lock(), Instant::now());
        match hold {
            Some(hold) => holds.get_or_insert_with(|| Holds::new(now)).set(now, hold),
            None => *holds = None,
        }
    }

    /// The bottleneck of a giver for most of the last second; `None` at a taker.
    fn held(&self) -> Option<Hold> {
        let mut holds = self.holds.lock();
        holds.as_mut().map(|holds| holds.most(Instant::now()))
    }

    /// Whether all bytes that are to be moved have been.
    pub(crate) fn is_all_done(&self) -> bool {
        self.is_listed.load(Relaxed) && self.bytes_known.load(Relaxed) <= self.bytes_done.load(Relaxed)
    }

    pub(crate) fn progress(&self) -> Progress {
        let is_listed = self.is_listed.load(Relaxed);
        let has_totals = is_listed && !self.is_choice.load(Relaxed);
        let (files_known, bytes_known) = (self.files_known.load(Relaxed), self.bytes_known.load(Relaxed));
        let said = usize::from(self.waits_for.load(Relaxed)).checked_sub(1).and_then(|at| WAITS.get(at).copied());
        let held = self.held();
        Progress {
            files_total: has_totals.then_some(files_known),
            bytes_total: has_totals.then_some(bytes_known),
            files_known,
            bytes_known,
            files_done: self.files_done.load(Relaxed),
            files_failed: self.files_failed.load(Relaxed),
            bytes_done: self.bytes_done.load(Relaxed),
            bytes_resumed: self.bytes_resumed.load(Relaxed),
            bytes_holes: self.bytes_holes.load(Relaxed),
            bytes_held: self.bytes_came.load(Relaxed).saturating_sub(self.bytes_used.load(Relaxed)),
            bytes_kept: self.bytes_kept.load(Relaxed),
            bytes_compared: self.bytes_compared.load(Relaxed),
            is_scanning: !is_listed,
            gives: held.is_some(),
            waits_for: said.or(held.and_then(|hold| match hold {
                Hold::Nothing => None,
                Hold::Disk => Some(WaitsFor::Disk),
                Hold::Comparing => Some(WaitsFor::Comparing),
                Hold::Peer => Some(if is_listed { WaitsFor::Peer } else { WaitsFor::List }),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress__totals_are_known_at_the_end_of_the_list() {
        let tally = ProgressCounts::default();
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
    fn progress__of_what_the_other_end_chooses_has_no_totals() {
        let tally = ProgressCounts::default();
        tally.let_choose();
        tally.find(100);
        tally.end_list();
        let progress = tally.progress();
        assert_eq!((progress.files_total, progress.bytes_total, progress.is_scanning), (None, None, false));
    }

    #[test]
    fn wait_for__comes_back_as_it_was() {
        let tally = ProgressCounts::default();
        for what in WAITS.map(Some).into_iter().chain([None]) {
            tally.wait_for(what);
            assert_eq!(tally.progress().waits_for, what);
        }
    }
}
