//! Errors of a disk as reasons.

use fairwave_proto::codec::VoidReason;
use rustix::io::Errno;
use thiserror::Error;

use crate::take::disk::quota::OverQuota;

/// A call to the system that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot {doing}: {}", explain(*.error))]
pub(crate) struct DiskError {
    /// As in "cannot ... it".
    pub(crate) doing: &'static str,
    pub(crate) error: Errno,
}

/// Makes a [`DiskError`] of a system error.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, DiskError>;
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, DiskError> {
        self.map_err(|error| DiskError { doing, error })
    }
}

/// Reason why a file failed in a worker or the committer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Quota(#[from] OverQuota),
    #[error("the existing file changed while it was being compared")]
    OldChanged,
    /// The giver did not send a part of it.
    #[error("{}", explain_void(*.0))]
    Void(VoidReason),
}

impl Trouble {
    /// Whether the source file is gone.
    pub(crate) fn is_vanished(&self) -> bool {
        matches!(self, Self::Void(VoidReason::Vanished))
    }

    /// Whether the disk was full: then smaller files may still fit.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Disk(error) => matches!(error.error, Errno::NOSPC | Errno::DQUOT),
            Self::Quota(_) => true,
            Self::OldChanged | Self::Void(_) => false,
        }
    }
}

/// Why the giver did not send a part of a file, in words.
fn explain_void(reason: VoidReason) -> &'static str {
    match reason {
        VoidReason::Vanished => "it vanished at the other end while it was copied",
        VoidReason::Shrank => "changed at the source during the transfer",
        VoidReason::Unreadable => "the peer cannot read it",
    }
}

/// The system's message.
pub(crate) fn explain(error: Errno) -> String {
    let text = match error {
        Errno::NOSPC => "the disk is full",
        Errno::DQUOT => "the user's disk quota is exceeded",
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::ROFS => "the file system is read-only",
        Errno::IO => "input/output error",
        Errno::LOOP => "a component of its path is a symbolic link, which is not followed",
        Errno::XDEV => "its path leads to another file system, and files are not moved between those",
        Errno::NOTDIR => "a component of its path exists and is not a directory",
        Errno::ISDIR => "a directory exists at its path",
        Errno::EXIST => "it was replaced during the transfer",
        Errno::NAMETOOLONG => "the name is too long for the file system",
        Errno::FBIG => "the file is too large for the file system",
        Errno::ILSEQ | Errno::INVAL => "the file system rejects it (invalid argument)",
        Errno::MFILE | Errno::NFILE => "too many open files",
        Errno::NOENT => "it no longer exists",
        _ => return std::io::Error::from(error).to_string(),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_error__says_what_and_why() {
        let error = Err::<(), _>(Errno::NOSPC).doing("write it").unwrap_err();
        assert_eq!(error.to_string(), "cannot write it: the disk is full");
        assert!(Trouble::from(error).is_full());
        let error = Err::<(), _>(Errno::PIPE).doing("write it").unwrap_err();
        assert!(error.to_string().starts_with("cannot write it: Broken pipe"));
    }
}
