//! The file at the destination of which a new one is made.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

use fairwave_host::Lock;
use rustix::io::{Errno, pread};

use super::chunks::{ChunkKey, ChunkSizes};

/// Bytes of a file that are cut by one job.
const SEGMENT_BYTES: u64 = 8 << 20;
/// Memory of a chunk in an index, bytes.
const CHUNK_BYTES: u64 = size_of::<(ChunkKey, u64)>() as u64;

/// The older file at a new one's place: its chunks, once they are known.
#[derive(Debug)]
pub(crate) struct Base {
    /// Its length when the new file was planned.
    bytes: u64,
    sizes: ChunkSizes,
    /// The next byte that no job has.
    next: AtomicU64,
    /// Segments that are not cut yet.
    left: AtomicU64,
    found: Lock<Vec<(ChunkKey, u64)>>,
    /// Each chunk, with its offset, by its key.
    index: OnceLock<Box<[(ChunkKey, u64)]>>,
    /// Blocks of the new file that are to be fetched, by their numbers in the tree.
    wanted: Lock<Vec<Range<u64>>>,
    /// Their number, without those whose lists are here.
    unlisted: AtomicU64,
}

/// Bytes of a block that the older file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedRange {
    /// Offset in the block.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Offset in the older file.
    pub(crate) from: u64,
}

impl Base {
    /// An older file, if its length and the new one's promise that they have much in common.
    pub(crate) fn new(new_bytes: u64, bytes: u64) -> Option<Self> {
        let sizes = ChunkSizes::between(new_bytes, bytes)?;
        Some(Self {
            bytes,
            sizes,
            next: AtomicU64::new(0),
            left: AtomicU64::new(bytes.div_ceil(SEGMENT_BYTES)),
            found: Lock::default(),
            index: OnceLock::new(),
            wanted: Lock::default(),
            unlisted: AtomicU64::new(0),
        })
    }

    /// Max memory of its index, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.max_chunks() * CHUNK_BYTES
    }

    /// A file that was made to have more chunks is known in part.
    fn max_chunks(&self) -> u64 {
        2 * self.sizes.chunks_of(self.bytes)
    }

    /// Blocks of the new file are to be fetched.
    pub(crate) fn want(&self, blocks: Range<u64>) {
        self.unlisted.fetch_add(blocks.end - blocks.start, AcqRel);
        self.wanted.lock().push(blocks);
    }

    /// Takes the blocks that are to be fetched.
    pub(crate) fn take_wanted(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.wanted.lock())
    }

    /// Whether lists of blocks are still to come.
    pub(crate) fn is_used(&self) -> bool {
        self.unlisted.load(Relaxed) > 0
    }

    /// The next segment for a job, unless all have one.
    pub(crate) fn next_segment(&self) -> Option<Range<u64>> {
        let start = self.next.fetch_add(SEGMENT_BYTES, Relaxed);
        (start < self.bytes).then(|| start..self.bytes.min(start + SEGMENT_BYTES))
    }

    /// Cuts a segment; returns whether it was the last of all. Unreadable bytes have no chunks.
    pub(crate) fn cut(&self, file: rustix::io::Result<OwnedFd>, segment: &Range<u64>, room: &mut Vec<u8>) -> bool {
        let around = self.sizes.around(segment, self.bytes);
        if file.and_then(|file| read(&file, &around, room)).is_ok() {
            let part = (segment.start - around.start) as usize..(segment.end - around.start) as usize;
            // Of those at an edge the one that starts in the segment.
            let chunks = self.sizes.cut(room, part.clone()).filter(|(chunk, _)| chunk.start >= part.start);
            let whole = chunks.filter(|(chunk, _)| self.sizes.is_whole(chunk));
            let found: Vec<_> = whole.map(|(chunk, key)| (key, around.start + chunk.start as u64)).collect();
            let mut all = self.found.lock();
            let room = self.max_chunks().saturating_sub(all.len() as u64) as usize;
            all.extend(found.into_iter().take(room));
        }
        if self.left.fetch_sub(1, AcqRel) != 1 {
            return false;
        }
        let mut index = std::mem::take(&mut *self.found.lock());
        index.sort_unstable();
        index.dedup_by_key(|(key, _)| *key);
        let _ = self.index.set(index.into());
        true
    }

    /// The ranges of a block that the older file has, by the block's list.
    pub(crate) fn copies(&self, list: &[u8], block_bytes: u64) -> Vec<CopiedRange> {
        self.unlisted.fetch_sub(1, AcqRel);
        let index = self.index.get().map_or(&[][..], |index| index);
        let mut copies: Vec<CopiedRange> = Vec::new();
        for chunk in self.sizes.read(list, block_bytes) {
            let Ok(at) = index.binary_search_by_key(&chunk.key, |(key, _)| *key) else { continue };
            // The part of it in the block.
            let skipped = chunk.start.min(0).unsigned_abs();
            let start = chunk.start.max(0).unsigned_abs();
            let bytes = (chunk.bytes - skipped).min(block_bytes - start);
            let from = index[at].1 + skipped;
            match copies.last_mut() {
                Some(last) if (last.start + last.bytes, last.from + last.bytes) == (start, from) => last.bytes += bytes,
                _ => copies.push(CopiedRange { start, bytes, from }),
            }
        }
        copies
    }
}

