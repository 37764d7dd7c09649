//! The tickets that a host has issued, and its identity.

mod id;
mod issued;
mod keyring_document;
mod known;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fairwave_proto::codec::{Refusal, TicketId};

use crate::identity::Identity;
use crate::lock::{Held, Lock};
use crate::network_thread;
use crate::secret::Secret;
use crate::share_id::ShareId;
use crate::state::{StateDir, StateError};
use crate::ticket::Ticket;
use keyring_document::{KeyringFile, VERSION};
use known::{FileStamp, KnownTickets};

pub use id::{id_text, read_id};
pub use issued::{Issued, Offering, Validity};

const FILE: &str = "keyring";
/// Max tickets in one keyring.
const MAX_TICKETS: usize = 10_000;
/// Delay until changes of other processes are seen.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// A ticket is not handed out again when less of its life is left.
const WORTH_S: u64 = 3600;

/// The identity of a host and the tickets that it issued, for one share: any thread may use it.
///
/// One that was [opened](Keyring::open) outlives the process, and follows what other processes do to it: a ticket that
/// somebody revokes ends here within a second.
pub struct Keyring {
    identity: Identity,
    share: ShareId,
    state: Option<StateDir>,
    known: Lock<KnownTickets>,
}

impl Keyring {
    /// The user's, for what is offered as `share`.
    pub fn open(state: StateDir, share: ShareId) -> Result<Self, StateError> {
        let identity = Identity::open(&state)?;
        let keyring = Self { identity, share, state: Some(state), known: Lock::default() };
        keyring.read(&mut keyring.known.lock())?;
        Ok(keyring)
    }

    /// One that ends with the process.
    pub fn in_memory(identity: Identity, share: ShareId) -> Self {
        Self { identity, share, state: None, known: Lock::default() }
    }

    /// The host's identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The share of its tickets.
    pub fn share(&self) -> ShareId {
        self.share
    }

    /// Issues a ticket for the share.
    pub fn issue(&self, validity: Validity, addresses: Vec<SocketAddr>) -> Result<Ticket, StateError> {
        self.issue_as(TicketId(getrandom::u64()?), validity, addresses)
    }

    /// Issues a ticket with a given name: for one that continues where another of that name ended.
    pub fn issue_as(&self, id: TicketId, validity: Validity, addresses: Vec<SocketAddr>) -> Result<Ticket, StateError> {
        let now_unix_s = now_unix_s();
        let issued = Issued {
            secret: Secret::random()?,
            share: self.share,
            issued_unix_s: now_unix_s,
            expires_unix_s: validity.lasts_s.map_or(0, |lasts_s| now_unix_s.saturating_add(lasts_s).max(1)),
            is_once: validity.is_once,
            is_spent: false,
            is_revoked: false,
        };
        let ticket = self.ticket(id, &issued, addresses);
        self.change(|known| {
            known.tickets.retain(|_, old| !old.is_forgotten(now_unix_s));
            if known.tickets.len() >= MAX_TICKETS {
                return Err(format!("holds {MAX_TICKETS} tickets, the maximum; revoke some"));
            }
            known.tickets.insert(id, issued);
            Ok(())
        })?;
        Ok(ticket)
    }

    /// A ticket for the share that was issued before and is still good for a while, for any number of uses.
    pub fn again(&self, addresses: Vec<SocketAddr>) -> Option<Ticket> {
        let now_unix_s = now_unix_s();
        let known = self.look();
        let left_s = |issued: &Issued| match issued.expires_unix_s {
            0 => u64::MAX,
            end => end.saturating_sub(now_unix_s),
        };
        let good = known.tickets.iter().filter(|(_, issued)| {
            issued.share == self.share
                && !issued.is_once
                && issued.refusal(now_unix_s).is_none()
                && left_s(issued) >= WORTH_S
        });
        let (id, issued) = good.max_by_key(|(_, issued)| left_s(issued))?;
        Some(self.ticket(*id, issued, addresses))
    }

