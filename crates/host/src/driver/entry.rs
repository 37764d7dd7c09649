//! What the driver keeps of each session.

use std::net::IpAddr;

use fairwave_proto::codec::{CloseReason, Kind, SessionId, TicketId};
use fairwave_proto::{ReceiverCounts, SenderCounts};

use super::watch::Watch;
use crate::crypto::{Opener, Sealer, SessionKeys};
use crate::handler::Handler;
use crate::session::{Session, SessionStats};

/// A session that is open.
pub(crate) struct Entry {
    pub(crate) session: Session,
    /// What the peer was let in with, where it opened the session.
    pub(crate) ticket: Option<TicketId>,
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) data_out: Sealer,
    pub(crate) control_out: Sealer,
    pub(crate) data_in: Opener,
    pub(crate) control_in: Opener,
    /// The address of this host that the peer who opened it speaks to: answers leave from there.
    pub(crate) local: Option<IpAddr>,
    pub(crate) sent_wire_bytes: u64,
    pub(crate) received_wire_bytes: u64,
    pub(crate) watch: Watch,
}

impl Entry {
    pub(crate) fn new(
        session: Session,
        ticket: Option<TicketId>,
        handler: Box<dyn Handler>,
        keys: &SessionKeys,
    ) -> Self {
        Self {
            session,
            ticket,
            handler,
            data_out: keys.sealer(Kind::Data),
            control_out: keys.sealer(Kind::Control),
            data_in: keys.opener(Kind::Data),
            control_in: keys.opener(Kind::Control),
            local: None,
            sent_wire_bytes: 0,
            received_wire_bytes: 0,
            watch: Watch::default(),
        }
    }

    /// Statistics with what it did as a source, and what it saw as a sink.
    pub(crate) fn with_counts(
        &self,
        stats: &SessionStats,
        (sent, received): (SenderCounts, ReceiverCounts),
    ) -> SessionStats {
        SessionStats {
            sent_packets: sent.sent,
            lost_packets: sent.lost,
            lost_bytes: sent.lost_bytes,
            sent_wire_bytes: self.sent_wire_bytes,
            received_bytes: received.bytes,
            received_wire_bytes: self.received_wire_bytes,
            received_packets: received.packets,
            missed_packets: received.missed_packets,
            ..*stats
        }
    }

    /// It is over: the counts are those of the end, and all else stays as it was last seen.
    pub(crate) fn publish_last(&self, counts: (SenderCounts, ReceiverCounts)) {
        self.session.publish(self.with_counts(&self.session.stats(), counts));
    }

    /// Logs that it is over.
    pub(crate) fn log_end(&self, reason: CloseReason, by_peer: bool) {
        let (sent_bytes, received_bytes) = (self.sent_wire_bytes, self.received_wire_bytes);
        let SessionStats { lost_packets, missed_packets, .. } = *self.session.stats();
        tracing::info!(
            parent: self.session.span(), ?reason, by_peer, sent_bytes, received_bytes, lost_packets, missed_packets, "closed"
        );
    }
}

/// The sessions of a host. A name says where its session is.
#[derive(Default)]
pub(crate) struct Entries {
    slots: Vec<Option<Box<Entry>>>,
    count: usize,
}

impl Entries {
    pub(crate) fn insert(&mut self, entry: Entry) {
        let slot = fairwave_proto::slot_of(entry.session.id()) as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.count += usize::from(self.slots[slot].replace(Box::new(entry)).is_none());
    }

    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut Entry> {
        let entry = self.slots.get_mut(fairwave_proto::slot_of(session) as usize)?.as_deref_mut()?;
        (entry.session.id() == session).then_some(entry)
    }

    pub(crate) fn remove(&mut self, session: SessionId) -> Option<Box<Entry>> {
        let slot = self.slots.get_mut(fairwave_proto::slot_of(session) as usize)?;
        let entry = slot.take_if(|entry| entry.session.id() == session)?;
        self.count -= 1;
        Some(entry)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten().map(|entry| &**entry)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}
