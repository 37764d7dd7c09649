//! What an application says of the transfer that a session carries.

use fairwave_proto::codec::SessionId;

use super::transfer::TransferStatus;

/// How far a transfer is, as the application says whose session carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The session.
    pub session: SessionId,
    /// Whether this end gives, and the other one takes.
    pub gives: bool,
    /// What it waits for, where that is not the network's rate.
    pub waits_for: Option<WaitsFor>,
    /// How far it is. [`TransferStatus::waits_for`] is filled in from the field above.
    pub status: TransferStatus,
}

/// What a transfer that does not move waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The giver lists its files.
    List,
    /// The other end: a giver that sends nothing, or a taker that asks for nothing.
    Peer,
    /// The disk at this end: a giver reads it, a taker writes it.
    Disk,
    /// What was written is being made durable.
    Sync,
    /// The taker has all, and tells what became of it.
    Results,
    /// Its session ended; it opens another.
    Session,
    /// What is there is compared with the giver's hashes (`--check`).
    Comparing,
}

impl WaitsFor {
    /// Its word in [`TransferStatus::waits_for`].
    fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Peer => "peer",
            Self::Disk => "disk",
            Self::Sync => "sync",
            Self::Results => "results",
            Self::Session => "session",
            Self::Comparing => "comparing",
        }
    }
}

impl TransferStatus {
    /// How far it is, with the word for what it waits for.
    pub(super) fn of(carried: &Carried) -> Self {
        Self { waits_for: carried.waits_for.map(|what| what.word().to_owned()), ..carried.status.clone() }
    }
}
