//! Children by fork(2), without exec: copies of the library as it is, which only make system calls.

use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// A child has copies of the descriptors of all cases, which then do not end: no other case runs during one that forks.
static FORKS: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// Held by a case that does not fork.
pub(crate) fn beside_others() -> RwLockReadGuard<'static, ()> {
    FORKS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a case that forks.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    FORKS.write().unwrap_or_else(PoisonError::into_inner)
}

/// A child, which ends with this value, and with the thread that forked.
pub(crate) struct Forked(libc::pid_t);

impl Forked {
    /// Forks. The child ends when `work` has: with status 0 if that returned true.
    pub(crate) fn new(work: impl FnOnce() -> bool) -> Self {
        // SAFETY: the child only makes system calls, and ends.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            // SAFETY: only numbers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let is_good = work();
            // SAFETY: it ends.
            unsafe { libc::_exit(i32::from(!is_good)) };
        }
        Self(child)
    }

    /// Waits for its end: its status, as waitpid(2) has it.
    pub(crate) fn status(mut self) -> i32 {
        let mut status = -1;
        // SAFETY: there is room for one number.
        unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        self.0 = 0;
        status
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if self.0 > 0 {
            // SAFETY: its number is the child's, which has not been waited for.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, std::ptr::null_mut(), 0);
            }
        }
    }
}
