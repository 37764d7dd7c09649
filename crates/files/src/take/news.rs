//! Events that the threads of a transfer send to its coordinator.

use std::ops::Range;
use std::sync::Arc;

use fairwave_host::Session;
use fairwave_proto::codec::CloseReason;

use crate::take::disk::disk_error::Trouble;
use crate::take::disk::disk_state::Report;
use crate::take::fetch::parcel::Parcel;
use crate::take::fetch::taken_file::TakenFile;

/// Something that the coordinator should know.
pub(crate) enum TakeNews {
    /// The session is open.
    Opened(Session),
    /// Received bytes of the manifest.
    Manifest(u64, Vec<u8>),
    /// A void range of the manifest.
    ManifestVoid(Range<u64>),
    /// A parcel with this many bytes of files is with the workers.
    Arrived(u64),
    /// A worker has done something.
    Worked(Report),
    /// A batch of files is at its place.
    Placed(Placed),
    /// The session is over.
    Closed {
        /// Why.
        reason: CloseReason,
        /// Whether the peer closed it.
        by_peer: bool,
        /// Parcels that were requested and are incomplete.
        open: Vec<Parcel>,
    },
}

/// The result of a batch of files.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Files at their places, as durable as was asked for.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Themselves.
    pub(crate) items: Vec<Arc<TakenFile>>,
    /// Files that failed.
    pub(crate) failed: Vec<(Arc<TakenFile>, Trouble)>,
}
