//! Reasons why a file cannot be sent.

use std::io;

use fairwave_proto::codec::VoidReason;
use rustix::io::Errno;

use crate::format::reason::reason;

/// Why a file, or a part of it, cannot be sent.
#[derive(Debug)]
pub(crate) enum Gone {
    /// The file is gone.
    Vanished,
    /// It is not what it was.
    Changed,
    /// It has less bytes than it had.
    Shrank,
    /// A system error.
    Failed(io::Error),
}

impl Gone {
    /// As the taker hears it.
    pub(crate) fn void(&self) -> VoidReason {
        match self {
            Self::Vanished => VoidReason::Vanished,
            Self::Changed | Self::Shrank => VoidReason::Shrank,
            Self::Failed(_) => VoidReason::Unreadable,
        }
    }

    /// In words, to be put behind the path and a colon.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Vanished => "vanished during the transfer".to_owned(),
            Self::Changed => "changed during the transfer".to_owned(),
            Self::Shrank => "truncated during the transfer".to_owned(),
            Self::Failed(error) => reason(error),
        }
    }
}

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        let errno = Errno::from_io_error(&error);
        match errno {
            // A link, or a file where a directory was: something else is in its place.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => Self::Vanished,
            _ => Self::Failed(error),
        }
    }
}
