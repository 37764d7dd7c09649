//! Asking a daemon what can be seen of its machine.

use std::path::Path;

use serde::Deserialize;
use thiserror::Error;

use super::snapshot::{MachineSnapshot, SNAPSHOT_VERSION};
use crate::control_socket::{ControlError, ControlStream, Question, usual_sockets};

/// Why nothing can be seen.
#[derive(Debug, Error)]
pub enum AskError {
    /// Nobody answers as a daemon does.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The answer cannot be parsed.
    #[error("unexpected reply from the daemon: {0}")]
    Format(#[from] serde_json::Error),
    /// The answer is of another version.
    #[error("the daemon uses status format {0}, this Fairwave supports {SNAPSHOT_VERSION}")]
    Version(u32),
}

impl AskError {
    /// A hint, if the user can do something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Control(error) => error.hint(),
            Self::Format(_) | Self::Version(_) => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatusAnswer {
    Status(Box<MachineSnapshot>),
    Error(String),
}

/// The state of the machine from the daemon at a socket: all of the caller's sessions, and sums of the others'.
pub fn ask(socket: &Path) -> Result<MachineSnapshot, AskError> {
    let answer = ControlStream::connect(socket)?.ask(&Question::Status)?;
    match serde_json::from_str(&answer)? {
        StatusAnswer::Status(shown) if shown.version == SNAPSHOT_VERSION => Ok(*shown),
        StatusAnswer::Status(shown) => Err(AskError::Version(shown.version)),
        StatusAnswer::Error(error) => Err(ControlError::Refused(error).into()),
    }
}

/// The state of the machine from this machine's daemon; `None` if no daemon runs.
pub fn ask_any() -> Result<Option<MachineSnapshot>, AskError> {
    let mut found = Ok(None);
    for socket in usual_sockets() {
        match ask(&socket) {
            Ok(shown) => return Ok(Some(shown)),
            // A killed one's socket is still there: none runs.
            Err(AskError::Control(ControlError::Nobody { .. })) => {}
            Err(error) => found = Err(error),
        }
    }
    found
}