/// Reads a range of a file.
fn read(file: &OwnedFd, range: &Range<u64>, room: &mut Vec<u8>) -> rustix::io::Result<()> {
    room.resize((range.end - range.start) as usize, 0);
    read_at(file, range.start, room)
}

/// Fills a buffer from a file.
pub(crate) fn read_at(file: &OwnedFd, mut offset: u64, mut into: &mut [u8]) -> rustix::io::Result<()> {
    while !into.is_empty() {
        match pread(file, &mut *into, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => {
                into = &mut into[count..];
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const MIB: usize = 1 << 20;

    fn content(seed: u8, bytes: usize) -> Vec<u8> {
        let mut content = vec![0; bytes];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut content);
        content
    }

    /// Cuts a file by all of its jobs.
    fn base(old: &[u8], new_bytes: usize) -> Base {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("old");
        std::fs::write(&path, old).unwrap();
        let base = Base::new(new_bytes as u64, old.len() as u64).unwrap();
        let mut lasts = Vec::new();
        while let Some(segment) = base.next_segment() {
            lasts.push(base.cut(Ok(File::open(&path).unwrap().into()), &segment, &mut Vec::new()));
        }
        assert_eq!(lasts.iter().filter(|is_last| **is_last).count(), 1);
        base
    }

    #[test]
    fn copies__of_segments_and_across_their_edges() {
        let old = content(1, 17 * MIB + 5);
        let new = [b"inserted", &old[MIB..5 * MIB - 8]].concat();
        let base = base(&old, new.len());
        let list = ChunkSizes::of(new.len() as u64).list(&new, 0..new.len());
        let copies = base.copies(&list, new.len() as u64);
        assert!((1..3).contains(&copies.len()), "{copies:?}");
        for copy in &copies {
            let range = |at: u64| at as usize..(at + copy.bytes) as usize;
            assert!(new[range(copy.start)] == old[range(copy.from)]);
        }
        assert!(copies.iter().map(|copy| copy.bytes).sum::<u64>() > 3 * MIB as u64);
    }

    #[test]
    fn cut__a_base_knows_only_chunks_between_natural_cuts() {
        let old = content(1, 2 * MIB);
        let base = base(&old, old.len());
        // A giver that knows a part of the older file, and guesses the next byte.
        for bytes in [1, 4 << 10, 8 << 10, 16 << 10] {
            let guess = &old[MIB..MIB + bytes];
            let list = [&[0; 6][..], &ChunkKey::of(guess)].concat();
            assert_eq!(base.copies(&list, 4 << 20), [], "{bytes}");
        }
        // Short ones at the end of a file would be guessed in no time.
        let index = base.index.get().unwrap();
        assert!(index.iter().all(|(key, _)| key.bytes() >= 4 << 10));
    }

    #[test]
    fn cut__what_cannot_be_read_has_no_chunks() {
        let base = Base::new(MIB as u64, MIB as u64).unwrap();
        assert!(base.cut(Err(Errno::NOENT), &base.next_segment().unwrap(), &mut Vec::new()));
        assert_eq!((base.copies(&[7; 100], MIB as u64), base.next_segment()), (Vec::new(), None));
    }
}
