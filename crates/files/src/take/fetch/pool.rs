//! Buffers that are used again.

use std::sync::OnceLock;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::format::blocks::BLOCK_BYTES;
use crate::take::fetch::buffer::Buffer;

/// Unused buffers: a fresh one costs the system a page fault for each 4 KiB.
#[derive(Clone, Debug)]
pub(crate) struct BufferPool {
    sizes: [BufferSize; 2],
}

/// Buffers of one size.
#[derive(Clone, Debug)]
struct BufferSize {
    bytes: usize,
    give: Sender<Buffer>,
    take: Receiver<Buffer>,
}

/// Buffers of a size that are kept.
const MAX_IDLE: usize = 16;
/// Many small files together have one of these,
const SMALL: usize = 1 << 20;
/// and a large one's block one of these.
const LARGE: usize = BLOCK_BYTES as usize;
/// Reuse a buffer only if at least this part of it (1/4) is needed.
const MIN_PART: usize = 4;

impl BufferPool {
    /// The one of this process: what many takers keep of it is no more than what one does.
    pub(crate) fn of_process() -> Self {
        static POOL: OnceLock<BufferPool> = OnceLock::new();
        POOL.get_or_init(Self::new).clone()
    }

    fn new() -> Self {
        let size = |bytes| {
            let (give, take) = bounded(MAX_IDLE);
            BufferSize { bytes, give, take }
        };
        Self { sizes: [SMALL, LARGE].map(size) }
    }

    /// A buffer with room for this many bytes, with arbitrary contents.
    pub(crate) fn take(&self, bytes: usize) -> Buffer {
        let size = self.sizes.iter().find(|size| bytes <= size.bytes).filter(|size| bytes > size.bytes / MIN_PART);
        size.map_or_else(|| Buffer::new(bytes), |size| size.take.try_recv().unwrap_or_else(|_| Buffer::new(size.bytes)))
    }

    /// Nobody needs this one any more.
    pub(crate) fn give(&self, buffer: Buffer) {
        if let Some(size) = self.sizes.iter().find(|size| size.bytes == buffer.len()) {
            // If there are enough, it is dropped.
            let _ = size.give.try_send(buffer);
        }
    }
}
