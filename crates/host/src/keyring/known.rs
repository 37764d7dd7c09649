//! All known tickets and shares of a host.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use fairwave_proto::codec::TicketId;

use super::issued::{Issued, Offering};
use crate::share_id::ShareId;

/// The content of a keyring's file, and what this process found out since it was read.
#[derive(Clone, Default)]
pub(super) struct KnownTickets {
    pub(super) tickets: BTreeMap<TicketId, Issued>,
    /// Tickets that this process knows to be used up, in the file or not yet.
    pub(super) spent: BTreeSet<TicketId>,
    pub(super) ports: BTreeMap<ShareId, u16>,
    pub(super) offerings: BTreeMap<ShareId, Offering>,
    /// The file as it was read.
    pub(super) stamp: Option<FileStamp>,
    pub(super) looked: Option<Instant>,
}

/// Identifies a version of the file: each is a separate file, renamed into place.
pub(super) type FileStamp = (u64, i64, i64, u64);
