//! Why a command ends early, and its exit code.

use std::io;

/// The end of a command that did not do all it was asked for.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// The call or its input is wrong: exit code 2.
    Usage(String),
    /// The run failed: exit code 1.
    Run(String),
    /// Some files failed, and the rest is in place: exit code 3.
    Files(String),
    /// The other end is not reachable, or was lost for good: exit code 4.
    Lost(String),
    /// Some source files vanished, and the rest is in place: exit code 5.
    Vanished(String),
    /// Somebody interrupted it: exit code 130.
    Interrupted(String),
    /// A claim does not hold, as stdout shows: exit code 1.
    Missed,
    /// Another process printed the reason: its exit code.
    Reported(u8),
    /// Nobody reads stdout any more: no word, exit code 0, as for `fairwave ... | head`.
    Unread,
}

/// Result of every command.
pub(crate) type Done = Result<(), CommandFailure>;

impl CommandFailure {
    /// A wrong call: what is wrong, and how to mend it.
    pub(crate) fn usage(message: impl Into<String>, hint: &str) -> Self {
        Self::Usage(format!("{}\nhint: {hint}", message.into()))
    }

    /// The message for people, if any.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Usage(message)
            | Self::Run(message)
            | Self::Files(message)
            | Self::Lost(message)
            | Self::Vanished(message)
            | Self::Interrupted(message) => Some(message),
            Self::Missed | Self::Reported(_) | Self::Unread => None,
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) | Self::Missed => 1,
            Self::Files(_) => 3,
            Self::Lost(_) => 4,
            Self::Vanished(_) => 5,
            Self::Interrupted(_) => crate::common::interrupt::EXIT,
            Self::Reported(code) => *code,
            Self::Unread => 0,
        }
    }

    /// A failure to write to stdout.
    pub(crate) fn writing(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Run(format!("stdout: {}", plain(error))),
        }
    }
}

/// The system's error, reworded if it is a common one.
pub(crate) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "is a directory".into(),
        io::ErrorKind::NotADirectory => "a component of the path is not a directory".into(),
        io::ErrorKind::StorageFull => "no space left on the device".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ => error.to_string(),
    }
}
