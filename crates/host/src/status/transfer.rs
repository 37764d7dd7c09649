//! How far a transfer is, as processes tell each other.

use serde::{Deserialize, Serialize};

/// How far a transfer is, as processes tell each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStatus {
    /// Files that are to be moved, once all are known.
    pub files_total: Option<u64>,
    /// Files at the destination.
    pub files_done: u64,
    /// Files that failed.
    pub files_failed: u64,
    /// Bytes that are to be moved, once all are known.
    pub bytes_total: Option<u64>,
    /// Bytes at the destination.
    pub bytes_done: u64,
    /// Bytes in addition to those, of blocks that are incomplete or not verified yet: they need not be sent again.
    #[serde(default)]
    pub bytes_held: u64,
    /// Bytes in addition to those that were found right in a comparison still in progress.
    #[serde(default)]
    pub bytes_compared: u64,
    /// The cause that it waits for: "list", "peer", "disk", "sync", "results", "session", "comparing".
    pub waits_for: Option<String>,
}
