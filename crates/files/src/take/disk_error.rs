//! What went wrong at a disk, in the words of a reason.

use rustix::io::Errno;
use thiserror::Error;

use super::quota::OverQuota;

/// A call to the system that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot {doing}: {}", explain(*.error))]
pub(crate) struct DiskError {
    /// As in "cannot ... it".
    pub(crate) doing: &'static str,
    pub(crate) error: Errno,
}

/// Makes a [`DiskError`] of what the system says.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, DiskError>;
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, DiskError> {
        self.map_err(|error| DiskError { doing, error })
    }
}

/// Why a file failed at the disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub(crate) struct Trouble {
    reason: String,
    /// Whether there was no room: then smaller files may fit all the same.
    pub(crate) is_full: bool,
}

impl From<DiskError> for Trouble {
    fn from(error: DiskError) -> Self {
        Self { reason: error.to_string(), is_full: matches!(error.error, Errno::NOSPC | Errno::DQUOT) }
    }
}

impl From<OverQuota> for Trouble {
    fn from(error: OverQuota) -> Self {
        Self { reason: error.to_string(), is_full: true }
    }
}

impl From<&str> for Trouble {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), is_full: false }
    }
}

/// What the system says, in words.
pub(crate) fn explain(error: Errno) -> String {
    let text = match error {
        Errno::NOSPC => "the disk is full",
        Errno::DQUOT => "the user's quota of the disk is used up",
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::ROFS => "the file system is read-only",
        Errno::IO => "the disk reports an input/output error",
        Errno::LOOP | Errno::XDEV => "a symbolic link is in its path, and links are not followed",
        Errno::NOTDIR => "a name in its path is there and is no directory",
        Errno::ISDIR => "there is a directory in its place",
        Errno::EXIST => "something else was put in its place meanwhile",
        Errno::NAMETOOLONG => "the file system takes no name that long",
        Errno::FBIG => "the file system takes no file that large",
        Errno::ILSEQ | Errno::INVAL => "the file system does not take it (invalid argument)",
        Errno::MFILE | Errno::NFILE => "too many open files",
        Errno::NOENT => "it is not there any more",
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
        assert!(Trouble::from(error).is_full);
        let error = Err::<(), _>(Errno::PIPE).doing("write it").unwrap_err();
        assert!(error.to_string().starts_with("cannot write it: Broken pipe"));
    }
}
