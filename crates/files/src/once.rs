//! The owner of a ticket for one transfer, and when the ticket is used up.
//!
//! The first session that opens with such a ticket owns it. A session that follows another of the same transfer proves
//! it, and takes its place; all others are refused until then. This end decides when the ticket is used up, whatever
//! close reason the peer sends:
//!
//! - a get: when the taker reports that it is done, or when all bytes of any file have been sent with the ticket, in
//!   all sessions together;
//! - a put: when a file is at its place.
//!
//! Neither the peer's close reason nor an unfinished list changes that. Its owner may resume until its transfer ends,
//! even when the ticket is used up: for bytes that were lost in transit. That is bounded as well: one session at a
//! time, and each file four times.
//!
//! A dry run does not use it up: no bytes of files are sent, and nothing is put.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::{Handler, Lock, OneUse, Proof, Session};
use fairwave_proto::codec::{CloseReason, Refusal, TicketId, VoidReason};

use crate::transfer::ledger::Transfer;
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::progress::GivenFile;
use crate::transfer::progress::GivenFiles;
use crate::transfer::visit::VisitKind;

/// An owner whose session was lost may resume for this time before others may use the ticket: as long as transfers
/// retry.
pub(crate) const COMES_BACK_WITHIN: Duration = Duration::from_secs(600);

/// Max times that a file is sent with a ticket for one transfer, however often its sessions are lost.
const MAX_TIMES: u64 = 4;
/// Max files of one ticket of which bytes were sent: 10 MB. An owner that was lost after more of them cannot resume.
const MAX_FILES: usize = 1 << 18;

/// The tickets for one transfer that were shown at a share, in memory: after a restart only used-up tickets are known.
#[derive(Clone, Default)]
pub(crate) struct TicketUses {
    by_ticket: Arc<Lock<BTreeMap<TicketId, TicketUse>>>,
}

#[derive(Default)]
struct TicketUse {
    owner: Option<Owner>,
    /// The owner's latest session that opened.
    session: Option<Session>,
    /// Bytes sent of each file, by the hash of its path, in sessions that have ended.
    sent: HashMap<[u8; 16], u64>,
    /// Whether it was used, whatever happens to its session.
    is_used: bool,
    /// Whether its owner has had what a transfer that is lost again and again may need.
    is_exhausted: bool,
}

struct Owner {
    /// Of its latest session.
    proof: Proof,
    /// The time since which it has no session.
    away: Option<Instant>,
}

impl TicketUses {
    /// Why a visitor is not let in, if so: another one has the ticket.
    pub(crate) fn refusal(&self, now: Instant, ticket: TicketId, follows: Option<&Proof>) -> Option<Refusal> {
        let claims = self.by_ticket.lock();
        let claim = claims.get(&ticket)?;
        if claim.is_exhausted {
            return Some(Refusal::UsedUp);
        }
        (!claim.owner.as_ref()?.gives_way_to(now, follows)).then_some(Refusal::InUse)
    }

    /// A session with it has opened: whether it owns the ticket now.
    fn begin(&self, now: Instant, ticket: TicketId, follows: Option<&Proof>, proof: Proof) -> bool {
        let mut claims = self.by_ticket.lock();
        let claim = claims.entry(ticket).or_default();
        if claim.is_exhausted || claim.owner.as_ref().is_some_and(|owner| !owner.gives_way_to(now, follows)) {
            return false;
        }
        claim.owner = Some(Owner { proof, away: None });
        true
    }

    /// Makes this session the owner's; returns the previous one, if any, which may still be open.
    fn succeed(&self, ticket: TicketId, session: &Session) -> Option<Session> {
        self.by_ticket.lock().entry(ticket).or_default().session.replace(session.clone())
    }

    /// A session with it is over, which gave that much of each file: whether all of any file has been given by now.
    fn count(&self, ticket: TicketId, given: GivenFiles) -> bool {
        let mut claims = self.by_ticket.lock();
        let claim = claims.entry(ticket).or_default();
        match given {
            GivenFiles::Uncounted => {}
            GivenFiles::Counted(files) => files.iter().for_each(|file| claim.count(file)),
            GivenFiles::TooMany => claim.is_used = true,
        }
        if claim.sent.len() > MAX_FILES {
            (claim.sent, claim.is_exhausted) = (HashMap::new(), true);
        }
        claim.is_used |= claim.is_exhausted;
        claim.is_used
    }

    /// A session that was its owner's is over: whether it was lost, and may be followed by another.
    fn end(&self, now: Instant, ticket: TicketId, proof: &Proof, is_lost: bool) {
        let mut claims = self.by_ticket.lock();
        let Some(claim) = claims.get_mut(&ticket) else { return };
        // Another session of the owner may have followed already.
        if let Some(owner) = claim.owner.take_if(|owner| owner.proof == *proof) {
            claim.owner = is_lost.then_some(Owner { away: Some(now), ..owner });
            claim.session = None;
        }
    }