    /// The record of a ticket of any share, valid or not.
    pub fn lookup(&self, id: TicketId) -> Option<Issued> {
        self.look().tickets.get(&id).cloned()
    }

    /// Why the holder of a ticket is not let in now, if so: also if it is for another share.
    pub fn refusal(&self, id: TicketId) -> Option<Refusal> {
        let known = self.look();
        match known.tickets.get(&id) {
            Some(issued) if issued.share == self.share => {
                let is_spent = known.spent.contains(&id);
                issued.refusal(now_unix_s()).or_else(|| is_spent.then_some(Refusal::UsedUp))
            }
            _ => Some(Refusal::UnknownName),
        }
    }

    /// Whether a ticket is for one transfer.
    pub fn is_once(&self, id: TicketId) -> bool {
        self.look().tickets.get(&id).is_some_and(|issued| issued.is_once)
    }

    /// Marks a ticket as used up like [`Keyring::spend`], for callers that cannot wait for the disk: known here at
    /// once, and soon in the file.
    pub fn use_up(self: &Arc<Self>, id: TicketId) {
        if !self.is_once(id) {
            return;
        }
        self.known.lock().spent.insert(id);
        let keyring = Arc::clone(self);
        let spend = move || keyring.spend(id).map(drop).map_err(|error| error.to_string());
        let started = thread::Builder::new().name("fairwave-keys".to_owned()).spawn(move || {
            if let Err(error) = spend() {
                tracing::warn!(ticket = %id_text(id), %error, "the ticket has been used, but the keyring cannot be \
                    updated");
            }
        });
        if let Err(error) = started {
            tracing::warn!(ticket = %id_text(id), %error, "the ticket has been used, but the keyring cannot be \
                                                           updated");
        }
    }

    /// All tickets that are remembered, of all shares.
    pub fn issued(&self) -> Vec<(TicketId, Issued)> {
        self.look().tickets.iter().map(|(id, issued)| (*id, issued.clone())).collect()
    }

    /// A transfer with this ticket has completed: one for a single use is used up. Whether it is now.
    pub fn spend(&self, id: TicketId) -> Result<bool, StateError> {
        if !self.is_once(id) {
            return Ok(false);
        }
        self.change(|known| Ok(known.tickets.get_mut(&id).map(|issued| issued.is_spent = true).is_some()))
    }

    /// Takes a ticket back: whether there is one.
    pub fn revoke(&self, id: TicketId) -> Result<bool, StateError> {
        self.change(|known| Ok(known.tickets.get_mut(&id).map(|issued| issued.is_revoked = true).is_some()))
    }

    /// The port that the share was last offered at.
    pub fn port(&self) -> Option<u16> {
        self.look().ports.get(&self.share).copied()
    }

    /// Remembers the port that the share is offered at.
    pub fn keep_port(&self, port: u16) -> Result<(), StateError> {
        if self.port() == Some(port) {
            return Ok(());
        }
        self.change(|known| {
            known.ports.insert(self.share, port);
            Ok(())
        })
    }

    /// Remembers what the share is, for who looks through the tickets.
    pub fn keep_offering(&self, offering: Offering) -> Result<(), StateError> {
        if self.offering(self.share).as_ref() == Some(&offering) {
            return Ok(());
        }
        self.change(|known| {
            // Of shares without a ticket nobody asks.
            let with_tickets: BTreeSet<ShareId> = known.tickets.values().map(|issued| issued.share).collect();
            known.offerings.retain(|share, _| with_tickets.contains(share));
            known.offerings.insert(self.share, offering);
            Ok(())
        })
    }

    /// The description of a share of this host, if it was offered since descriptions are kept.
    pub fn offering(&self, share: ShareId) -> Option<Offering> {
        self.look().offerings.get(&share).cloned()
    }

