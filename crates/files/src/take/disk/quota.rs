//! Limits the bytes of uploads into a directory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::{Held, Lock};
use fairwave_units::Bytes;
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstatfs, statat};
use thiserror::Error;

use crate::sys::syncfs;
use crate::take::disk::file_system::keeps_count;
use crate::take::disk::tree::Tree;
use crate::take::resume::key::TemporaryKey;

/// Limit of the bytes that the entries below a directory occupy. All transfers into it share one quota.
///
/// Bytes are claimed before they are written: a claim that does not fit is refused, so concurrent transfers cannot
/// exceed the limit. Existing entries of any origin count: they are measured before the first claim, and again when one
/// would be refused, since some may have been removed. Each file, directory and link occupies at least a page, empty or
/// not.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    shared: Arc<QuotaShared>,
}

#[derive(Debug)]
struct QuotaShared {
    limit: u64,
    state: Lock<QuotaState>,
    /// Held during a measurement.
    measuring: Lock<()>,
}

#[derive(Debug, Default)]
struct QuotaState {
    /// Time and duration of the last measurement; `None` before the first.
    measured: Option<(Instant, Duration)>,
    /// Bytes measured, and claimed since.
    used: u64,
    /// Claims of which not all is on the disk.
    open: u64,
    /// Bytes claimed since the start of a measurement.
    since: u64,
    /// Claims of incomplete files, since the start of a measurement.
    unfinished: HashMap<TemporaryKey, u64>,
}

/// Permission to write this many bytes. Dropped when they are written.
#[must_use]
#[derive(Debug)]
pub(crate) struct Reservation {
    quota: Quota,
    bytes: u64,
}

/// There is no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("quota of uploads exceeded: limit {limit}, {left:.2} left")]
pub(crate) struct OverQuota {
    limit: Bytes,
    left: Bytes,
}

/// Min space of an entry, bytes.
pub(crate) const PAGE: u64 = 4096;
/// It is not measured more often.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// Nor for more than a tenth of the time.
const PAUSE_FACTOR: u32 = 10;

impl Quota {
    pub(crate) fn new(limit: Bytes) -> Self {
        let (state, measuring) = (Lock::default(), Lock::over_leaves(()));
        Self { shared: Arc::new(QuotaShared { limit: limit.get(), state, measuring }) }
    }

    /// Claims this many bytes below a directory, in whole pages.
    pub(crate) fn claim(&self, tree: &Tree, bytes: u64) -> Result<Reservation, OverQuota> {
        let bytes = bytes.div_ceil(PAGE).max(1).saturating_mul(PAGE);
        self.fit(tree, bytes)?;
        let mut state = self.lock();
        // Another claim may have been made in between.
        if state.used.saturating_add(bytes) > self.shared.limit {
            return Err(self.over(&state));
        }
        state.used += bytes;
        state.since += bytes;
        state.open += bytes;
        Ok(Reservation { quota: self.clone(), bytes })
    }

    /// Claims bytes for a part of a file: [`Quota::discard`] frees all claims of the file.
    pub(crate) fn claim_part(&self, tree: &Tree, key: &TemporaryKey, bytes: u64) -> Result<Reservation, OverQuota> {
        let claim = self.claim(tree, bytes)?;
        *self.lock().unfinished.entry(*key).or_default() += claim.bytes;
        Ok(claim)
    }

    /// Whether this many bytes fit, as far as is known.
    pub(crate) fn fit(&self, tree: &Tree, bytes: u64) -> Result<(), OverQuota> {
        let is_fit =
            |state: &QuotaState| state.measured.is_some() && state.used.saturating_add(bytes) <= self.shared.limit;
        if is_fit(&self.lock()) {
            return Ok(());
        }
        let _measuring = self.shared.measuring.lock();
        let before = {
            let mut state = self.lock();
            let pause = |(at, took): (Instant, Duration)| at.elapsed() < MIN_PAUSE.max(took * PAUSE_FACTOR);
            if is_fit(&state) {
                return Ok(());
            }
            if state.measured.is_some_and(pause) {
                return Err(self.over(&state));
            }
            // The measurement finds their actual size: it may be less than was claimed.
            state.unfinished.clear();
            state.since = 0;
            state.open
        };
        let begun = Instant::now();
        let found = measure(tree);
        let mut state = self.lock();
        // Concurrent writes may have been measured or not, and count in any case.
        state.used = found.saturating_add(before).saturating_add(state.since);
        state.measured = Some((Instant::now(), begun.elapsed()));
        if is_fit(&state) { Ok(()) } else { Err(self.over(&state)) }
    }

    /// Free bytes.
    pub(crate) fn left(&self) -> u64 {
        self.shared.limit.saturating_sub(self.lock().used)
    }

    /// A file is whole: what was claimed for it stays.
    pub(crate) fn keep(&self, key: &TemporaryKey) {
        self.lock().unfinished.remove(key);
    }

    /// Removes a file that is not whole.
    pub(crate) fn discard(&self, key: &TemporaryKey, remove: impl FnOnce()) {
        // A measurement between the two would not find it, and it would be free twice.
        let _measuring = self.shared.measuring.lock();
        remove();
        let mut state = self.lock();
        let bytes = state.unfinished.remove(key).unwrap_or(0);
        state.used = state.used.saturating_sub(bytes);
    }

