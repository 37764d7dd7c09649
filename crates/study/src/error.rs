//! Errors of a sweep.

use std::io;
use std::path::{Path, PathBuf};

use fairwave_scenario::ScenarioError;
use thiserror::Error;

use crate::BUILD;

/// Error of a sweep. [`StudyError::hint`] has the remedy.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A mistake in the scenario, or in the sweep's changes to it.
    #[error("{}", .0.message_of())]
    Scenario(ScenarioError),
    /// The grid is not valid.
    #[error("{what}")]
    Grid {
        /// The problem.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// A file of results that cannot be continued.
    #[error("{}: {what}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// A file could not be read or written.
    #[error("{}: {what}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The message of the system.
        what: String,
        /// Its kind.
        kind: io::ErrorKind,
    },
}

/// The message of a scenario's mistake without its hint.
trait MessageOf {
    fn message_of(&self) -> String;
}

impl MessageOf for ScenarioError {
    fn message_of(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}: {}", self.file, self.message),
            None => format!("{}: {}", self.file, self.message),
        }
    }
}

impl StudyError {
    pub(crate) fn grid(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Grid { what: what.into(), hint: hint.into() }
    }

    pub(crate) fn refused(path: &Path, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), what: what.into(), hint: hint.into() }
    }

    /// Results written by another build of Fairwave.
    pub(crate) fn other_build(path: &Path, theirs: &str) -> Self {
        Self::refused(
            path,
            format!("has rows of another Fairwave build: {theirs}, this is {BUILD}"),
            "continue with that build, or choose another --out",
        )
    }

    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "no such file or directory".into(),
            io::ErrorKind::PermissionDenied => "permission denied".into(),
            io::ErrorKind::IsADirectory => "is a directory".into(),
            io::ErrorKind::NotADirectory => "a component of the path is not a directory".into(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no space left on the device".into(),
            io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
            io::ErrorKind::FileTooLarge => "exceeds the maximum file size (ulimit -f)".into(),
            io::ErrorKind::Unsupported => format!("not supported by its file system: {error}"),
            _ => error.to_string(),
        };
        Self::Io { path: path.to_owned(), what, kind: error.kind() }
    }

    /// The remedy, in one line, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Scenario(error) => error.hint.clone(),
            Self::Grid { hint, .. } | Self::Refused { hint, .. } => Some(hint.clone()),
            Self::Io {
                kind: io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge,
                ..
            } => Some("finished runs are kept in the journal: free disk space and continue with --resume".into()),
            // For example Lustre without the mount option "flock".
            Self::Io { kind: io::ErrorKind::Unsupported, .. } => {
                Some("a journal needs a file system with locks: choose another directory".into())
            }
            Self::Io { kind: io::ErrorKind::NotFound, .. } => Some("create the directory first".into()),
            Self::Io { kind: io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, .. } => {
                Some("choose a writable directory".into())
            }
            Self::Io { .. } => None,
        }
    }

    /// Whether the call or its input is wrong, not the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Scenario(_) | Self::Grid { .. } | Self::Refused { .. } => true,
            Self::Io { kind, .. } => matches!(
                kind,
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::NotADirectory
            ),
        }
    }
}

impl From<ScenarioError> for StudyError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
    }
}
