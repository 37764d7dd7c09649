//! Memory that a disk can take data from without a copy.

use std::ops::{Deref, DerefMut};

/// Alignment of direct I/O, bytes, in memory and in a file: enough for all common disks and file systems.
pub(crate) const ALIGNMENT: usize = 4096;

/// Bytes of which the first is at a multiple of [`ALIGNMENT`].
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    room: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Of zeros.
    pub(crate) fn new(length: usize) -> Self {
        let room = vec![0; length + ALIGNMENT];
        // If the alignment is unknown, direct writes are refused, and fall back to the page cache.
        let start = Some(room.as_ptr().align_offset(ALIGNMENT)).filter(|start| *start <= ALIGNMENT).unwrap_or(0);
        Self { room, start, length }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new__begins_at_a_page() {
        for length in [0, 1, 4095, 4096, 100_000, 4 << 20] {
            let mut buffer = Buffer::new(length);
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % ALIGNMENT), (length, 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}
