//! The library's ends of descriptors, which children of the process close.

use std::os::fd::OwnedFd;

use fairwave_host::forks::{self, Passage};

/// The library's end of a descriptor, until a pipe has it.
pub(crate) struct Ours {
    descriptor: Option<OwnedFd>,
}

impl Ours {
    /// Opens a descriptor with two ends: the library's, and the program's.
    pub(crate) fn open<E>(open: impl FnOnce() -> Result<(OwnedFd, OwnedFd), E>) -> Result<(Self, OwnedFd), E> {
        let passage = Passage::enter();
        let (ours, theirs) = open()?;
        passage.mark(&ours);
        Ok((Self { descriptor: Some(ours) }, theirs))
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
    Passage::enter().close(descriptor);
}

/// Closes a child's copies, and those of the sockets of endpoints.
#[expect(unsafe_code, reason = "a child owns copies that no value of it does")]
pub(crate) fn close_copies() {
    for descriptor in forks::in_child() {
        // SAFETY: it was the library's when the process forked, and nothing else of this child uses it.
        unsafe { libc::close(descriptor) };
    }
}
