//! Locks with a checked order.
//!
//! Each lock of this crate and of those on it is a *leaf*: its holder takes no other lock, and calls nothing that may.
//! Work on other objects is done before or after, on copied values. Locks that may be held while a leaf is taken are
//! made by [`Lock::over_leaves`]. Builds with debug assertions check it whenever a lock is taken, contended or not. See
//! "Locks" in design-notes.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value that one thread at a time has.
#[derive(Debug, Default)]
pub struct Lock<T> {
    value: Mutex<T>,
    is_over_leaves: bool,
}

/// The value of a lock, until it is dropped.
#[derive(Debug)]
pub struct Held<'a, T> {
    // Dropped in this order: the lock is released before the thread is recorded as free of it.
    value: MutexGuard<'a, T>,
    rank: Rank,
}

impl<T> Lock<T> {
    /// A leaf lock.
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), is_over_leaves: false }
    }

    /// One during which a leaf may be taken.
    pub const fn over_leaves(value: T) -> Self {
        Self { value: Mutex::new(value), is_over_leaves: true }
    }

    /// Waits until no other thread holds it. A panic of its holder does not poison it: each change leaves a consistent
    /// value behind.
    pub fn lock(&self) -> Held<'_, T> {
        let rank = Rank::enter(self.is_over_leaves);
        Held { value: self.value.lock().unwrap_or_else(PoisonError::into_inner), rank }
    }
}

impl<T> Held<'_, T> {
    /// Releases the lock until `bell` is notified, or for at most this time; without a time, until it is notified.
    #[must_use]
    pub fn wait(self, bell: &Condvar, most: Option<Duration>) -> Self {
        let Self { value, rank } = self;
        let value = match most {
            None => bell.wait(value).unwrap_or_else(PoisonError::into_inner),
            Some(most) => bell.wait_timeout(value, most).unwrap_or_else(PoisonError::into_inner).0,
        };
        Self { value, rank }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(debug_assertions)]
mod rank {
    use std::cell::Cell;
    use std::marker::PhantomData;

    thread_local! {
        /// Locks that this thread holds: of those over leaves, and leaves.
        static HELD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }

    /// That a thread holds a lock. It stays with its thread.
    #[derive(Debug)]
    pub(super) struct Rank {
        is_over_leaves: bool,
        _of_this_thread: PhantomData<*const ()>,
    }

    impl Rank {
        #[track_caller]
        pub(super) fn enter(is_over_leaves: bool) -> Self {
            let (over, leaves) = HELD.get();
            assert!(leaves == 0 && !(is_over_leaves && over > 0), "a lock is held while another is taken");
            HELD.set(if is_over_leaves { (over + 1, leaves) } else { (over, leaves + 1) });
            Self { is_over_leaves, _of_this_thread: PhantomData }
        }
    }

    impl Drop for Rank {
        fn drop(&mut self) {
            let (over, leaves) = HELD.get();
            HELD.set(if self.is_over_leaves { (over - 1, leaves) } else { (over, leaves - 1) });
        }
    }
}

#[cfg(not(debug_assertions))]
mod rank {
    /// Nothing: the order is checked in debug builds.
    #[derive(Debug)]
    pub(super) struct Rank;

    impl Rank {
        #[inline]
        pub(super) fn enter(_: bool) -> Self {
            Self
        }
    }
}

use rank::Rank;

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn lock__a_leaf_is_held_alone() {
        let (one, other) = (Lock::new(1), Lock::new(2));
        let value = *one.lock();
        assert_eq!(value + *other.lock(), 3);
        // Held over a call that takes the same lock, or another.
        assert!(catch_unwind(|| *one.lock() + *one.lock()).is_err());
        assert!(catch_unwind(|| *one.lock() + *other.lock()).is_err());
        assert_eq!(*one.lock(), 1);
    }

    #[test]
    fn lock__a_leaf_may_be_taken_under_one_that_says_so() {
        let (over, leaf) = (Lock::over_leaves(1), Lock::new(2));
        assert_eq!(*over.lock() + *leaf.lock(), 3);
        assert!(catch_unwind(|| *leaf.lock() + *over.lock()).is_err());
        assert!(catch_unwind(|| *over.lock() + *over.lock()).is_err());
    }

    #[test]
    fn wait__gives_the_lock_away_meanwhile() {
        let (lock, bell) = (Lock::new(false), Condvar::new());
        std::thread::scope(|scope| {
            let mut value = lock.lock();
            scope.spawn(|| {
                *lock.lock() = true;
                bell.notify_all();
            });
            while !*value {
                value = value.wait(&bell, None);
            }
        });
        assert!(!*lock.lock().wait(&bell, Some(Duration::ZERO)) || *lock.lock());
    }
}
