//! Errors of starting a transfer.

use std::io;
use std::path::{Path, PathBuf};

use fairwave_host::ConnectError;
use fairwave_proto::codec::Refusal;
use fairwave_proto::handshake::HandshakeError;
use thiserror::Error;

use super::renewal::RenewError;
use crate::format::names::shown;
use crate::format::reason::{is_no_room, reason};

/// Reason why a transfer did not start.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The destination cannot be used.
    #[error("{}: cannot write: {}", shown(path), reason(error))]
    Destination {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No session could be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The other end has ended, and cannot be started again.
    #[error(transparent)]
    Renew(#[from] RenewError),
    /// The server lets others put files, and gives none.
    #[error("the server refused: it accepts uploads only")]
    OnlyTakes,
    /// The source cannot be sent.
    #[error(transparent)]
    Source(#[from] ShareError),
    /// The system gives no thread.
    #[error("cannot start a thread for the transfer: {0}")]
    Thread(io::Error),
}

impl TransferError {
    /// The refusal sent to a visitor whose put fails for this reason.
    pub(crate) fn refuses(&self) -> Refusal {
        match self {
            Self::Thread(_) => Refusal::NoRoom,
            Self::Destination { error, .. } if is_no_room(error) => Refusal::NoRoom,
            _ => Refusal::UnknownName,
        }
    }

    /// The server's refusal, if it refused.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Connect(ConnectError::Handshake(HandshakeError::Refused(refusal))) => Some(*refusal),
            _ => None,
        }
    }
}

/// Why paths cannot be given.
#[derive(Debug, Error)]
pub enum ShareError {
    /// None was named.
    #[error("no files to serve\nhint: name files or directories")]
    Nothing,
    /// It does not exist, or is not readable.
    #[error("{}: {}", shown(path), reason(error))]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// More than one where the inside of one is given.
    #[error("names below a directory need exactly one directory")]
    Inside,
    /// It has no name that a receiver could give it.
    #[error("{}: has no file name\nhint: name its contents", shown(path))]
    Nameless {
        /// Which.
        path: PathBuf,
    },
    /// It is neither file nor directory.
    #[error("{}: not a file or directory", shown(path))]
    Special {
        /// Which.
        path: PathBuf,
    },
    /// Two paths end in the same name, and a receiver has one place for both.
    #[error(
        "{} and {} would have the same name at the receiver\nhint: send the directory that contains them, or send \
         them separately",
        shown(first),
        shown(second)
    )]
    Twice {
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// The uploads directory is not a writable directory.
    #[error("{}: cannot accept uploads: {}", shown(path), reason(error))]
    NotWritable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is, or lies in, a directory of Fairwave's own.
    #[error(
        "{}: is inside {}, which holds Fairwave's private keys\nhint: choose another path",
        shown(path),
        shown(place)
    )]
    Own {
        /// Which.
        path: PathBuf,
        /// The directory.
        place: PathBuf,
    },
    /// What visitors put could land in a directory of Fairwave's own.
    #[error(
        "{}: contains {}, which holds Fairwave's keys: uploads could replace them\nhint: create a separate directory \
         for uploads",
        shown(path),
        shown(place)
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// The directory.
        place: PathBuf,
    },
    /// The system gives no threads to read with.
    #[error("cannot start a reader thread: {0}")]
    Thread(io::Error),
}

impl ShareError {
    /// The refusal sent to a visitor that requests it.
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            Self::Unreadable { error, .. } | Self::NotWritable { error, .. } if is_no_room(error) => Refusal::NoRoom,
            Self::Thread(_) => Refusal::NoRoom,
            _ => Refusal::UnknownName,
        }
    }

    pub(crate) fn own(path: &Path, place: &Path) -> Self {
        Self::Own { path: path.to_owned(), place: place.to_owned() }
    }
}