    /// Follows the changes of other processes, on its own thread, while it is also used elsewhere.
    pub(crate) fn watch(self: &Arc<Self>) -> io::Result<()> {
        if self.state.is_none() {
            return Ok(());
        }
        let watched = Arc::downgrade(self);
        let look = move || {
            while let Some(keyring) = watched.upgrade() {
                drop(keyring.look());
                drop(keyring);
                thread::sleep(LOOK_AGAIN);
            }
        };
        thread::Builder::new().name("fairwave-keys".to_owned()).spawn(look).map(drop)
    }

    fn ticket(&self, id: TicketId, issued: &Issued, addresses: Vec<SocketAddr>) -> Ticket {
        Ticket {
            key: *self.identity.public(),
            id,
            secret: issued.secret.clone(),
            share: issued.share,
            addresses,
            expires_unix_s: issued.expires_unix_s,
            is_once: issued.is_once,
        }
    }

    /// The known tickets, including changes of other processes up to a second ago.
    fn look(&self) -> Held<'_, KnownTickets> {
        let mut known = self.known.lock();
        // The network thread does not wait for the disk: another one looks for it (`watch`).
        if self.state.is_some()
            && !network_thread::is_here()
            && known.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN)
        {
            known.looked = Some(Instant::now());
            if let Err(error) = self.read(&mut known) {
                tracing::warn!("cannot read the tickets again: {error}; the previous ones stay valid");
            }
        }
        known
    }

    /// Changes the newest state, here and in the file.
    fn change<T>(&self, change: impl FnOnce(&mut KnownTickets) -> Result<T, String>) -> Result<T, StateError> {
        let refuse = |what| StateError::Content {
            path: self.state.as_ref().map_or_else(|| FILE.into(), |state| state.path().join(FILE)),
            what,
        };
        let Some(state) = &self.state else { return change(&mut self.known.lock()).map_err(refuse) };
        // The file's lock keeps other writers out, also of this process. The network thread does not wait for the disk.
        let _lock = state.lock(FILE)?;
        let mut newest = self.known.lock().clone();
        self.read(&mut newest)?;
        let value = change(&mut newest).map_err(refuse)?;
        state.write(FILE, &KeyringFile::of(&newest).to_bytes())?;
        newest.stamp = stamp(state);
        let mut known = self.known.lock();
        newest.spent = std::mem::take(&mut known.spent);
        *known = newest;
        Ok(value)
    }

    fn read(&self, known: &mut KnownTickets) -> Result<(), StateError> {
        let Some(state) = &self.state else { return Ok(()) };
        let now = stamp(state);
        if now.is_some() && now == known.stamp {
            return Ok(());
        }
        let Some(bytes) = state.read(FILE)? else { return Ok(()) };
        let wrong = |what: String| StateError::Content { path: state.path().join(FILE), what };
        let document: KeyringFile =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("not a keyring: {error}")))?;
        if document.version != VERSION {
            return Err(wrong(format!("version {}, expected {VERSION}", document.version)));
        }
        let read = document.into_known().ok_or_else(|| wrong("has an entry that is not a ticket".into()))?;
        let (spent, looked) = (std::mem::take(&mut known.spent), known.looked);
        *known = KnownTickets { spent, looked, stamp: now, ..read };
        Ok(())
    }
}

/// The time of day, in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "tickets end on a day, not after a time")]
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn stamp(state: &StateDir) -> Option<FileStamp> {
    let meta = std::fs::metadata(state.path().join(FILE)).ok()?;
    Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
}

#[cfg(test)]
mod tests {
    use super::issued::REMEMBERED_S;
    use super::*;

    const SHARE: ShareId = ShareId(1);

    #[test]
    fn issue__lasts_a_day_and_outlives_the_process() {
        let (place, keyring) = keyring();
        let ticket = keyring.issue(Validity::default(), addresses()).unwrap();
        let again = open(&place, SHARE);
        let issued = again.lookup(ticket.id).unwrap();
        assert_eq!((&issued.secret, issued.share), (&ticket.secret, SHARE));
        assert_eq!(issued.expires_unix_s - issued.issued_unix_s, 86_400);
        assert_eq!(again.identity().public(), &ticket.key);
        assert_eq!(again.refusal(ticket.id), None);
    }

