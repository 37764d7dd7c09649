//! Memory that processes hand each other, and that keeps its size.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;

use crate::error::TableError;

/// Nobody can truncate it, make it larger or add a seal.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A memfd whose size nobody can change any more.
pub(crate) struct SealedMemory {
    fd: OwnedFd,
    bytes: usize,
}

/// A memfd that was just made: only its maker has it.
pub(crate) struct NewMemory {
    fd: OwnedFd,
    bytes: usize,
}

impl NewMemory {
    /// A memory of zeros, with all its pages allocated: access allocates none.
    pub(crate) fn of(name: &'static str, bytes: usize) -> Result<Self, TableError> {
        let refused = |errno| TableError::System { what: "shared memory for a table", errno };
        let fd =
            rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::NOEXEC_SEAL)
                // Before Linux 6.3 there is no such flag.
                .or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING))
                .map_err(refused)?;
        rustix::fs::ftruncate(&fd, bytes as u64).map_err(refused)?;
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes as u64).map_err(refused)?;
        Ok(Self { fd, bytes })
    }

    /// Writes its first words, before anybody maps it.
    pub(crate) fn begin_with(&self, words: &[u64]) -> Result<(), TableError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let refused = |errno| TableError::System { what: "to label the memory of a table", errno };
        match rustix::io::pwrite(&self.fd, &bytes, 0).map_err(refused)? {
            written if written == bytes.len() => Ok(()),
            _ => Err(refused(Errno::IO)),
        }
    }

    /// Its size stays as it is from now on.
    pub(crate) fn seal_size(self) -> Result<SealedMemory, TableError> {
        self.seal(SIZE_SEALS)
    }

    /// Its size as well, and nobody maps it for writing who has not done so. `maps` does.
    pub(crate) fn seal_for_reading<T>(
        self,
        maps: impl FnOnce(&SealedMemory) -> Result<T, TableError>,
    ) -> Result<(SealedMemory, T), TableError> {
        // The size first, so that what is mapped has its pages; no seal of seals yet.
        let size = SealFlags::SHRINK.union(SealFlags::GROW);
        let memory = self.seal(size)?;
        let mapped = maps(&memory)?;
        let memory = Self { fd: memory.fd, bytes: memory.bytes };
        Ok((memory.seal(SIZE_SEALS | SealFlags::FUTURE_WRITE)?, mapped))
    }

    fn seal(self, seals: SealFlags) -> Result<SealedMemory, TableError> {
        rustix::fs::fcntl_add_seals(&self.fd, seals).map_err(TableError::system("to seal the memory of a table"))?;
        Ok(SealedMemory { fd: self.fd, bytes: self.bytes })
    }
}

impl SealedMemory {
    /// Checks that a descriptor from another process is a sealed memory of that size; `whose` names it. If
    /// `for_reading`, no other process may write to it unless it has mapped it already.
    pub(crate) fn check(fd: OwnedFd, bytes: usize, whose: &'static str, for_reading: bool) -> Result<Self, TableError> {
        // Only memfds, and files in /dev/shm, have seals at all.
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|_| TableError::NoMemory(whose))?;
        let needed = if for_reading { SIZE_SEALS | SealFlags::FUTURE_WRITE } else { SIZE_SEALS };
        if !seals.contains(needed) {
            return Err(TableError::NotSealed(whose));
        }
        let stat = rustix::fs::fstat(&fd).map_err(TableError::system("to look at the memory of a table"))?;
        let (found, expected) = (stat.st_size as u64, bytes as u64);
        if found != expected {
            return Err(TableError::Size { what: whose, bytes: found, expected });
        }
        Ok(Self { fd, bytes })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }
}
