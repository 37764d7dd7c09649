//! Clients that may return with a ticket that has expired or is used up.
//!
//! A ticket admits until it expires, and a transfer that started in time continues to its end, also over several
//! sessions. The client that opens the next session proves that it had the former one, by a secret that the two ends of
//! that share. The proof precedes the application's greeting:
//!
//! ```text
//! greeting = 0, application part; or 1, the proof (16), application part
//! ```
//!
//! The sessions of a transfer are a *chain*: at most one of them is open, all have the same greeting, and none opens
//! later than [`CHAIN_LASTS`] after the first one.

use std::collections::{BTreeMap, VecDeque};

use fairwave_proto::codec::{CloseReason, Refusal, TicketId};
use fairwave_units::{Duration, Time};

use crate::proof::Proof;

/// Max bytes before the application's greeting.
const AHEAD: usize = 1 + size_of::<Proof>();
/// A session is followed by another within this time.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// Sessions of a transfer open for this long after its first one: a week, for what takes days.
const CHAIN_LASTS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Chains that wait for their next session, of all tickets and of one. The holder of one ticket pushes out none but its
/// own.
const MOST: usize = 4096;
const MAX_OF_TICKET: usize = 64;

/// The common state of the sessions of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// When the first one opened.
    pub(super) since: Time,
    /// Start of the chain, in seconds since 1970.
    pub(super) since_unix_s: u64,
    /// A hash of what the application said.
    purpose: [u8; 16],
}

/// Identifies a session of a chain: its own proof, and that of the one before it. A client that never received the
/// later one returns with the former one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) chain: Chain,
    pub(super) former: Option<Proof>,
}

/// A session that ended and may be followed by another.
#[derive(Debug)]
struct EndedSession {
    at: Time,
    ticket: TicketId,
    proof: Proof,
    link: Link,
}

/// Sessions that ended and may be followed by others, the latest last.
#[derive(Default)]
pub(super) struct Returns {
    ended: VecDeque<EndedSession>,
    by_ticket: BTreeMap<TicketId, usize>,
}

impl Chain {
    pub(super) fn begin(since: Time, since_unix_s: u64, said: &[u8]) -> Self {
        Self { since, since_unix_s, purpose: purpose(said) }
    }

    /// Whether a session with this greeting may follow in it.
    pub(super) fn admits(&self, now: Time, said: &[u8]) -> bool {
        now.since(self.since) <= CHAIN_LASTS && self.purpose == purpose(said)
    }
}

impl Link {
    /// Whether that is the proof of a session, whose own one is `own`, or of the one before it.
    pub(super) fn is_shown(&self, own: &Proof, shown: &Proof) -> bool {
        is_same(own, shown) | self.former.is_some_and(|former| is_same(&former, shown))
    }
}

impl Returns {
    /// A session is over that another host opened.
    pub(super) fn on_closed(
        &mut self,
        now: Time,
        session: Option<(TicketId, Link)>,
        proof: Proof,
        reason: CloseReason,
    ) {
        let may_return = match reason {
            CloseReason::Silence
            | CloseReason::Path
            | CloseReason::Keys
            | CloseReason::Leaving
            | CloseReason::Cut => true,
            // The application refused after it had started.
            CloseReason::Refused(refusal) => refusal == Refusal::NoRoom,
            CloseReason::Done
            | CloseReason::Stopped
            | CloseReason::ExceedsGrant
            | CloseReason::Protocol
            // Only who opened a session hears of this.
            | CloseReason::Reset => false,
        };
        if let (Some((ticket, link)), true) = (session, may_return) {
            self.add(EndedSession { at: now, ticket, proof, link });
        }
    }

    fn add(&mut self, session: EndedSession) {
        let (now, ticket) = (session.at, session.ticket);
        while self.ended.front().is_some_and(|ended| now.since(ended.at) > LASTS) {
            self.remove(0);
        }
        if self.of_ticket(ticket) >= MAX_OF_TICKET {
            self.remove_first_of(ticket);
        } else if self.ended.len() >= MOST {
            let crowd = self.by_ticket.iter().max_by_key(|(_, count)| **count).map(|(ticket, _)| *ticket);
            if let Some(ticket) = crowd {
                self.remove_first_of(ticket);
            }
        }
        *self.by_ticket.entry(ticket).or_default() += 1;
        self.ended.push_back(session);
    }

    fn of_ticket(&self, ticket: TicketId) -> usize {
        self.by_ticket.get(&ticket).copied().unwrap_or_default()
    }

    fn remove_first_of(&mut self, ticket: TicketId) {
        let first = self.ended.iter().position(|ended| ended.ticket == ticket);
        if let Some(at) = first {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) {
        let Some(ended) = self.ended.remove(at) else { return };
        if let Some(count) = self.by_ticket.get_mut(&ended.ticket) {
            *count -= 1;
            if *count == 0 {
                self.by_ticket.remove(&ended.ticket);
            }
        }
    }

    /// The chain of a session that was opened with this ticket and has ended, if another with this greeting may follow.
    pub(super) fn find(&self, now: Time, ticket: TicketId, shown: &Proof, said: &[u8]) -> Option<Chain> {
        let is_it = |ended: &&EndedSession| ended.ticket == ticket && ended.link.is_shown(&ended.proof, shown);
        let ended = self.ended.iter().find(is_it)?;
        (now.since(ended.at) <= LASTS && ended.link.chain.admits(now, said)).then_some(ended.link.chain)
    }

    /// Another session has followed it.
    pub(super) fn take(&mut self, ticket: TicketId, shown: &Proof) {
        let is_it = |ended: &EndedSession| ended.ticket == ticket && ended.link.is_shown(&ended.proof, shown);
        let at = self.ended.iter().position(is_it);
        if let Some(at) = at {
            self.remove(at);
        }
    }
}

fn purpose(said: &[u8]) -> [u8; 16] {
    let mut hash = [0; 16];
    blake3::Hasher::new().update(said).finalize_xof().fill(&mut hash);
    hash
}

/// Takes as long wherever they differ.
fn is_same(one: &Proof, other: &Proof) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}

