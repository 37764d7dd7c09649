//! Shared memory as a slice of atomics. All `unsafe` of this crate is here.
//!
//! It is sound because:
//! - A mapping is made of a memory whose size is sealed ([`SealedMemory`]): while it is mapped there is memory behind
//!   each of its words, whatever other processes do, and no access raises SIGBUS. A punched hole reads as zeros.
//! - Its words are `AtomicU64` and nothing else: other threads and processes may write any of them at any time, and a
//!   load gives some value that was written. No reference to anything but atomics is ever made of it, and no value that
//!   is read is assumed to be valid.
//! - A read-only mapping gives words that have no store, and are loaded with relaxed loads of 64 bits, which the
//!   standard library promises to be plain loads on the machines named below.
#![allow(unsafe_code, reason = "memory that processes share has no owner that the compiler could know")]

use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::TableError;
use crate::memory::SealedMemory;
use crate::word::ReadOnlyWord;

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "s390x",
    target_arch = "powerpc64"
)))]
compile_error!("a relaxed load of 64 bits must be a plain one, so that it can be done in memory that is read-only");

/// A memory that is mapped for reading and writing.
pub(crate) struct Writable(Mapping);

/// A memory that is mapped read-only.
pub(crate) struct ReadOnly(Mapping);

impl Writable {
    pub(crate) fn of(memory: &SealedMemory) -> Result<Self, TableError> {
        Mapping::of(memory, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is the start of a page of `words` words that stays mapped for reading and writing until the
        // mapping is dropped, which this borrow prevents. A page of a shared memory is aligned and initialised, and an
        // atomic may be written by others while it is borrowed.
        unsafe { slice::from_raw_parts(self.0.start.as_ptr().cast_const(), self.0.words) }
    }
}

impl ReadOnly {
    pub(crate) fn of(memory: &SealedMemory) -> Result<Self, TableError> {
        Mapping::of(memory, ProtFlags::READ).map(Self)
    }

    pub(crate) fn words(&self) -> &[ReadOnlyWord] {
        // SAFETY: as above, for reading; `ReadOnlyWord` is an `AtomicU64` in memory, and only has relaxed loads.
        unsafe { slice::from_raw_parts(self.0.start.as_ptr().cast::<ReadOnlyWord>().cast_const(), self.0.words) }
    }
}

struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: a mapping belongs to no thread, and only gives out atomics.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(memory: &SealedMemory, may: ProtFlags) -> Result<Self, TableError> {
        let bytes = memory.bytes();
        // SAFETY: the system chooses an address where nothing is mapped, so nobody's memory changes.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, may, MapFlags::SHARED, memory.fd(), 0) }
            .map_err(TableError::system("to map the memory of a table"))?;
        let no_address = TableError::System { what: "to map the memory of a table", errno: rustix::io::Errno::NOMEM };
        let start = NonNull::new(start.cast()).ok_or(no_address)?;
        Ok(Self { start, words: bytes / 8 })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `of`, with this size, and borrows of it have ended.
        // It fails for no mapping that there is.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}
