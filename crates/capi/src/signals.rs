//! Signals are held back while the library works, and delivered while it waits.
//!
//! A program may call `send(2)`, `recv(2)` and `close(2)` in a signal handler. A handler that interrupted a call of the
//! library while that held a lock, and called the library, would wait for that lock forever. So a call holds back the
//! signals of its thread, except those that report a fault of the program, and delivers them during each system call in
//! which it may wait: there it holds no lock. The library's own threads take no signals.

use std::cell::Cell;
use std::mem::MaybeUninit;

thread_local! {
    /// The signals that the thread held back before the call of the library that is under way, if there is one.
    static BEFORE: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Signals of this thread wait, as long as this lives.
pub(crate) struct HeldBack {
    before: libc::sigset_t,
    /// Of the call that a handler of this thread has interrupted.
    interrupted: Option<libc::sigset_t>,
}

/// Signals that report a fault: they cannot wait.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

#[expect(unsafe_code, reason = "signal masks are the C library's")]
fn set_mask(mask: &libc::sigset_t) -> libc::sigset_t {
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both are masks; the call fails only for an invalid operation. All zeros are also a mask.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, before.as_mut_ptr());
        before.assume_init()
    }
}

#[expect(unsafe_code, reason = "signal masks are the C library's")]
fn all_but_faults() -> libc::sigset_t {
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: it is room for a mask, which the first call fills; the signals are ones that there are.
    unsafe {
        libc::sigfillset(mask.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(mask.as_mut_ptr(), fault);
        }
        mask.assume_init()
    }
}

/// From now on the signals of this thread wait.
pub(crate) fn hold_back() -> HeldBack {
    let before = set_mask(&all_but_faults());
    HeldBack { before, interrupted: BEFORE.replace(Some(before)) }
}

/// Makes a system call that may wait, and delivers signals during it. No lock may be held.
pub(crate) fn let_come<T>(call: impl FnOnce() -> T) -> T {
    struct Again(libc::sigset_t);
    impl Drop for Again {
        fn drop(&mut self) {
            set_mask(&self.0);
        }
    }
    let _again = BEFORE.get().map(|before| Again(set_mask(&before)));
    call()
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        BEFORE.set(self.interrupted);
        set_mask(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds_back_alarms() -> bool {
        let now = set_mask(&all_but_faults());
        set_mask(&now);
        // SAFETY: it is a mask that the system gave.
        #[expect(unsafe_code, reason = "signal masks are the C library's")]
        let is_member = unsafe { libc::sigismember(&raw const now, libc::SIGALRM) };
        is_member == 1
    }

    #[test]
    fn hold_back__until_it_waits_and_until_it_is_over() {
        assert!(!holds_back_alarms());
        let outer = hold_back();
        assert!(holds_back_alarms());
        let_come(|| {
            assert!(!holds_back_alarms());
            // A handler that interrupted the wait calls the library.
            let inner = hold_back();
            assert!(holds_back_alarms());
            let_come(|| assert!(!holds_back_alarms()));
            drop(inner);
            assert!(!holds_back_alarms());
        });
        assert!(holds_back_alarms());
        drop(outer);
        assert!(!holds_back_alarms());
        let_come(|| assert!(!holds_back_alarms(), "outside of a call nothing changes"));
    }
}
