//! Visitors that open sessions here, and the application's decisions.
//!
//! A visitor is judged twice. First at its hello, which proves that it holds the ticket and receives at its address:
//! may this ticket do what the hello requests? Nothing is opened, started or remembered for that. Then when the first
//! packet under the session's own keys has arrived, which a replayed hello never leads to: only then the application
//! makes a handler.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use fairwave_proto::Terms;
use fairwave_proto::codec::{Refusal, SessionId, TicketId};
use fairwave_proto::handshake::{HALF_OPEN_LASTS, PendingVisit, Prefix};
use fairwave_units::{Duration, Time};

use super::address::canonical;
use super::entry::{OpenSession, OpenSessions};
use super::returns::{self, Chain, Link, Returns};
use crate::crypto::Noise;
use crate::handler::Handler;
use crate::keyring::{Keyring, id_text, now_unix_s};
use crate::log_limiter::LogLimiter;
use crate::one_use::OneUse;
use crate::proof::Proof;
use crate::visitor::{Accept, Judge, Visitor};

/// The visitors of an endpoint, and its listener.
#[derive(Default)]
pub(super) struct Visits {
    reception: Option<Reception>,
    /// Visitors admitted, but without their first packet.
    admitted: Vec<Admitted>,
    /// Clients that may return with an expired ticket.
    pub(super) returns: Returns,
    /// Log lines about who was not let in.
    refusals: LogLimiter,
    looked: Time,
}

/// The application's part of an accepted session.
pub(super) struct Accepted {
    /// If that is another thing than what was agreed: what the end node knows of it.
    pub(super) options: Option<Terms>,
    pub(super) handler: Box<dyn Handler>,
    pub(super) link: Link,
    /// The session that it follows, if that is still open here: its other end has seen its end first.
    pub(super) follows: Option<SessionId>,
}

/// The listener of an endpoint.
pub(super) struct Reception {
    pub(super) tickets: Arc<Keyring>,
    pub(super) judge: Judge,
    pub(super) accept: Accept,
}

/// Someone whose session is half open.
pub(super) struct Admitted {
    peer: SessionId,
    from: SocketAddr,
    at: Time,
    pub(super) ticket: TicketId,
    /// Proves which session this one follows, if any.
    proof: Option<Proof>,
    /// Whether its ticket opens nothing else any more.
    is_return: bool,
    greeting: Vec<u8>,
    sends: bool,
    receives: bool,
    options: Terms,
}

/// Period of checks for revoked tickets.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Max sessions open at once with one ticket: an eighth of all, and more than `fairwave bench` has. An application may
/// bound them below that by its own cost of each ([`Visitor::sessions`]).
const MAX_OF_TICKET: usize = 8192;
/// And from one prefix, with whatever tickets: a quarter of all.
const MAX_OF_PREFIX: usize = 16_384;

impl Visits {
    /// From now on the holders of these tickets are let in.
    pub(super) fn listen(&mut self, reception: Reception) {
        self.reception = Some(reception);
    }

    /// Judges a hello that proves its ticket and its address: whether its ticket may have a session. Refused visitors
    /// are forgotten; the same hello may arrive twice. `is_plain` is this end's setting.
    pub(super) fn judge(
        &mut self,
        now: Time,
        visit: &PendingVisit<Noise>,
        entries: &OpenSessions,
        is_plain: bool,
    ) -> Result<Terms, Refusal> {
        let (from, ticket) = (visit.from(), visit.prologue.ticket);
        let is_agreed = visit.prologue.is_plain == is_plain;
        let judged = if is_agreed { self.judgement(now, visit, entries) } else { Err(Refusal::Plain) };
        let (options, is_return) = judged.inspect_err(|refusal| self.log(from, ticket, *refusal))?;
        let (proof, greeting) = returns::read(&visit.greeting).unwrap_or_default();
        let greeting = greeting.to_vec();
        self.admitted.retain(|admitted| admitted.peer != visit.peer || admitted.from != from);
        let PendingVisit::<Noise> { peer, sends, receives, .. } = *visit;
        let admitted = Admitted { peer, from, at: now, ticket, proof, is_return, greeting, sends, receives, options };
        self.admitted.push(admitted);
        Ok(options)
    }

    fn judgement(
        &mut self,
        now: Time,
        visit: &PendingVisit<Noise>,
        entries: &OpenSessions,
    ) -> Result<(Terms, bool), Refusal> {
        let Some(Reception { tickets, judge, .. }) = &mut self.reception else { return Err(Refusal::UnknownName) };
        let (from, ticket) = (visit.from(), visit.prologue.ticket);
        let (proof, greeting) = returns::read(&visit.greeting).ok_or(Refusal::UnknownName)?;
        // A transfer that started before its ticket expired, or was used up, continues to its end.
        let former = former(&self.returns, now, entries, ticket, proof, greeting);
        let goes_on_since_unix_s = match (tickets.refusal(ticket), former) {
            (None, _) => None,
            (Some(Refusal::Expired | Refusal::UsedUp), Some((chain, _))) => Some(chain.since_unix_s),
            (Some(refusal), _) => return Err(refusal),
        };
        let sessions = room(entries, ticket, from.ip())?;
        let one_use = one_use(tickets, ticket, proof);
        let (sends, receives) = (visit.sends, visit.receives);
        let visitor = Visitor { from, ticket, greeting, sends, receives, sessions, one_use, goes_on_since_unix_s };
        Ok((judge(&visitor)?, goes_on_since_unix_s.is_some()))
    }

