//! Names of replaced and deleted files that are kept.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fairwave_proto::codec::{Full, Reader, Writer};
use thiserror::Error;

use super::error::FormatError;
use super::names::{NameError, RelativePath, escaped};

/// Max bytes of the suffix; of a name there are 255.
const MAX_SUFFIX_BYTES: usize = 64;
/// Max bytes of the directory's path: it fits into a greeting.
const MAX_DIRECTORY_BYTES: usize = 255;

/// The names of replaced and deleted files and links: rsync's `--backup`, `--suffix` and `--backup-dir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    suffix: Box<[u8]>,
    /// The directory below the destination in which they keep their paths.
    directory: Option<RelativePath>,
}

/// Reason why files cannot be kept so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BackupError {
    /// The suffix is a path, or too long, or empty without a directory.
    #[error("the suffix of backups has 1 to {MAX_SUFFIX_BYTES} bytes and no slash; with a directory it may be empty")]
    Suffix,
    /// The directory is not one below the destination.
    #[error("the directory of backups {path}: {reason}")]
    Directory {
        /// Its path, escaped.
        path: String,
        /// The reason.
        reason: String,
    },
}

impl Backup {
    /// Files get this suffix, and keep their paths below a directory of the destination, if one is named.
    pub fn new(suffix: &OsStr, directory: Option<&Path>) -> Result<Self, BackupError> {
        let suffix = suffix.as_bytes();
        let is_valid = suffix.len() <= MAX_SUFFIX_BYTES && !suffix.iter().any(|byte| matches!(byte, 0 | b'/'));
        if !is_valid || (suffix.is_empty() && directory.is_none()) {
            return Err(BackupError::Suffix);
        }
        let checked = directory.map(|directory| {
            let path = directory.as_os_str().as_bytes();
            let name = path.strip_suffix(b"/").unwrap_or(path);
            let error = |reason: String| BackupError::Directory { path: escaped(path), reason };
            if name.len() > MAX_DIRECTORY_BYTES {
                return Err(error(format!("it is longer than {MAX_DIRECTORY_BYTES} bytes")));
            }
            RelativePath::new(name).map_err(|reason| error(reason.to_string()))
        });
        Ok(Self { suffix: suffix.into(), directory: checked.transpose()? })
    }

    /// Whether they are in the directories of the originals.
    pub(crate) fn is_beside(&self) -> bool {
        self.directory.is_none()
    }

    /// The path of the backup of a path.
    pub(crate) fn of(&self, path: &RelativePath) -> Result<RelativePath, NameError> {
        let (path, suffix) = (path.as_bytes(), &*self.suffix);
        match &self.directory {
            Some(directory) => RelativePath::new(&[directory.as_bytes(), b"/", path, suffix].concat()),
            None => RelativePath::new(&[path, suffix].concat()),
        }
    }

    /// Whether what has this path is a backup: it is not deleted.
    pub(crate) fn is_one(&self, path: &[u8]) -> bool {
        match &self.directory {
            Some(directory) => path == directory.as_bytes(),
            None => path.len() > self.suffix.len() && path.ends_with(&self.suffix),
        }
    }

    /// Reads a suffix and a directory, each a length (1) and as many bytes.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        const WHAT: &str = "the names of backups";
        let mut text = || {
            let length = reader.u8(WHAT)?;
            reader.bytes(length.into(), WHAT)
        };
        let (suffix, directory) = (text()?, text()?);
        let directory = (!directory.is_empty()).then(|| Path::new(OsStr::from_bytes(directory)));
        if directory.is_some_and(|directory| directory.as_os_str().as_bytes().ends_with(b"/")) {
            return Err(FormatError::Range(WHAT));
        }
        Self::new(OsStr::from_bytes(suffix), directory).map_err(|_| FormatError::Range(WHAT))
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        for text in [&*self.suffix, self.directory.as_ref().map_or(&[][..], RelativePath::as_bytes)] {
            writer.u8(u8::try_from(text.len()).map_err(|_| Full)?)?;
            writer.bytes(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup__only_below_the_destination() {
        let new = |suffix: &str, directory: Option<&str>| Backup::new(OsStr::new(suffix), directory.map(Path::new));
        for (suffix, directory) in [
            ("", None),
            ("a/b", None),
            ("~", Some("/x")),
            ("~", Some("../x")),
            ("", Some(".fairwave-x")),
            ("", Some("")),
        ] {
            assert!(new(suffix, directory).is_err(), "{suffix} {directory:?}");
        }
        assert!(new(&"x".repeat(65), None).is_err() && new("", Some(&"x/".repeat(200))).is_err());
        let path = RelativePath::new(b"a/b").unwrap();
        assert_eq!(new("~", None).unwrap().of(&path).unwrap().as_bytes(), b"a/b~");
        assert_eq!(new("", Some("old/")).unwrap().of(&path).unwrap().as_bytes(), b"old/a/b");
        assert_eq!(new(".1", Some("old")).unwrap().of(&path).unwrap().as_bytes(), b"old/a/b.1");
        let long = RelativePath::new(&[b'x'; 255]).unwrap();
        assert!(new("~", None).unwrap().of(&long).is_err());
    }
}
