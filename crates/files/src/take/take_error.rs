//! Why a transfer breaks off at the end that takes.

use std::io;

use thiserror::Error;

use super::list_error::ListError;
use super::temps::TempsError;
use crate::format::names::escaped;

/// Why a transfer breaks off at the end that takes. What there is of it stays: the same call goes on.
#[derive(Debug, Error)]
pub(crate) enum TakeError {
    #[error(transparent)]
    List(#[from] ListError),
    #[error("the destination: {0}")]
    Temps(#[from] TempsError),
    /// The name that the giver's only thing is to have.
    #[error("the destination: cannot note the name \"{}\": {error}", escaped(.name))]
    Name {
        /// Which.
        name: Vec<u8>,
        /// Why.
        error: io::Error,
    },
    #[error("the destination: cannot write a journal: {0}")]
    Journal(io::Error),
    #[error("no thread for the disk: {0}")]
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
        assert_eq!(
            list(ListError::Memory { mib: 1024 }),
            "the list of the other end's files takes more than 1024 MiB here"
        );
        let ends_within = "the list of the other end's files: it ends within a path";
        assert_eq!(list(FormatError::Short("a path").into()), ends_within);
        assert_eq!(list(SegmentError::from(FormatError::Short("a path")).into()), ends_within);
        assert_eq!(
            TakeError::from(TempsError::Foreign).to_string(),
            "the destination: the directory of its unfinished transfers belongs to somebody else"
        );
        assert_eq!(
            TakeError::Name { name: b"a\nb".to_vec(), error: full() }.to_string(),
            r#"the destination: cannot note the name "a\x0ab": No space left on device (os error 28)"#
        );
        assert_eq!(
            TakeError::Journal(full()).to_string(),
            "the destination: cannot write a journal: No space left on device (os error 28)"
        );
        assert_eq!(
            TakeError::Thread(full()).to_string(),
            "no thread for the disk: No space left on device (os error 28)"
        );
    }
}
