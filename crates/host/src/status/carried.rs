//! The progress that an application reports of a session's transfer.

use fairwave_proto::codec::SessionId;

use super::transfer::TransferStatus;

/// Progress of a transfer, reported by the application of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The session.
    pub session: SessionId,
    /// Whether this end gives, and the other one takes.
    pub gives: bool,
    /// The cause that it waits for, other than the network's rate.
    pub waits_for: Option<WaitsFor>,
    /// How far it is. [`TransferStatus::waits_for`] is filled in from the field above.
    pub status: TransferStatus,
}

/// The cause that a stalled transfer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The giver lists its files.
    List,
    /// The other end: a giver that sends nothing, or a taker that asks for nothing.
    Peer,
    /// The disk at this end: a giver reads it, a taker writes it.
    Disk,
    /// Making written data durable.
    Sync,
    /// The taker has all data, and reports the results.
    Results,
    /// Its session ended; it opens another.
    Session,
    /// Comparing existing files with the giver's hashes (`--check`).
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
