//! Errors of a table.

use rustix::io::Errno;
use thiserror::Error;

use crate::layout::VERSION;

/// Reason why a segment cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// The system would not make, seal or map it.
    #[error("system call {what} failed: {errno}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// Its reason.
        errno: Errno,
    },
    /// The descriptor received for shared memory is not one.
    #[error("the {0} memory of a segment is not a sealable memory file")]
    NoMemory(&'static str),
    /// It can still be changed under whoever maps it.
    #[error("the {0} memory of a segment is not sealed against being truncated or written by others")]
    NotSealed(&'static str),
    /// It is not as large as a segment.
    #[error("the {what} memory of a segment has {bytes} bytes, expected {expected}")]
    Size {
        /// Whose.
        what: &'static str,
        /// Its size, bytes.
        bytes: u64,
        /// Size of a segment, bytes.
        expected: u64,
    },
    /// Its label is of something else.
    #[error("the {0} memory of a segment has the wrong label")]
    Label(&'static str),
    /// It is of another version of Fairwave.
    #[error("unsupported table layout {0}, expected {VERSION}: update Fairwave and its daemon together")]
    Version(u64),
}

/// Why a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// It was being written at each of three tries: it keeps its former value. One that was left in the middle of a
    /// write stays so.
    #[error("the row is being written")]
    Busy,
    /// No session has it.
    #[error("the row is free")]
    Free,
    /// There are as many as [`ROWS`](crate::ROWS).
    #[error("no such row in the segment")]
    NoRow,
    /// A field has an invalid value.
    #[error("the row's {0} is invalid")]
    Rubbish(&'static str),
}

impl TableError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::System { what, errno }
    }
}
