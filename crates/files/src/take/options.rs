//! Options of a taker.

use std::sync::Arc;

use fairwave_host::OwnPlaces;
use fairwave_units::{Bytes, Rate};

use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::greeting::Look;
use crate::format::packed::Compress;
use crate::take::disk::durable::Durable;
use crate::take::disk::quota::Quota;
use crate::take::disk::tree::Tree;
use crate::take::disk::worker_slots::WorkerSlots;
use crate::take::list::top_names::TopNames;
use crate::take::resume::kept_key::KeptKey;
use crate::take::resume::takers::Admission;
use crate::take::resume::top_note::Former;
use crate::take::resume::verified::Verified;
use crate::transfer::boot::BootId;
use crate::transfer::memory::Holder;

/// Options of a taker.
#[expect(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub(crate) struct TakeOptions {
    /// The destination, or `None` if it does not exist in a dry run.
    pub(crate) tree: Option<Arc<Tree>>,
    pub(crate) selection: NameSelection,
    pub(crate) filter: Filter,
    /// Whether paths are those below the only entry at the top, a directory that is not taken itself.
    pub(crate) is_inside: bool,
    /// The names that may stand at the top of the list, if they are known.
    pub(crate) top_names: Option<TopNames>,
    /// The name at the destination of the only name that is asked for, or of the only thing at the top that is taken, if
    /// it is to have another.
    pub(crate) rename: Option<Vec<u8>>,
    /// The place where an unfinished transfer of the same may have made the destination.
    pub(crate) former: Option<Former>,
    pub(crate) look: Look,
    /// Whether files are fetched whole, also those of which the destination has an older version.
    pub(crate) whole_file: bool,
    /// Whether anything but one file ends the transfer.
    pub(crate) one_file: bool,
    /// Whether blocks are requested packed.
    pub(crate) compress: Compress,
    pub(crate) durable: Durable,
    /// Max rate of receiving.
    pub(crate) limit: Option<Rate>,
    pub(crate) memory: Bytes,
    /// Max memory of the giver's list.
    pub(crate) list_memory: Bytes,
    /// The scope of the journal, in addition to the giver's name of the share.
    pub(crate) scope: Vec<u8>,
    /// Tells from which start of the system blocks are that a journal lists.
    pub(crate) boot: BootId,
    /// Under which a journal is trusted.
    pub(crate) kept_key: KeptKey,
    /// Places that are never written: this host keeps its keys there.
    pub(crate) own: Option<OwnPlaces>,
    /// For whom memory is taken.
    pub(crate) holder: Holder,
    /// Whether results are sent to the giver: in a put.
    pub(crate) tells: bool,
    /// Files that earlier sessions of the transfer have compared or written: they are not compared again.
    pub(crate) verified: Verified,
    /// Limit of all transfers into the directory, if any.
    pub(crate) quota: Option<Quota>,
    /// Place among the writers of the directory: a newer transfer replaces an older one of the same.
    pub(crate) admission: Option<Admission>,
    /// Slots of the disk workers of the visitor's ticket.
    pub(crate) worker_slots: Option<Arc<WorkerSlots>>,
}

impl TakeOptions {
    /// Max bytes of incomplete blocks that are kept.
    pub(crate) fn most_parts(&self) -> u64 {
        self.memory.get() / 4
    }
}