    /// Removes an entry of this size, whether it was measured or claimed.
    pub(crate) fn free(&self, bytes: u64, remove: impl FnOnce()) {
        let _measuring = self.shared.measuring.lock();
        remove();
        let mut state = self.lock();
        state.used = state.used.saturating_sub(bytes);
    }

    fn over(&self, state: &QuotaState) -> OverQuota {
        let left = self.shared.limit.saturating_sub(state.used);
        OverQuota { limit: Bytes::new(self.shared.limit), left: Bytes::new(left) }
    }

    fn lock(&self) -> Held<'_, QuotaState> {
        self.shared.state.lock()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.quota.lock().open -= self.bytes;
    }
}

/// Bytes that the entries below a directory occupy; an unreadable directory counts for itself.
fn measure(tree: &Tree) -> u64 {
    // Elsewhere, what a file occupies is known when it is written.
    if !fstatfs(tree.root()).is_ok_and(|stat| keeps_count(stat.f_type as u64)) {
        let _ = syncfs(tree.root());
    }
    let (mut sum, mut waiting) = (0_u64, vec![Vec::new()]);
    while let Some(path) = waiting.pop() {
        let Ok(directory) = tree.directory(&path) else { continue };
        // Read through a separate descriptor: the destination's is shared, with its read position.
        let Ok(entries) = Dir::read_from(&directory) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            sum = sum.saturating_add(occupied(&stat));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                waiting.push(if path.is_empty() { name.to_vec() } else { [&path[..], b"/", name].concat() });
            }
        }
    }
    sum
}

pub(crate) fn occupied(stat: &Stat) -> u64 {
    // In blocks of 512 bytes, whatever the file system's are.
    stat.st_blocks.cast_unsigned().saturating_mul(512).max(PAGE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const KIB: u64 = 1 << 10;

    fn place() -> (tempfile::TempDir, Tree) {
        let place = tempfile::tempdir().unwrap();
        let tree = Tree::open(place.path()).unwrap();
        (place, tree)
    }

    #[test]
    fn claim__no_more_than_is_left() {
        let (place, tree) = place();
        fs::create_dir(place.path().join("d")).unwrap();
        fs::write(place.path().join("d/a"), [1; 10]).unwrap();
        // Two pages are there.
        let quota = Quota::new(Bytes::new(40 * KIB));
        drop(quota.claim(&tree, 20 * KIB).unwrap());
        drop(quota.claim(&tree, 0).unwrap());
        assert_eq!(quota.left(), 8 * KIB);
        let error = quota.claim(&tree, 9 * KIB).unwrap_err();
        assert_eq!(error, OverQuota { limit: Bytes::new(40 * KIB), left: Bytes::new(8 * KIB) });
        drop(quota.claim(&tree, 8 * KIB).unwrap());
        assert!(quota.claim(&tree, 1).is_err());
    }

    #[test]
    fn claim__what_somebody_removed_is_free_again() {
        let (place, tree) = place();
        fs::write(place.path().join("a"), vec![1; 100_000]).unwrap();
        let quota = Quota::new(Bytes::new(104 * KIB));
        assert!(quota.claim(&tree, 20 * KIB).is_err());
        fs::remove_file(place.path().join("a")).unwrap();
        let until = Instant::now() + fairwave_testing::LIMIT;
        while quota.claim(&tree, 20 * KIB).is_err() {
            assert!(Instant::now() < until, "it is measured again");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn claim__many_at_once_are_never_more_than_the_limit() {
        let (place, tree) = place();
        let limit = 200 * 4 * KIB;
        let quota = Quota::new(Bytes::new(limit));
        let made: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let (quota, tree, place) = (quota.clone(), &tree, place.path());
                    scope.spawn(move || {
                        let name = |i: usize| place.join(format!("{thread}-{i}"));
                        (0..100)
                            .filter(|i| {
                                let claim = quota.claim(tree, 4 * KIB);
                                claim.map(|_claim| fs::write(name(*i), [1; 4096]).unwrap()).is_ok()
                            })
                            .count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(made, 200);
        // Repeated measurements are equal.
        assert_eq!([measure(&tree), measure(&tree)], [limit; 2]);
    }

    #[test]
    fn discard__a_part_of_a_file_is_free_again() {
        let (_place, tree) = place();
        let quota = Quota::new(Bytes::new(64 * KIB));
        drop(quota.claim_part(&tree, &[1; 16], 40 * KIB).unwrap());
        drop(quota.claim_part(&tree, &[1; 16], 10 * KIB).unwrap());
        assert_eq!(quota.left(), 12 * KIB);
        quota.discard(&[1; 16], || ());
        assert_eq!(quota.left(), 64 * KIB);
        drop(quota.claim_part(&tree, &[1; 16], 40 * KIB).unwrap());
        quota.keep(&[1; 16]);
        quota.discard(&[1; 16], || ());
        assert_eq!(quota.left(), 24 * KIB);
    }
}
