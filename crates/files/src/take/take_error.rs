//! Why a transfer breaks off at the end that takes.

use std::io;

use thiserror::Error;

use crate::format::names::escaped;
use crate::take::list::list_error::ListError;
use crate::take::resume::temps::TempsError;

/// Reason why a transfer stops at the taker. Received data are kept: the same call resumes.
#[derive(Debug, Error)]
pub(crate) enum TakeError {
    #[error(transparent)]
    List(#[from] ListError),
    #[error("cannot use the destination: {0}")]
    Temps(#[from] TempsError),
    /// The name that the giver's only thing is to have.
    #[error("cannot record the name \"{}\" in the destination: {error}", escaped(.name))]
    Name {
        /// Which.
        name: Vec<u8>,
        /// Why.
        error: io::Error,
    },
    #[error("cannot write a journal in the destination: {0}")]
    Journal(io::Error),
    #[error("cannot start a disk thread: {0}")]
    Thread(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::error::FormatError;
    use crate::format::segments::SegmentError;

    #[test]
    fn take_error__says_what_broke_it_off() {
        let full = || io::Error::from_raw_os_error(28);
        let list = |error| TakeError::from(error).to_string();
        assert_eq!(list(ListError::Memory { mib: 1024 }), "the peer's file list needs more than 1024 MiB of memory");
        let ends_within = "invalid file list from the peer: truncated in a path";
        assert_eq!(list(FormatError::Short("a path").into()), ends_within);
        assert_eq!(list(SegmentError::from(FormatError::Short("a path")).into()), ends_within);
        assert_eq!(
            TakeError::from(TempsError::Foreign).to_string(),
            "cannot use the destination: its directory of unfinished transfers belongs to another user"
        );
        assert_eq!(
            TakeError::Name { name: b"a\nb".to_vec(), error: full() }.to_string(),
            r#"cannot record the name "a\x0ab" in the destination: No space left on device (os error 28)"#
        );
        assert_eq!(
            TakeError::Journal(full()).to_string(),
            "cannot write a journal in the destination: No space left on device (os error 28)"
        );
        assert_eq!(
            TakeError::Thread(full()).to_string(),
            "cannot start a disk thread: No space left on device (os error 28)"
        );
    }
}
