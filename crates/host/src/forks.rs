//! The descriptors of the library that a child of the process must not keep.
//!
//! A child has copies of all descriptors of its parent. While it has the library's end of a stream, its parent cannot
//! close that, and a program waits for an end of stream that was sent; while it has an endpoint's socket, the port
//! stays bound. So a child closes its copies. It may take no lock there, and allocate nothing: it has a table of
//! atomic numbers.
//!
//! fork(2) copies descriptors first and memory afterwards. If another thread opened or closed a descriptor in between,
//! table and descriptors of the child would differ. So threads open and close them in a [`Passage`], and a fork waits
//! until no thread is in one.

use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WORDS: usize = 1024;

/// A bit for each descriptor below 65536. Those above stay open in children.
static MARKED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Threads in a [`Passage`].
static PASSING: AtomicU32 = AtomicU32::new(0);

/// Threads that are about to fork.
static FORKING: AtomicU32 = AtomicU32::new(0);

/// How long a fork waits for a passage, which takes two system calls: for longer than any thread should be kept from a
/// processor, and not forever, as the thread that forks may be in one itself (in a handler of a signal).
const MAX_WAIT: Duration = Duration::from_secs(1);

/// That a thread opens or closes a descriptor of the table: no fork happens meanwhile. One thread has one at a time.
#[derive(Debug)]
pub struct Passage(());

impl Passage {
    /// Waits until no thread is about to fork.
    pub fn enter() -> Self {
        loop {
            PASSING.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                return Self(());
            }
            PASSING.fetch_sub(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }

    /// Children close their copies of a descriptor that was opened in this passage.
    pub fn mark(&self, descriptor: &impl AsRawFd) {
        if let Some((word, bit)) = place(descriptor.as_raw_fd()) {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Closes a descriptor that was marked.
    pub fn close(&self, descriptor: impl AsRawFd) {
        unmark(&descriptor);
        drop(descriptor);
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        PASSING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A descriptor whose copies children close.
#[derive(Debug)]
pub(crate) struct Marked<T: AsRawFd> {
    // Dropped in this order.
    descriptor: T,
    _passage: LastOfPassage,
}

/// Ends the passage in which a descriptor is closed.
#[derive(Debug)]
struct LastOfPassage;

impl<T: AsRawFd> Marked<T> {
    pub(crate) fn open<E>(open: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let passage = Passage::enter();
        let descriptor = open()?;
        passage.mark(&descriptor);
        Ok(Self { descriptor, _passage: LastOfPassage })
    }
}

impl<T: AsRawFd> Deref for Marked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.descriptor
    }
}

impl<T: AsRawFd> Drop for Marked<T> {
    fn drop(&mut self) {
        std::mem::forget(Passage::enter());
        unmark(&self.descriptor);
    }
}

impl Drop for LastOfPassage {
    fn drop(&mut self) {
        drop(Passage(()));
    }
}

/// Before a fork, in the parent: the first handler of `pthread_atfork`.
pub fn before_fork() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    while PASSING.load(Ordering::SeqCst) > 0 && start.elapsed() < MAX_WAIT {
        std::thread::yield_now();
    }
}

/// After a fork, in the parent: the second handler.
pub fn after_fork() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

/// After a fork, in the child: the third handler. Returns the numbers of the parent's descriptors, each once; the child
/// should close them.
pub fn in_child() -> impl Iterator<Item = RawFd> {
    // The threads that the parent has besides do not exist here.
    PASSING.store(0, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
    MARKED.iter().zip((0..).step_by(64)).flat_map(|(word, first): (_, RawFd)| {
        let bits = word.swap(0, Ordering::SeqCst);
        (0..64).filter(move |at| bits >> at & 1 == 1).map(move |at| first + at)
    })
}

fn unmark(descriptor: &impl AsRawFd) {
    if let Some((word, bit)) = place(descriptor.as_raw_fd()) {
        word.fetch_and(!bit, Ordering::SeqCst);
    }
}

fn place(number: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(number).ok()?;
    Some((MARKED.get(number / 64)?, 1 << (number % 64)))
}
