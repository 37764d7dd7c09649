//! Room on the disk for large files, set aside a step ahead of what is written.
//!
//! It keeps a file in few pieces. A length is only what a list claims, and so no more is set aside than a few times
//! what has come; what is not used is free again when the session ends.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fairwave_host::Lock;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::format::blocks::BLOCK_BYTES;
use crate::sys::preallocate;
use crate::take::disk::sparse::punch;
use crate::take::resume::key::TemporaryKey;

/// Bytes that are preallocated at a time: four blocks, so at most four times the bytes written.
pub(crate) const STEP_BYTES: u64 = 4 * BLOCK_BYTES;
/// Holes that are looked for in a step: no more pages are in one.
const MAX_LOOKS: u64 = STEP_BYTES / 4096;

/// The steps of files of which not all is written.
#[derive(Debug)]
pub(crate) struct Aside {
    is_possible: AtomicBool,
    /// By the file and the step's number in it: missing bytes.
    steps: Lock<BTreeMap<(TemporaryKey, u64), u64>>,
}

impl Aside {
    pub(crate) fn new(is_possible: bool) -> Self {
        Self { is_possible: AtomicBool::new(is_possible), steps: Lock::default() }
    }

    pub(crate) fn is_possible(&self) -> bool {
        self.is_possible.load(Relaxed)
    }

    /// Nothing is set aside from now on.
    pub(crate) fn forbid(&self) {
        self.is_possible.store(false, Relaxed);
    }

    /// A block of a file of `file_bytes` is about to be written: sets aside the step that it lies in. Whether room is
    /// below it.
    pub(crate) fn set(
        &self,
        key: &TemporaryKey,
        file: impl AsFd,
        file_bytes: u64,
        offset: u64,
        block_bytes: u64,
    ) -> bool {
        let number = offset / STEP_BYTES;
        let start = number * STEP_BYTES;
        let step_bytes = STEP_BYTES.min(file_bytes.saturating_sub(start));
        let mut steps = self.steps.lock();
        let left = match steps.get(&(*key, number)) {
            Some(left) => *left,
            None => match preallocate(file, start, step_bytes) {
                // A part of it may be allocated.
                Ok(()) | Err(Errno::NOSPC | Errno::DQUOT) => step_bytes,
                Err(_) => return false,
            },
        };
        match left.saturating_sub(block_bytes) {
            0 => _ = steps.remove(&(*key, number)),
            left => _ = steps.insert((*key, number), left),
        }
        true
    }

    /// A file is complete, or is no more.
    pub(crate) fn forget(&self, key: &TemporaryKey) {
        let mut steps = self.steps.lock();
        let mine: Vec<_> = steps.range((*key, 0)..=(*key, u64::MAX)).map(|(step, _)| *step).collect();
        for step in mine {
            steps.remove(&step);
        }
    }

    /// Removes the incomplete steps and returns them with their offsets in the file.
    pub(crate) fn take(&self) -> Vec<(TemporaryKey, u64)> {
        let steps = std::mem::take(&mut *self.steps.lock());
        steps.into_keys().map(|(key, number)| (key, number * STEP_BYTES)).collect()
    }
}

/// Gives back what is set aside in a part of a file, and not written. That reads as a hole, and as one it stays: no
/// byte changes.
pub(crate) fn give_back(file: impl AsFd, start: u64, end: u64) {
    let (file, mut at) = (file.as_fd(), start);
    for _ in 0..=MAX_LOOKS.max((end - start) / STEP_BYTES) {
        let Ok(hole) = seek(file, SeekFrom::Hole(at)) else { return };
        if hole >= end {
            return;
        }
        // Without data behind it, it reaches to the end.
        let data = seek(file, SeekFrom::Data(hole)).unwrap_or(end).min(end);
        if data <= hole || !punch(file, hole, data - hole).unwrap_or(false) {
            return;
        }
        at = data;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    const KEY: TemporaryKey = [1; 16];

    fn occupied(file: &File) -> u64 {
        file.metadata().unwrap().blocks() * 512
    }

    /// A file of this many steps, if the file system can preallocate.
    fn file(steps: u64) -> Option<File> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(steps * STEP_BYTES).unwrap();
        let aside = Aside::new(true);
        if aside.set(&KEY, &file, steps * STEP_BYTES, 0, BLOCK_BYTES) {
            return Some(file);
        }
        println!("skipped: this file system sets nothing aside");
        None
    }

    #[test]
    fn set__a_step_at_a_time_and_back() {
        let Some(file) = file(8) else { return };
        let (aside, bytes) = (Aside::new(true), 8 * STEP_BYTES);
        for block in [0, 1, 13] {
            assert!(aside.set(&KEY, &file, bytes, block * BLOCK_BYTES, BLOCK_BYTES));
            file.write_all_at(&vec![7; BLOCK_BYTES as usize], block * BLOCK_BYTES).unwrap();
        }
        assert!((2 * STEP_BYTES..3 * STEP_BYTES).contains(&occupied(&file)), "{}", occupied(&file));
        let steps = aside.take();
        assert_eq!(steps, [(KEY, 0), (KEY, 3 * STEP_BYTES)]);
        for (_, start) in steps {
            give_back(&file, start, start + STEP_BYTES);
        }
        assert!((3 * BLOCK_BYTES..=3 * BLOCK_BYTES + (64 << 10)).contains(&occupied(&file)), "{}", occupied(&file));
        let mut read = vec![0; BLOCK_BYTES as usize];
        for block in 0..32 {
            file.read_exact_at(&mut read, block * BLOCK_BYTES).unwrap();
            let byte = if [0, 1, 13].contains(&block) { 7 } else { 0 };
            assert!(read.iter().all(|read| *read == byte), "block {block}");
        }
    }

    #[test]
    fn take__nothing_of_what_is_complete() {
        let Some(file) = file(2) else { return };
        let (aside, bytes) = (Aside::new(true), STEP_BYTES + 10);
        for block in 0..4 {
            aside.set(&KEY, &file, bytes, block * BLOCK_BYTES, BLOCK_BYTES);
        }
        aside.set(&KEY, &file, bytes, STEP_BYTES, 10);
        assert_eq!(aside.take(), []);
        aside.set(&KEY, &file, bytes, 0, BLOCK_BYTES);
        aside.set(&[2; 16], &file, bytes, 0, BLOCK_BYTES);
        aside.forget(&KEY);
        assert_eq!(aside.take(), [([2; 16], 0)]);
    }
}
