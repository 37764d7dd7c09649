//! Why an entry of the giver's list is not at its place in the end.

use thiserror::Error;

use super::claims::ClaimRefusal;
use super::directories::DirectoryError;
use super::disk_error::{DiskError, Trouble};
use super::quota::OverQuota;
use crate::format::link::TargetError;
use crate::format::names::{NameError, escaped};

/// Why an entry of the giver's list is not at its place in the end. The other entries are taken all the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum EntryError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Taken(#[from] ClaimRefusal),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Quota(#[from] OverQuota),
    /// What a worker or the group saw.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// Only one thing can have the name that was asked for.
    #[error(
        "\"{}\" was sent before it, and only one thing can have the name \"{}\"", escaped(.first), escaped(.name)
    )]
    Renamed {
        /// What has that name already: its own one.
        first: Box<[u8]>,
        /// The name that was asked for.
        name: Box<[u8]>,
    },
    #[error("there is a directory in its place")]
    DirectoryInPlace,
    #[error("{0}; --links keeps it as it is")]
    LeadsOut(TargetError),
    #[error(transparent)]
    Target(TargetError),
    /// The giver says why, in its own words.
    #[error("{0}")]
    Giver(Box<str>),
    /// A name that was asked for.
    #[error("there is nothing of that name in the share")]
    Missing,
    #[error("the disk is full: {bytes} bytes are to come, and there is room for {room}")]
    DiskFull {
        /// How many.
        bytes: u64,
        /// What the file system has left.
        room: u64,
    },
    #[error("the quota of what may be put here is used up: {bytes} bytes are to come, and there is room for {room}")]
    QuotaUsedUp {
        /// How many.
        bytes: u64,
        /// What the quota has left.
        room: u64,
    },
    #[error("what came of it at byte {offset} was wrong {tries} times: somebody on the path changes data")]
    Forged {
        /// Where the block begins in the file.
        offset: u64,
        /// How often it was fetched.
        tries: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_error__says_why_in_words() {
        let renamed = EntryError::Renamed { first: b"a\n".as_slice().into(), name: b"new".as_slice().into() };
        for (error, text) in [
            (renamed, r#""a\x0a" was sent before it, and only one thing can have the name "new""#),
            (
                EntryError::LeadsOut(TargetError::Absolute),
                &format!("{}; --links keeps it as it is", TargetError::Absolute),
            ),
            (EntryError::Giver("it is cold".into()), "it is cold"),
            (
                EntryError::DiskFull { bytes: 70, room: 4 },
                "the disk is full: 70 bytes are to come, and there is room for 4",
            ),
            (
                EntryError::QuotaUsedUp { bytes: 70, room: 4 },
                "the quota of what may be put here is used up: 70 bytes are to come, and there is room for 4",
            ),
            (
                EntryError::Forged { offset: 5, tries: 8 },
                "what came of it at byte 5 was wrong 8 times: somebody on the path changes data",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
