//! What is known of all tickets and shares of a host.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use fairwave_proto::codec::TicketId;

use super::issued::{Issued, Offering};
use crate::share_id::ShareId;

/// What a keyring knows: what its file says, and what this process found out since.
#[derive(Clone, Default)]
pub(super) struct KnownTickets {
    pub(super) tickets: BTreeMap<TicketId, Issued>,
    /// Tickets that this process knows to be used up, whether the file says so yet or not.
    pub(super) spent: BTreeSet<TicketId>,
    pub(super) ports: BTreeMap<ShareId, u16>,
    pub(super) offerings: BTreeMap<ShareId, Offering>,
    /// The file as it was read.
    pub(super) stamp: Option<FileStamp>,
    pub(super) looked: Option<Instant>,
}

/// Tells one content of the file from another: each is a file of its own, renamed into place.
pub(super) type FileStamp = (u64, i64, i64, u64);
