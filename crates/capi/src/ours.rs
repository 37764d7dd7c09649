//! A table of the library's ends of descriptors, for processes that fork.
//!
//! A child has copies of all descriptors of its parent. As long as it has one of the library's ends, its parent cannot
//! close that: a program would wait for an end of a stream that was closed. So a child closes them at once. It may not
//! take a lock there; this table needs none.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 1024;

/// A bit for each descriptor below 65536. Those above are not closed in children.
static OURS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn place(descriptor: &OwnedFd) -> Option<(&'static AtomicU64, u64)> {
    let number = u32::try_from(descriptor.as_raw_fd()).ok()?;
    Some((OURS.get(number as usize / 64)?, 1 << (number % 64)))
}

/// The library's end of a descriptor, until a pipe has it.
pub(crate) struct Ours {
    descriptor: Option<OwnedFd>,
}

impl Ours {
    /// This one is the library's.
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        if let Some((word, bit)) = place(&descriptor) {
            word.fetch_or(bit, Ordering::SeqCst);
        }
        Self { descriptor: Some(descriptor) }
    }

    pub(crate) fn get(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// It goes to a pipe, and comes back to be closed with [`close`].
    pub(crate) fn give(mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.descriptor.take().into_iter().for_each(close);
    }
}

/// Closes one of them.
pub(crate) fn close(descriptor: OwnedFd) {
    if let Some((word, bit)) = place(&descriptor) {
        word.fetch_and(!bit, Ordering::SeqCst);
    }
    drop(descriptor);
}

/// Closes all of them, and the sockets of endpoints, in a child.
#[expect(unsafe_code, reason = "a child owns copies that no value of it does")]
pub(crate) fn close_all() {
    for (word, at) in OURS.iter().zip((0_i32..).step_by(64)) {
        let mut bits = word.swap(0, Ordering::SeqCst);
        while bits != 0 {
            let descriptor = at + bits.trailing_zeros().cast_signed();
            bits &= bits - 1;
            // SAFETY: it was the library's when the process forked, and nothing else of this child uses it.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
    }
    for socket in fairwave_host::take_sockets() {
        // SAFETY: it was an endpoint's when the process forked, whose thread this child has not.
        drop(unsafe { OwnedFd::from_raw_fd(socket) });
    }
}
