//! Asking a daemon what can be seen of its machine.

use std::path::Path;

use fairwave_host::door::{DoorError, DoorStream, Question, usual_sockets};
use serde::Deserialize;
use thiserror::Error;

use crate::snapshot::{MachineSnapshot, SNAPSHOT_VERSION};

/// Why nothing can be seen.
#[derive(Debug, Error)]
pub enum AskError {
    /// Nobody answers as a daemon does.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// What it answers is not understood.
    #[error("unexpected reply from the daemon: {0}")]
    Format(#[from] serde_json::Error),
    /// What it answers is of another version.
    #[error("the daemon uses status format {0}, this Fairwave supports {SNAPSHOT_VERSION}")]
    Version(u32),
}

impl AskError {
    /// What helps, where somebody can do something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Door(error) => error.hint(),
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

/// What the daemon at a socket shows of its machine: all of the asker's sessions, and sums of others'.
pub fn ask(socket: &Path) -> Result<MachineSnapshot, AskError> {
    let answer = DoorStream::connect(socket)?.ask(&Question::Status)?;
    match serde_json::from_str(&answer)? {
        StatusAnswer::Status(shown) if shown.version == SNAPSHOT_VERSION => Ok(*shown),
        StatusAnswer::Status(shown) => Err(AskError::Version(shown.version)),
        StatusAnswer::Error(error) => Err(DoorError::Refused(error).into()),
    }
}

/// The same of the daemon of this machine; none where none runs.
pub fn ask_any() -> Result<Option<MachineSnapshot>, AskError> {
    let mut found = Ok(None);
    for socket in usual_sockets() {
        match ask(&socket) {
            Ok(shown) => return Ok(Some(shown)),
            // A killed one's socket is still there: none runs.
            Err(AskError::Door(DoorError::Nobody { .. })) => {}
            Err(error) => found = Err(error),
        }
    }
    found
}
