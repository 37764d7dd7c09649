//! Wakes a thread that sleeps in a call of the system.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::Bell;

/// A descriptor that becomes readable when another thread rings while its owner sleeps. Ringing while the owner is
/// awake makes no system call.
pub struct ThreadWaker {
    bell: Bell,
    is_awake: AtomicBool,
}

impl ThreadWaker {
    /// Of a thread that is awake.
    pub fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { bell: Bell::new()?, is_awake: AtomicBool::new(true) }))
    }

    /// Wakes it, if it sleeps.
    pub fn ring(&self) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// It is about to sleep: a later ring wakes it. Check the queues after this.
    pub fn hush(&self) {
        self.is_awake.store(false, Ordering::SeqCst);
    }

    /// It is awake. `is_rung` is whether the descriptor was readable: a ring may write only during the next sleep, and
    /// unread bytes would keep the thread awake forever.
    pub fn wake(&self, is_rung: bool) {
        if self.is_awake.swap(true, Ordering::AcqRel) || is_rung {
            self.bell.clear();
        }
    }
}

impl AsFd for ThreadWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_rung(waker: &ThreadWaker) -> bool {
        poll(&mut [PollFd::new(waker, PollFlags::IN)], Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    fn wake__of_one_who_wrote_late_leaves_nothing() {
        let waker = ThreadWaker::new().unwrap();
        waker.ring();
        assert!(!is_rung(&waker), "it is awake");
        waker.hush();
        waker.ring();
        assert!(is_rung(&waker));
        waker.wake(true);
        assert!(!is_rung(&waker));
        // A ring does not write until it is awake.
        waker.hush();
        waker.is_awake.store(true, Ordering::SeqCst);
        waker.wake(false);
        waker.bell.ring();
        waker.hush();
        assert!(is_rung(&waker), "it does not sleep");
        waker.wake(true);
        waker.hush();
        assert!(!is_rung(&waker), "and sleeps then");
    }
}
