//! Wakes the thread of a pump.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// A descriptor that becomes readable when somebody rings while the thread sleeps.
pub(crate) struct Bell {
    descriptor: OwnedFd,
    is_awake: AtomicBool,
}

impl Bell {
    pub(crate) fn new() -> std::io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { descriptor, is_awake: AtomicBool::new(true) })
    }

    /// Wakes it, if it sleeps.
    pub(crate) fn ring(&self) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            // It can only fail because it has been rung 2^64 times.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// It is about to sleep: who rings from now on wakes it. Look at the queue after this.
    pub(crate) fn hush(&self) {
        self.is_awake.store(false, Ordering::SeqCst);
    }

    /// It is awake. `is_rung` is whether the descriptor was readable: who rang may have been kept from writing until the
    /// sleep after, and what nobody reads would keep it awake for ever.
    pub(crate) fn wake(&self, is_rung: bool) {
        if self.is_awake.swap(true, Ordering::AcqRel) || is_rung {
            let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
