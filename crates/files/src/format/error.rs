//! Why bytes are none of these formats.

use fairwave_proto::codec::DecodeError;
use thiserror::Error;

/// The version of all of these formats that this crate speaks.
pub(crate) const VERSION: u8 = 1;

/// Why what a peer sent is none of these formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum FormatError {
    /// The other end speaks another version.
    #[error("version {0} of the file formats is not known here, {VERSION} is: one end is older than the other")]
    Version(u8),
    /// It ends too early.
    #[error("it ends within {0}")]
    Short(&'static str),
    /// A kind of entry that there is none of.
    #[error("there is no {what} of kind {kind}")]
    Kind {
        /// "greeting", "entry" or "result".
        what: &'static str,
        /// Its number.
        kind: u8,
    },
    /// A value outside of its domain.
    #[error("{0} is out of its range")]
    Range(&'static str),
}

impl From<DecodeError> for FormatError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Short(what) => Self::Short(what),
            DecodeError::Version(version) => Self::Version(version),
            DecodeError::Kind { what, kind } => Self::Kind { what, kind },
            DecodeError::Range(what) => Self::Range(what),
            DecodeError::Seal => Self::Range("a seal"),
        }
    }
}