    #[test]
    fn issue__up_to_the_maximum() {
        let keyring = Keyring::in_memory(Identity::random().unwrap(), SHARE);
        let first = keyring.issue(Validity::default(), addresses()).unwrap();
        let issued = keyring.lookup(first.id).unwrap();
        // All but one more.
        keyring.known.lock().tickets.extend((1..MAX_TICKETS as u64 - 1).map(|id| (TicketId(id), issued.clone())));
        let last = keyring.issue_as(TicketId(0), Validity::default(), addresses()).unwrap();
        let error = keyring.issue(Validity::default(), addresses()).unwrap_err().to_string();
        assert!(error.contains("10000 tickets, the maximum; revoke some"), "{error}");
        assert_eq!(keyring.refusal(last.id), None);
    }

    #[test]
    fn keep_offering__outlives_the_process_as_long_as_there_is_a_ticket() {
        let (place, keyring) = keyring();
        let offering = Offering { paths: vec!["/a b".into()], takes: true, gives: false };
        keyring.issue(Validity::default(), addresses()).unwrap();
        keyring.keep_offering(offering.clone()).unwrap();
        let other = open(&place, ShareId(2));
        assert_eq!(other.offering(SHARE), Some(offering.clone()));
        other.keep_offering(Offering { takes: false, ..offering.clone() }).unwrap();
        let third = open(&place, ShareId(3));
        third.keep_offering(Offering { gives: true, ..offering.clone() }).unwrap();
        let all = [SHARE, ShareId(2), ShareId(3)].map(|share| open(&place, SHARE).offering(share).is_some());
        assert_eq!(all, [true, false, true]);
    }

    #[test]
    fn again__is_the_same_ticket_with_todays_addresses() {
        let (place, keyring) = keyring();
        let ticket = keyring.issue(Validity::default(), Vec::new()).unwrap();
        assert_eq!(open(&place, SHARE).again(addresses()), Some(Ticket { addresses: addresses(), ..ticket }));
        assert_eq!(open(&place, ShareId(2)).again(addresses()), None);
    }

    #[test]
    fn again__is_none_that_ends_soon_or_after_one_use() {
        let (_place, keyring) = keyring();
        keyring.issue(Validity { lasts_s: Some(WORTH_S - 10), is_once: false }, Vec::new()).unwrap();
        keyring.issue(Validity { lasts_s: None, is_once: true }, Vec::new()).unwrap();
        assert_eq!(keyring.again(Vec::new()), None);
        let forever = keyring.issue(Validity { lasts_s: None, is_once: false }, Vec::new()).unwrap();
        assert_eq!(keyring.again(Vec::new()), Some(forever));
    }

    #[test]
    fn refusal__says_why() {
        let (place, keyring) = keyring();
        let ended = keyring.issue(Validity { lasts_s: Some(0), is_once: false }, Vec::new()).unwrap();
        assert_eq!(keyring.refusal(ended.id), Some(Refusal::Expired));
        let revoked = keyring.issue(Validity::default(), Vec::new()).unwrap();
        assert!(keyring.revoke(revoked.id).unwrap());
        assert_eq!(keyring.refusal(revoked.id), Some(Refusal::Revoked));
        let once = keyring.issue(Validity { is_once: true, ..Validity::default() }, Vec::new()).unwrap();
        assert_eq!(keyring.refusal(once.id), None);
        assert!(keyring.spend(once.id).unwrap());
        assert_eq!(keyring.refusal(once.id), Some(Refusal::UsedUp));
        assert_eq!(open(&place, SHARE).refusal(once.id), Some(Refusal::UsedUp));
        assert_eq!(open(&place, ShareId(2)).refusal(once.id), Some(Refusal::UnknownName));
        assert_eq!(keyring.refusal(TicketId(7)), Some(Refusal::UnknownName));
        assert!(!keyring.revoke(TicketId(7)).unwrap());
    }

