//! Errors of parsing these formats.

use fairwave_proto::codec::DecodeError;
use thiserror::Error;

/// The version of all of these formats that this crate speaks.
pub(crate) const VERSION: u8 = 1;

/// Reason why a peer's bytes do not parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum FormatError {
    /// The other end speaks another version.
    #[error("unsupported file format version {0}, expected {VERSION}: the two ends run different versions")]
    Version(u8),
    /// It ends too early.
    #[error("truncated in {0}")]
    Short(&'static str),
    /// An unknown kind of entry.
    #[error("unknown kind of {what}: {kind}")]
    Kind {
        /// "greeting", "entry" or "result".
        what: &'static str,
        /// Its number.
        kind: u8,
    },
    /// A value outside of its domain.
    #[error("{0} is out of range")]
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