/// Encodes the greeting of a hello.
pub(super) fn greeting(proof: Option<&Proof>, said: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(AHEAD + said.len());
    bytes.push(u8::from(proof.is_some()));
    bytes.extend_from_slice(proof.map_or(&[], |proof| &proof[..]));
    bytes.extend_from_slice(said);
    bytes
}

/// Decodes the greeting of a hello: the proof, and the application's part.
pub(super) fn read(greeting: &[u8]) -> Option<(Option<Proof>, &[u8])> {
    match greeting.split_first()? {
        (0, said) => Some((None, said)),
        (1, rest) => rest.split_first_chunk().map(|(proof, said)| (Some(*proof), said)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fairwave_proto::codec::MAX_GREETING_BYTES;

    use super::*;

    const TICKET: TicketId = TicketId(1);
    const GET: &[u8] = b"get";

    fn at(seconds: u64) -> Time {
        Time::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    fn proof(number: u64) -> Proof {
        let mut proof = Proof::default();
        proof[..8].copy_from_slice(&number.to_le_bytes());
        proof
    }

    fn ended(at_s: u64, ticket: TicketId, number: u64) -> EndedSession {
        let link = Link { chain: Chain::begin(at(0), 0, GET), former: None };
        EndedSession { at: at(at_s), ticket, proof: proof(number), link }
    }

    #[test]
    fn find__a_proof_is_for_its_ticket_and_its_purpose() {
        let mut returns = Returns::default();
        returns.add(ended(0, TICKET, 5));
        assert!(returns.find(at(1), TICKET, &proof(5), GET).is_some());
        assert_eq!(returns.find(at(1), TicketId(2), &proof(5), GET), None, "another ticket");
        assert_eq!(returns.find(at(1), TICKET, &proof(5), b"put"), None, "another purpose");
        assert_eq!(returns.find(at(1), TICKET, &proof(6), GET), None, "another proof");
    }

    #[test]
    fn take__a_proof_is_for_one_session() {
        let mut returns = Returns::default();
        returns.add(ended(0, TICKET, 5));
        returns.take(TICKET, &proof(5));
        assert_eq!(returns.find(at(1), TICKET, &proof(5), GET), None);
        // The next session of the chain is known by both.
        let link = Link { former: Some(proof(5)), ..ended(0, TICKET, 5).link };
        returns.add(EndedSession { link, ..ended(2, TICKET, 6) });
        assert!(returns.find(at(3), TICKET, &proof(5), GET).is_some());
        returns.take(TICKET, &proof(6));
        assert_eq!(returns.find(at(3), TICKET, &proof(5), GET), None);
        assert!(returns.ended.is_empty() && returns.by_ticket.is_empty());
    }

    #[test]
    fn add__what_is_too_old_is_forgotten() {
        let mut returns = Returns::default();
        for number in 0..5 {
            returns.add(ended(number, TicketId(number), number));
        }
        returns.add(ended(24 * 3600 + 3, TICKET, 9));
        // Those of the first three seconds.
        assert_eq!((returns.ended.len(), returns.by_ticket.len()), (3, 3));
    }

    #[test]
    fn find__a_chain_has_one_end_in_time() {
        let mut returns = Returns::default();
        let day = 24 * 3600;
        // However often another session followed.
        for session in 1..=7 {
            returns.take(TICKET, &proof(session - 1));
            returns.add(ended(session * day, TICKET, session));
        }
        assert!(returns.find(at(7 * day), TICKET, &proof(7), GET).is_some());
        assert_eq!(returns.find(at(7 * day + 1), TICKET, &proof(7), GET), None);
        // Nor does a session wait for longer than a day.
        returns.add(ended(day, TicketId(2), 9));
        assert!(returns.find(at(2 * day), TicketId(2), &proof(9), GET).is_some());
        assert_eq!(returns.find(at(2 * day + 1), TicketId(2), &proof(9), GET), None);
    }

    #[test]
    fn add__one_ticket_pushes_out_no_others() {
        let mut returns = Returns::default();
        returns.add(ended(0, TicketId(2), 0));
        for number in 0..10_000 {
            returns.add(ended(1, TICKET, number));
        }
        assert!(returns.find(at(2), TicketId(2), &proof(0), GET).is_some());
        assert_eq!((returns.of_ticket(TICKET), returns.ended.len()), (MAX_OF_TICKET, MAX_OF_TICKET + 1));
        // Nor do those of many tickets push out who has one.
        for number in 0..10_000 {
            returns.add(ended(1, TicketId(10 + number % 100), number));
        }
        assert_eq!(returns.ended.len(), MOST);
        assert!(returns.find(at(2), TicketId(2), &proof(0), GET).is_some());
        assert_eq!(returns.by_ticket.values().sum::<usize>(), MOST);
    }

    #[test]
    fn read__finds_what_greeting_wrote() {
        let said = [7; crate::connect::MAX_GREETING_BYTES];
        for proof in [None, Some([9; 16])] {
            let bytes = greeting(proof.as_ref(), &said);
            assert!(bytes.len() <= MAX_GREETING_BYTES, "{}", bytes.len());
            assert_eq!(read(&bytes), Some((proof, &said[..])));
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[2, 0]), None);
        assert_eq!(read(&[1; 16]), None);
    }
}
