//! Buffers that are used again.

use crossbeam_channel::{Receiver, Sender, bounded};

use super::blocks::BLOCK_BYTES;

/// Buffers of the size of a block that nobody uses at present: a fresh one costs the system a thousand pages.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    give: Sender<Vec<u8>>,
    take: Receiver<Vec<u8>>,
}

/// Buffers that are kept.
const MOST_IDLE: usize = 16;
/// Smaller ones are as good fresh.
const LEAST: usize = 1 << 20;

impl Pool {
    pub(crate) fn new() -> Self {
        let (give, take) = bounded(MOST_IDLE);
        Self { give, take }
    }

    /// A buffer with room for so many bytes; what is in it is anything.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        if bytes <= LEAST || bytes > BLOCK_BYTES as usize {
            return vec![0; bytes];
        }
        self.take.try_recv().unwrap_or_else(|_| vec![0; BLOCK_BYTES as usize])
    }

    /// Nobody needs this one any more.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.len() == BLOCK_BYTES as usize {
            // If there are enough, it goes.
            let _ = self.give.try_send(buffer);
        }
    }
}
