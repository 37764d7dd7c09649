//! The driver's record of each session.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;

use crossbeam_channel::Sender;
use fairwave_proto::codec::{CloseReason, SessionId, TicketId};
use fairwave_proto::handshake::{HandshakeError, Prefix};
use fairwave_proto::{ReceiverCounts, SenderCounts};

use super::pace::PublishPace;
use super::returns::Link;
use super::watch::Watch;
use crate::connect::ConnectError;
use crate::crypto::Pair;
use crate::handler::Handler;
use crate::proof::Proof;
use crate::session::{Session, SessionStats};

/// A session that is open.
pub(crate) struct OpenSession {
    pub(crate) session: Session,
    /// The ticket that admitted the peer, if the peer opened the session.
    pub(crate) ticket: Option<TicketId>,
    /// The link to a following session, if the peer opened it.
    pub(super) link: Option<Link>,
    /// The local caller that opened it and waits until it is also open at the other end.
    pub(crate) reply: Option<Sender<Result<Session, ConnectError>>>,
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) data: Pair,
    pub(crate) control: Pair,
    /// The tunnel that it was opened by.
    pub(crate) tunnel: Option<NonZeroU32>,
    /// The address of this host that the peer who opened it speaks to: answers leave from there.
    pub(crate) local: Option<IpAddr>,
    pub(crate) sent_wire_bytes: u64,
    pub(crate) received_wire_bytes: u64,
    pub(crate) watch: Watch,
    /// When others see what it does.
    pub(crate) pace: PublishPace,
}

impl OpenSession {
    pub(crate) fn new(
        session: Session,
        ticket: Option<TicketId>,
        handler: Box<dyn Handler>,
        (data, control): (Pair, Pair),
    ) -> Self {
        Self {
            session,
            ticket,
            link: None,
            reply: None,
            handler,
            data,
            control,
            tunnel: None,
            local: None,
            sent_wire_bytes: 0,
            received_wire_bytes: 0,
            watch: Watch::default(),
            pace: PublishPace::default(),
        }
    }

    /// Whether that is its proof, or the one of the session before it.
    pub(super) fn is_shown(&self, shown: &Proof) -> bool {
        self.link.is_some_and(|link| link.is_shown(&self.session.proof(), shown))
    }

    /// The peer has said something: it has the session, and its application takes part.
    pub(crate) fn on_heard(&mut self) {
        if let Some(reply) = self.reply.take() {
            // The caller may be gone; the handler has it.
            let _ = reply.send(Ok(self.session.clone()));
        }
    }

    /// It ended before the peer sent anything else: the caller gets a session if the peer had one.
    pub(crate) fn answer(&mut self, reason: CloseReason, by_peer: bool) {
        let Some(reply) = self.reply.take() else { return };
        // The caller may be gone.
        let _ = reply.send(never_was(reason, by_peer).map_or_else(|| Ok(self.session.clone()), Err));
    }

    /// Statistics with what it did as a source, and what it saw as a sink.
    pub(crate) fn with_counts(
        &self,
        stats: &SessionStats,
        (sent, received): (SenderCounts, ReceiverCounts),
    ) -> SessionStats {
        SessionStats {
            sent_packets: sent.sent,
            lost_packets: sent.lost.saturating_sub(sent.spurious),
            lost_bytes: sent.lost_bytes,
            spurious_packets: sent.spurious,
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

/// The error of a session that ended this way before its peer sent anything else, if it never was open. It has keys
/// since the peer answered the hello. The peer has it from the first packet on, and forgets it if none arrives for ten
/// seconds.
fn never_was(reason: CloseReason, by_peer: bool) -> Option<ConnectError> {
    match reason {
        CloseReason::Refused(refusal) if by_peer => Some(HandshakeError::Refused(refusal).into()),
        // The peer does not know it, any more; or nobody knows whether it does.
        CloseReason::Silence | CloseReason::Reset => Some(HandshakeError::FellSilent.into()),
        CloseReason::Cut => Some(ConnectError::Tunnel(reason.to_string())),
        // The peer had it and closed it, or the handler here did.
        _ => None,
    }
}

/// The sessions of a host. A name locates its session.
#[derive(Default)]
pub(crate) struct OpenSessions {
    slots: Vec<Option<Box<OpenSession>>>,
    count: usize,
    /// How many others have opened here, by what they were let in with and by where they were.
    by_ticket: BTreeMap<TicketId, usize>,
    by_prefix: BTreeMap<Prefix, usize>,
    /// The groups of tickets that have sessions, from 1.
    groups: BTreeMap<TicketId, u32>,
    last_group: u32,
}

impl OpenSessions {
    pub(crate) fn insert(&mut self, entry: OpenSession) {
        let slot = fairwave_proto::slot_of(entry.session.id()) as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        if let Some(ticket) = entry.ticket {
            *self.by_ticket.entry(ticket).or_default() += 1;
            *self.by_prefix.entry(prefix(&entry)).or_default() += 1;
        }
        let before = self.slots[slot].replace(Box::new(entry));
        self.count += 1;
        if let Some(before) = before {
            self.discount(&before);
        }
    }

    fn discount(&mut self, entry: &OpenSession) {
        self.count -= 1;
        if let Some(ticket) = entry.ticket {
            lower(&mut self.by_ticket, ticket);
            if !self.by_ticket.contains_key(&ticket) {
                self.groups.remove(&ticket);
            }
            lower(&mut self.by_prefix, prefix(entry));
        }
    }

    /// The group of a ticket's sessions: together they have the share of one.
    pub(crate) fn group_of(&mut self, ticket: TicketId) -> u32 {
        let last = &mut self.last_group;
        *self.groups.entry(ticket).or_insert_with(|| {
            *last = last.wrapping_add(1).max(1);
            *last
        })
    }

    /// Sessions that were opened with a ticket.
    pub(crate) fn of_ticket(&self, ticket: TicketId) -> usize {
        self.by_ticket.get(&ticket).copied().unwrap_or_default()
    }

    /// Sessions that were opened from such addresses.
    pub(crate) fn of_prefix(&self, prefix: Prefix) -> usize {
        self.by_prefix.get(&prefix).copied().unwrap_or_default()
    }

    /// The tickets that sessions were opened with.
    pub(crate) fn tickets(&self) -> impl Iterator<Item = TicketId> {
        self.by_ticket.keys().copied()
    }

    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut OpenSession> {
        let entry = self.slots.get_mut(fairwave_proto::slot_of(session) as usize)?.as_deref_mut()?;
        (entry.session.id() == session).then_some(entry)
    }

    pub(crate) fn remove(&mut self, session: SessionId) -> Option<Box<OpenSession>> {
        let slot = self.slots.get_mut(fairwave_proto::slot_of(session) as usize)?;
        let entry = slot.take_if(|entry| entry.session.id() == session)?;
        self.discount(&entry);
        Some(entry)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &OpenSession> {
        self.slots.iter().flatten().map(|entry| &**entry)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The address prefix of the peer when it opened the session.
fn prefix(entry: &OpenSession) -> Prefix {
    Prefix::of(entry.session.facts().peer.ip())
}

fn lower<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    if let std::collections::btree_map::Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}
