//! Who may come back with a ticket that has expired.
//!
//! A ticket lets in until it expires, and a transfer that began in time goes on to its end: also where it takes several
//! sessions. Whoever opens the next one shows that the former one was his, by a secret that its two ends share. It goes
//! before what the application says:
//!
//! ```text
//! greeting = 0, what the application says; or 1, the proof (16), what the application says
//! ```

use std::collections::VecDeque;

use fairwave_proto::codec::{CloseReason, Refusal, TicketId};
use fairwave_units::{Duration, Time};

use super::entry::OpenSession;
use crate::proof::Proof;

/// Bytes before what the application says, at the most.
const AHEAD: usize = 1 + size_of::<Proof>();
/// Nobody comes back later, or after so many others.
const LASTS: Duration = Duration::from_secs(24 * 3600);
const MOST: usize = 4096;

/// Sessions that ended and may be followed by others, the latest last.
#[derive(Default)]
pub(super) struct Returns {
    ended: VecDeque<(Time, TicketId, Proof)>,
}

impl Returns {
    /// A session is over that somebody else opened.
    pub(super) fn on_closed(&mut self, now: Time, entry: &OpenSession, reason: CloseReason) {
        let may_return = match reason {
            CloseReason::Silence
            | CloseReason::Path
            | CloseReason::Keys
            | CloseReason::Leaving
            | CloseReason::Cut => true,
            // The application found out after it had begun.
            CloseReason::Refused(refusal) => refusal == Refusal::NoRoom,
            CloseReason::Done
            | CloseReason::Stopped
            | CloseReason::ExceedsGrant
            | CloseReason::Protocol
            // Only who opened a session hears of this.
            | CloseReason::Reset => false,
        };
        if let Some(ticket) = entry.ticket.filter(|_| may_return) {
            while self.ended.len() >= MOST || self.ended.front().is_some_and(|(at, ..)| now.since(*at) > LASTS) {
                self.ended.pop_front();
            }
            self.ended.push_back((now, ticket, entry.session.proof()));
        }
    }

    /// Whether such a session was opened with this ticket, and has ended.
    pub(super) fn knows(&self, now: Time, ticket: TicketId, shown: &Proof) -> bool {
        let mut ended = self.ended.iter();
        ended.any(|(at, of, proof)| *of == ticket && is_same(proof, shown) && now.since(*at) <= LASTS)
    }
}

/// Whether a session that is still open here was opened with this ticket and is the one that is shown: the other end
/// has seen its end first.
pub(super) fn is_shown(entry: &OpenSession, ticket: TicketId, shown: &Proof) -> bool {
    entry.ticket == Some(ticket) && is_same(&entry.session.proof(), shown)
}

/// Takes as long wherever they differ.
fn is_same(one: &Proof, other: &Proof) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}

/// What goes with a hello.
pub(super) fn greeting(proof: Option<&Proof>, said: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(AHEAD + said.len());
    bytes.push(u8::from(proof.is_some()));
    bytes.extend_from_slice(proof.map_or(&[], |proof| &proof[..]));
    bytes.extend_from_slice(said);
    bytes
}

/// What came with one: the proof, and what the application says.
pub(super) fn read(greeting: &[u8]) -> Option<(Option<Proof>, &[u8])> {
    match greeting.split_first()? {
        (0, said) => Some((None, said)),
        (1, rest) => rest.split_first_chunk().map(|(proof, said)| (Some(*proof), said)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fairwave_proto::codec::MOST_GREETING_BYTES;

    use super::*;

    #[test]
    fn read__finds_what_greeting_wrote() {
        let said = [7; crate::connect::MOST_GREETING_BYTES];
        for proof in [None, Some([9; 16])] {
            let bytes = greeting(proof.as_ref(), &said);
            assert!(bytes.len() <= MOST_GREETING_BYTES, "{}", bytes.len());
            assert_eq!(read(&bytes), Some((proof, &said[..])));
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[2, 0]), None);
        assert_eq!(read(&[1; 16]), None);
    }
}
