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
