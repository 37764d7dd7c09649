//! The thread that drives an endpoint, which waits for nothing but the network.
//!
//! A file system may keep a thread waiting for seconds, and a call there holds up all sessions of the process. The few
//! functions through which files and directories are opened call [`assert_may_wait`]: in debug builds, and so in every
//! test with real endpoints, a call from the network thread is a panic.

use std::cell::Cell;

thread_local! {
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread drives an endpoint, as long as the guard lives.
pub(crate) struct NetworkThread(());

impl NetworkThread {
    pub(crate) fn enter() -> Self {
        IS_HERE.set(true);
        Self(())
    }
}

impl Drop for NetworkThread {
    fn drop(&mut self) {
        IS_HERE.set(false);
    }
}

/// Whether the calling thread drives an endpoint.
pub(crate) fn is_here() -> bool {
    IS_HERE.get()
}

/// The caller is about to open or look at a file.
///
/// # Panics
///
/// In debug builds, on a network thread.
#[track_caller]
pub fn assert_may_wait() {
    debug_assert!(!is_here(), "the network thread touches the file system");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assert_may_wait__not_on_the_network_thread() {
        assert_may_wait();
        let _here = NetworkThread::enter();
        assert!(std::panic::catch_unwind(assert_may_wait).is_err());
    }
}
