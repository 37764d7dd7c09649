//! Why an entry of the giver's list is not at its place in the end.

use thiserror::Error;

use crate::filter::rules::RuleError;
use crate::format::link::TargetError;
use crate::format::names::{NameError, escaped};
use crate::take::disk::directories::DirectoryError;
use crate::take::disk::disk_error::{DiskError, Trouble};
use crate::take::disk::quota::OverQuota;
use crate::take::list::claims::ClaimRefusal;

/// Reason why an entry of the giver's list is not at its place in the end. The other entries are not affected.
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
    /// An error of a worker or the committer.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// Only one thing can have the name that was asked for.
    #[error(
        "name conflict: \"{}\" was already received as \"{}\"", escaped(.first), escaped(.name)
    )]
    Renamed {
        /// The existing entry's own name.
        first: Box<[u8]>,
        /// The name that was asked for.
        name: Box<[u8]>,
    },
    #[error("a directory exists at its path")]
    DirectoryInPlace,
    #[error("its backup would have the path of another entry")]
    BackupName,
    #[error("the file that it is another name of failed")]
    FirstName,
    #[error("{0}; use --links to keep it")]
    LeadsOut(TargetError),
    #[error(transparent)]
    Target(TargetError),
    #[error("it is the destination: it cannot be copied into itself")]
    IntoItself,
    #[error("nothing is deleted: {0}")]
    Rules(RuleError),
    #[error("nothing is deleted: this end has no memory left for the rules of its visitors")]
    NoRoomForRules,
    /// The giver's reason, in its own words.
    #[error("{0}")]
    Giver(Box<str>),
    /// A name that was asked for.
    #[error("no such file in the share")]
    Missing,
    #[error("not enough disk space: {bytes} bytes needed, {room} available")]
    DiskFull {
        /// Bytes needed.
        bytes: u64,
        /// Free bytes of the file system.
        room: u64,
    },
    #[error("quota of uploads exceeded: {bytes} bytes needed, {room} available")]
    QuotaUsedUp {
        /// Bytes needed.
        bytes: u64,
        /// Free bytes of the quota.
        room: u64,
    },
    #[error("the data at byte {offset} failed verification {tries} times: it is being modified on the path")]
    Forged {
        /// Offset of the block in the file.
        offset: u64,
        /// Number of fetches.
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
            (renamed, r#"name conflict: "a\x0a" was already received as "new""#),
            (
                EntryError::LeadsOut(TargetError::Absolute),
                &format!("{}; use --links to keep it", TargetError::Absolute),
            ),
            (EntryError::Giver("it is cold".into()), "it is cold"),
            (EntryError::DiskFull { bytes: 70, room: 4 }, "not enough disk space: 70 bytes needed, 4 available"),
            (EntryError::QuotaUsedUp { bytes: 70, room: 4 }, "quota of uploads exceeded: 70 bytes needed, 4 available"),
            (
                EntryError::Forged { offset: 5, tries: 8 },
                "the data at byte 5 failed verification 8 times: it is being modified on the path",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
