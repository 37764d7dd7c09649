//! A word of memory that others write concurrently.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A word that can be read. All loads are relaxed, and fences order them: on read-only memory no other loads are sure
/// to only read.
pub(crate) trait Load {
    fn load(&self) -> u64;
    /// All loads after it see at least what those before it saw.
    fn fence_acquire();
}

/// A word that can be written as well.
pub(crate) trait Store: Load {
    /// Relaxed.
    fn store(&self, value: u64);
    /// A reader that sees it also sees all earlier stores.
    fn store_release(&self, value: u64);
    /// A reader that sees a later store also sees all stores before this fence.
    fn fence_release();
}

impl Load for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn fence_acquire() {
        fence(Ordering::Acquire);
    }
}

impl Store for AtomicU64 {
    fn store(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn fence_release() {
        fence(Ordering::Release);
    }
}

/// A word of memory that is mapped read-only: a store would end the process, so it has none.
#[repr(transparent)]
pub(crate) struct ReadOnlyWord(AtomicU64);

impl Load for ReadOnlyWord {
    fn load(&self) -> u64 {
        Load::load(&self.0)
    }

    fn fence_acquire() {
        AtomicU64::fence_acquire();
    }
}
