//! Waiting until the other end has left room.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Blocks threads that have more to send than there is room for. The system wakes them, as it does in its own calls: a
/// signal ends the wait with EINTR, or not, as its handler was installed.
#[derive(Default)]
pub(crate) struct RoomBell {
    descriptor: OnceLock<OwnedFd>,
    waiting: AtomicU64,
}

impl RoomBell {
    /// Waits until another thread rings, unless `is_over` reports that the wait is unnecessary. `call` makes the system
    /// call that waits, during which no lock is held.
    pub(crate) fn wait(
        &self,
        is_over: impl FnOnce() -> bool,
        call: impl FnOnce(&dyn Fn() -> rustix::io::Result<usize>) -> rustix::io::Result<usize>,
    ) -> rustix::io::Result<()> {
        if self.descriptor.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?;
            // Of two that are made at once one is enough.
            let _ = self.descriptor.set(made);
        }
        let Some(descriptor) = self.descriptor.get() else { return Ok(()) };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // A later ring has seen the waiter.
        let outcome = if is_over() { Ok(0) } else { call(&|| rustix::io::read(descriptor, &mut [0_u8; 8])) };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome.map(drop)
    }

    /// Something has changed: all that wait look again.
    pub(crate) fn ring(&self) {
        let waiting = self.waiting.load(Ordering::SeqCst);
        if waiting > 0
            && let Some(descriptor) = self.descriptor.get()
        {
            // It can only fail because it has been rung 2^64 times.
            let _ = rustix::io::write(descriptor, &waiting.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn wait__ends_for_all_that_wait() {
        let (bell, has_room) = (Arc::new(RoomBell::default()), Arc::new(AtomicBool::new(false)));
        let (tell, threads) = std::sync::mpsc::channel();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (bell, has_room) = (Arc::clone(&bell), Arc::clone(&has_room));
                let tell = tell.clone();
                thread::spawn(move || {
                    tell.send(rustix::thread::gettid()).unwrap();
                    while !has_room.load(Ordering::SeqCst) {
                        bell.wait(|| has_room.load(Ordering::SeqCst), |wait| wait()).unwrap();
                    }
                })
            })
            .collect();
        threads.iter().take(waiting.len()).for_each(fairwave_testing::wait_until_asleep);
        has_room.store(true, Ordering::SeqCst);
        bell.ring();
        for thread in waiting {
            thread.join().unwrap();
        }
    }
}
