//! What a taker is to do.

use std::sync::Arc;

use fairwave_host::OwnPlaces;
use fairwave_units::{Bytes, Rate};

use super::durable::Durable;
use super::journal::BootId;
use super::kept_key::KeptKey;
use super::quota::Quota;
use super::takers::Takers;
use super::top_names::TopNames;
use super::top_note::Former;
use super::tree::Tree;
use super::verified::Verified;
use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::greeting::Look;
use crate::transfer::memory::Holder;

/// What a taker is to do.
pub(crate) struct TakeOptions {
    /// The destination, or nothing if it is not there and this is only a trial.
    pub(crate) tree: Option<Arc<Tree>>,
    pub(crate) selection: NameSelection,
    pub(crate) filter: Filter,
    /// Whether paths are those below the only thing at the top, a directory that is not taken itself.
    pub(crate) is_inside: bool,
    /// The names that may stand at the top of the list, if they are known.
    pub(crate) top_names: Option<TopNames>,
    /// The name at the destination of the only thing at the top that is taken, if it is to have another.
    pub(crate) rename: Option<Vec<u8>>,
    /// Where an unfinished transfer of the same may have made the destination.
    pub(crate) former: Option<Former>,
    pub(crate) look: Look,
    pub(crate) durable: Durable,
    /// What may come, at the most.
    pub(crate) limit: Option<Rate>,
    pub(crate) memory: Bytes,
    /// What the giver's list may take of memory, all in all.
    pub(crate) list_memory: Bytes,
    /// What the journal is of, beside what the giver says that it shares.
    pub(crate) scope: Vec<u8>,
    /// Tells from which start of the system blocks are that a journal lists.
    pub(crate) boot: BootId,
    /// Under which a journal is trusted.
    pub(crate) kept_key: KeptKey,
    /// Where nothing is written: this host keeps its keys there.
    pub(crate) own: Option<OwnPlaces>,
    /// For whom memory is taken.
    pub(crate) holder: Holder,
    /// Whether the giver is told what became of it: in a put.
    pub(crate) tells: bool,
    /// What earlier sessions of the transfer have compared or written: it is not compared again.
    pub(crate) verified: Verified,
    /// What all that take there may bring, if that is bounded.
    pub(crate) quota: Option<Quota>,
    /// Who else writes there, where an older transfer of the same gives way to a newer one.
    pub(crate) takers: Option<Takers>,
}

impl TakeOptions {
    /// So much is kept at the most of blocks that are not whole.
    pub(crate) fn most_parts(&self) -> u64 {
        self.memory.get() / 4
    }
}
