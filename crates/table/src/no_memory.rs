//! Stand-in for the memory of a table on systems that cannot seal its size: every call fails.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::error::TableError;

const NONE: TableError =
    TableError::System { what: "shared memory for a table, which needs Linux", errno: Errno::NOSYS };

/// No value has this type.
pub(crate) enum SealedMemory {}

/// Nor this one.
pub(crate) enum NewMemory {}

impl NewMemory {
    pub(crate) fn of(_: &'static str, _: usize) -> Result<Self, TableError> {
        Err(NONE)
    }

    pub(crate) fn begin_with(&self, _: &[u64]) -> Result<(), TableError> {
        match *self {}
    }

    pub(crate) fn seal_size(self) -> Result<SealedMemory, TableError> {
        match self {}
    }

    pub(crate) fn seal_for_reading<T>(
        self,
        _: impl FnOnce(&SealedMemory) -> Result<T, TableError>,
    ) -> Result<(SealedMemory, T), TableError> {
        match self {}
    }
}

impl SealedMemory {
    pub(crate) fn check(_: OwnedFd, _: usize, _: &'static str, _: bool) -> Result<Self, TableError> {
        Err(NONE)
    }

    pub(crate) fn bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        match self {}
    }
}