    #[test]
    fn spend__leaves_a_ticket_for_many_uses() {
        let (_place, keyring) = keyring();
        let ticket = keyring.issue(Validity::default(), Vec::new()).unwrap();
        assert!(!keyring.spend(ticket.id).unwrap());
        assert_eq!(keyring.refusal(ticket.id), None);
    }

    #[test]
    fn lookup__sees_what_another_process_did() {
        let (place, keyring) = keyring();
        let ticket = keyring.issue(Validity::default(), Vec::new()).unwrap();
        assert_eq!(keyring.refusal(ticket.id), None);
        open(&place, ShareId(9)).revoke(ticket.id).unwrap();
        fairwave_testing::wait_for("the ticket is refused", || keyring.refusal(ticket.id).is_some());
    }

    #[test]
    fn issue__of_many_at_once_loses_none() {
        let (place, _) = keyring();
        let issue = || {
            let keyring = open(&place, SHARE);
            (0..10).for_each(|_| drop(keyring.issue(Validity::default(), Vec::new()).unwrap()));
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(issue))));
        assert_eq!(open(&place, SHARE).issued().len(), 40);
    }

    #[test]
    fn issue__forgets_what_ended_long_ago() {
        let ended = |end: u64| Issued {
            secret: Secret::new([0; 32]),
            share: SHARE,
            issued_unix_s: 1,
            expires_unix_s: end,
            is_once: false,
            is_spent: false,
            is_revoked: false,
        };
        let (_place, keyring) = keyring();
        keyring.known.lock().tickets.insert(TicketId(1), ended(now_unix_s() - REMEMBERED_S - 100));
        keyring.known.lock().tickets.insert(TicketId(2), ended(now_unix_s() - REMEMBERED_S + 100));
        keyring.issue(Validity::default(), Vec::new()).unwrap();
        assert_eq!(keyring.lookup(TicketId(1)), None);
        assert_eq!(keyring.refusal(TicketId(2)), Some(Refusal::Expired));
    }

    #[test]
    fn port__is_kept_for_the_share() {
        let (place, keyring) = keyring();
        assert_eq!(keyring.port(), None);
        keyring.keep_port(4711).unwrap();
        assert_eq!(open(&place, SHARE).port(), Some(4711));
        assert_eq!(open(&place, ShareId(2)).port(), None);
    }

    #[test]
    fn open__a_broken_file_is_named() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        for (content, says) in [
            ("{", "not a keyring"),
            (r#"{"version":2,"ports":{},"tickets":[]}"#, "version 2, expected"),
            (r#"{"version":1,"ports":{"x":1},"tickets":[]}"#, "has an entry"),
        ] {
            state.write(FILE, content.as_bytes()).unwrap();
            let error = Keyring::open(state.clone(), SHARE).map(drop).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn in_memory__keeps_to_itself() {
        let keyring = Keyring::in_memory(Identity::random().unwrap(), SHARE);
        let ticket = keyring.issue(Validity::default(), addresses()).unwrap();
        assert_eq!(keyring.lookup(ticket.id).unwrap().secret, ticket.secret);
        keyring.keep_port(7).unwrap();
        assert_eq!(keyring.port(), Some(7));
    }

    fn keyring() -> (tempfile::TempDir, Keyring) {
        let place = tempfile::tempdir().unwrap();
        let keyring = open(&place, SHARE);
        (place, keyring)
    }

    fn open(place: &tempfile::TempDir, share: ShareId) -> Keyring {
        Keyring::open(StateDir::at(place.path()).unwrap(), share).unwrap()
    }

    fn addresses() -> Vec<SocketAddr> {
        vec!["192.0.2.1:8642".parse().unwrap()]
    }
}