    /// The first packet of a session has come from who was let in: the handler of the session, and what the end node
    /// knows of it. `None` if it took longer than half-open sessions last.
    pub(super) fn take(&mut self, peer: SessionId, address: SocketAddr) -> Option<Admitted> {
        let found = self.admitted.iter().position(|admitted| admitted.peer == peer && admitted.from == address)?;
        Some(self.admitted.swap_remove(found))
    }

    /// Asks the application to accept a session.
    pub(super) fn accept(
        &mut self,
        now: Time,
        admitted: &Admitted,
        entries: &OpenSessions,
    ) -> Result<Accepted, Refusal> {
        let Admitted { from, ticket, proof, is_return, ref greeting, sends, receives, options, .. } = *admitted;
        let Some(Reception { tickets, accept, .. }) = &mut self.reception else { return Err(Refusal::UnknownName) };
        let former = former(&self.returns, now, entries, ticket, proof, greeting);
        let mut accepted = || {
            let goes_on_since_unix_s = match (tickets.refusal(ticket), former) {
                (None, _) => None,
                // It was judged a moment ago: whether it has expired since does not matter.
                (Some(Refusal::Expired), _) if !is_return => None,
                // Each session is followed by one: several may have been judged by the same proof.
                (Some(Refusal::Expired | Refusal::UsedUp), Some((chain, _))) => Some(chain.since_unix_s),
                (Some(refusal), _) => return Err(refusal),
            };
            let sessions = room(entries, ticket, from.ip())?;
            let one_use = one_use(tickets, ticket, proof);
            accept(&Visitor { from, ticket, greeting, sends, receives, sessions, one_use, goes_on_since_unix_s })
        };
        let (wanted, handler) = accepted().inspect_err(|refusal| self.log(from, ticket, *refusal))?;
        if let Some(shown) = &proof {
            self.returns.take(ticket, shown);
        }
        let (chain, follows) = former.unwrap_or_else(|| (Chain::begin(now, now_unix_s(), greeting), None));
        let link = Link { chain, former: proof.filter(|_| former.is_some()) };
        Ok(Accepted { options: (wanted != options).then_some(wanted), handler, link, follows })
    }

    /// Sessions whose tickets were revoked.
    pub(super) fn revoked(&mut self, now: Time, entries: &OpenSessions) -> Vec<SessionId> {
        self.admitted.retain(|admitted| now.since(admitted.at) < HALF_OPEN_LASTS * 2);
        let Some(Reception { tickets, .. }) = self.reception.as_ref().filter(|_| now.since(self.looked) >= LOOK_EVERY)
        else {
            return Vec::new();
        };
        self.looked = now;
        let is_revoked = |ticket: TicketId| tickets.refusal(ticket) == Some(Refusal::Revoked);
        let revoked: Vec<TicketId> = entries.tickets().filter(|ticket| is_revoked(*ticket)).collect();
        if revoked.is_empty() {
            return Vec::new();
        }
        let is_one = |entry: &&OpenSession| entry.ticket.is_some_and(|ticket| revoked.contains(&ticket));
        entries.iter().filter(is_one).map(|entry| entry.session.id()).collect()
    }

    fn log(&self, from: SocketAddr, ticket: TicketId, refusal: Refusal) {
        if tracing::enabled!(tracing::Level::INFO) && self.refusals.allows(Instant::now()) {
            tracing::info!(from = %canonical(from), ticket = %id_text(ticket), "refused: {refusal}");
        }
    }
}

/// The chain of the session that a visitor shows to have had, if it may go on with that, and which one it is if that is
/// still open here.
fn former(
    returns: &Returns,
    now: Time,
    entries: &OpenSessions,
    ticket: TicketId,
    proof: Option<Proof>,
    said: &[u8],
) -> Option<(Chain, Option<SessionId>)> {
    let shown = proof?;
    let is_it = |entry: &&OpenSession| entry.ticket == Some(ticket) && entry.is_shown(&shown);
    if let Some(entry) = entries.iter().find(is_it) {
        let chain = entry.link?.chain;
        return chain.admits(now, said).then(|| (chain, Some(entry.session.id())));
    }
    Some((returns.find(now, ticket, &shown, said)?, None))
}

/// The ticket, if it is for one transfer.
fn one_use(tickets: &Arc<Keyring>, ticket: TicketId, follows: Option<Proof>) -> Option<OneUse<'_>> {
    tickets.is_once(ticket).then_some(OneUse { keyring: tickets, follows })
}

/// How many sessions a ticket has, if it may have another one.
fn room(entries: &OpenSessions, ticket: TicketId, ip: IpAddr) -> Result<usize, Refusal> {
    let sessions = entries.of_ticket(ticket);
    if is_full(sessions, entries.of_prefix(Prefix::of(ip))) { Err(Refusal::NoRoom) } else { Ok(sessions) }
}

fn is_full(of_ticket: usize, of_prefix: usize) -> bool {
    of_ticket >= MAX_OF_TICKET || of_prefix >= MAX_OF_PREFIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_full__by_ticket_and_by_prefix() {
        assert!(!is_full(MAX_OF_TICKET - 1, MAX_OF_PREFIX - 1));
        assert!(is_full(MAX_OF_TICKET, 0) && is_full(0, MAX_OF_PREFIX));
    }
}
