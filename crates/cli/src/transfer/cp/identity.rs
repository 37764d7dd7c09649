//! The identity of an end of a copy.

use fairwave_host::{Identity, StateDir, StateError};

use crate::common::failure::CommandFailure;
use crate::transfer::offer::of_state;

/// The identity of an end of a copy: the host's own, or one in memory if it cannot be stored. A copy needs a stored one
/// only to resume after an interrupt.
pub(crate) fn identity(note: impl FnOnce(&str)) -> Result<Identity, CommandFailure> {
    match StateDir::open().and_then(|state| Identity::open(&state)) {
        Err(error @ (StateError::NoHome | StateError::Io { .. })) => {
            note(&format!("{error}; going on without: after an interrupt the copy begins anew"));
            Identity::random().map_err(|error| of_state(&error))
        }
        opened => opened.map_err(|error| of_state(&error)),
    }
}