    /// Whether the ticket has an owner: a session is open with it, or its owner may resume.
    pub(crate) fn is_held(&self, now: Instant, ticket: TicketId) -> bool {
        let claims = self.by_ticket.lock();
        let owner = claims.get(&ticket).and_then(|claim| claim.owner.as_ref());
        owner.is_some_and(|owner| !owner.has_lapsed(now))
    }
}

impl TicketUse {
    fn count(&mut self, file: &GivenFile) {
        let sent = self.sent.entry(file.name).or_default();
        *sent = sent.saturating_add(file.given_bytes);
        self.is_used |= *sent > 0 && *sent >= file.data_bytes;
        self.is_exhausted |= *sent > 0 && *sent >= file.data_bytes.saturating_mul(MAX_TIMES);
    }
}

impl Owner {
    fn has_lapsed(&self, now: Instant) -> bool {
        self.away.is_some_and(|since| now.saturating_duration_since(since) >= COMES_BACK_WITHIN)
    }

    fn gives_way_to(&self, now: Instant, follows: Option<&Proof>) -> bool {
        follows == Some(&self.proof) || self.has_lapsed(now)
    }
}

/// The end of a session that was opened with a ticket for one transfer.
pub(crate) struct Claiming {
    /// `None` once another session turned out to own the ticket.
    handler: Option<Box<dyn Handler>>,
    claims: TicketUses,
    ticket: TicketId,
    follows: Option<Proof>,
    /// Set when it owns the ticket, with the end of its session.
    own: Arc<Lock<Own>>,
}

#[derive(Clone, Copy, Default)]
struct Own {
    proof: Option<Proof>,
    is_lost: bool,
}

impl TicketUses {
    /// Wraps a handler; its session owns the ticket if it is the first to open. The end of its transfer decides whether
    /// the ticket is used up.
    pub(crate) fn claiming(
        &self,
        ticket: TicketId,
        one_use: OneUse<'_>,
        kind: VisitKind,
        handler: Box<dyn Handler>,
        transfer: &Transfer,
    ) -> Claiming {
        let own = Arc::<Lock<Own>>::default();
        let (claims, keyring, ended) = (self.clone(), Arc::clone(one_use.keyring), own.clone());
        transfer.count_files();
        transfer.at_end(Box::new(move |outcome, tally| {
            let Own { proof, is_lost } = *ended.lock();
            // A session that never opened received nothing.
            let Some(proof) = proof else { return };
            let is_file_sent = claims.count(ticket, tally.take_given());
            // Before another session may start.
            if is_file_sent || is_use(kind, outcome) {
                keyring.use_up(ticket);
            }
            claims.end(Instant::now(), ticket, &proof, is_lost);
        }));
        Claiming { handler: Some(handler), claims: self.clone(), ticket, follows: one_use.follows, own }
    }
}

/// Whether such an end of a transfer is the use that a ticket was for. A client that could put nothing may try again.
fn is_use(kind: VisitKind, outcome: &Outcome) -> bool {
    let is_done = outcome.ended == Ended::Done;
    match kind {
        VisitKind::Get => is_done,
        VisitKind::Put => outcome.files > 0 || (is_done && outcome.files_failed == 0),
        VisitKind::DryPut => false,
    }
}

impl Handler for Claiming {
    fn on_open(&mut self, session: &Session) {
        let proof = session.proof();
        if self.claims.begin(Instant::now(), self.ticket, self.follows.as_ref(), proof) {
            self.own.lock().proof = Some(proof);
            // One session at a time: a follower replaces the previous session.
            if let Some(former) = self.claims.succeed(self.ticket, session) {
                former.close(CloseReason::Stopped);
            }
            if let Some(handler) = &mut self.handler {
                handler.on_open(session);
            }
        } else {
            // Both asked when neither had opened.
            self.handler = None;
            session.close(CloseReason::Refused(Refusal::InUse));
        }
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        match &mut self.handler {
            Some(handler) => handler.on_request(session, stream, range),
            None => session.refuse(stream, range, VoidReason::Vanished),
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        self.handler.as_mut().ok_or(VoidReason::Vanished)?.lend(stream, range, take)
    }

    fn comes_later(&mut self) -> bool {
        self.handler.as_mut().is_some_and(|handler| handler.comes_later())
    }

    fn on_data(&mut self, session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        if let Some(handler) = &mut self.handler {
            handler.on_data(session, stream, offset, bytes);
        }
    }

    fn on_void(&mut self, session: &Session, stream: u32, range: Range<u64>, reason: VoidReason) {
        if let Some(handler) = &mut self.handler {
            handler.on_void(session, stream, range, reason);
        }
    }

    fn on_closed(&mut self, session: &Session, reason: CloseReason, by_peer: bool) {
        // A client that stopped or left does not resume by itself, and may start again like any other.
        self.own.lock().is_lost =
            matches!(reason, CloseReason::Silence | CloseReason::Path | CloseReason::Keys | CloseReason::Cut);
        if let Some(handler) = &mut self.handler {
            handler.on_closed(session, reason, by_peer);
        }
    }
}

#[cfg(test)]
mod tests;
