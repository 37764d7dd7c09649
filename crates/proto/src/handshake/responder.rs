//! A host's door.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use fairwave_units::{Duration, Rate, Time};

use super::ResponderCrypto;
use super::established::{Established, Terms, start, to_bps};
use crate::codec::{Answer, Full, HELLO_BYTES, Handshake, Hello, Mac, Offer, Prologue, Refusal, SessionId, Writer};
use crate::path_kind::PathKind;

/// Answers hellos, and keeps sessions that are half open.
///
/// In this order, so that what costs little comes first: a datagram that is no hello is dropped; so is one whose MAC is
/// wrong. One without a good cookie gets a cookie: a MAC over address, port and the hello's MAC, under a key of this host and
/// the number of the five seconds that it was made in, good in these and in the next. Only then the handshake is read,
/// and the driver is asked: [`Incoming::Asked`], which it answers with [`Responder::accept`] or [`Responder::refuse`].
///
/// The answer is kept for five seconds, in a table of 1024: who sends the same hello again gets the same bytes. A session is
/// open when the first packet of it has been opened with its keys ([`Responder::half_open`]): [`Responder::confirm`]. A hello
/// whose session is open is worth nothing any more.
#[derive(Debug)]
pub struct Responder<C: ResponderCrypto> {
    crypto: C,
    table: BTreeMap<Key, Entry<C::Keys>>,
    sessions: BTreeMap<SessionId, Key>,
    /// Hellos whose sessions were opened lately, and when.
    done: VecDeque<(Time, Key)>,
    /// No entry ends before.
    earliest: Option<Time>,
}

/// A hello is known by where it comes from and by its MAC.
type Key = (SocketAddr, Mac);

#[derive(Debug)]
struct Entry<K> {
    since: Time,
    answer: Vec<u8>,
    /// Times that it was sent.
    times: u32,
    session: Option<Box<Established<K>>>,
}

/// What a datagram of the handshake leads to.
#[derive(Debug)]
pub enum Incoming<P> {
    /// Nothing: it is forged, broken, late, or there is no room.
    Nothing,
    /// This goes back to where it came from.
    Answer(Vec<u8>),
    /// Somebody who holds a ticket, at the address that he says he has, wants a session.
    /// It is to be answered before the next datagram is handed in.
    Asked(Asked<P>),
}

/// Who asks for a session, and what for.
#[derive(Debug)]
pub struct Asked<P> {
    key: Key,
    pending: P,
    /// What the hello begins with: the ticket, and what the initiator says about path and secrecy.
    pub prologue: Prologue,
    /// The initiator's name for the session.
    pub peer: SessionId,
    /// Whether the initiator will send.
    pub sends: bool,
    /// Whether the initiator will receive.
    pub receives: bool,
    /// What the application should know.
    pub greeting: Vec<u8>,
    largest_packet: u64,
    send_bps: Option<u64>,
    receive_bps: Option<u64>,
}

impl<P> Asked<P> {
    /// Where it comes from.
    pub fn from(&self) -> SocketAddr {
        self.key.0
    }
}

/// What goes back to who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The datagram.
    pub datagram: Vec<u8>,
    /// Why there is no session, if there is none: its name is free.
    pub refusal: Option<Refusal>,
}

/// Answers that are kept at the most.
pub const MOST_HALF_OPEN: usize = 1024;
/// An answer is kept for so long.
pub const HALF_OPEN_LASTS: Duration = Duration::from_secs(5);
/// A cookie is good for so long at the most, and for half of it at least.
pub const COOKIE_LASTS: Duration = Duration::from_secs(10);

/// Hellos that are known to be used up.
const MOST_DONE: usize = 1024;

impl<C: ResponderCrypto> Responder<C> {
    /// A door to which nobody has come.
    pub fn new(crypto: C) -> Self {
        Self { crypto, table: BTreeMap::new(), sessions: BTreeMap::new(), done: VecDeque::new(), earliest: None }
    }

    /// What it takes from cryptography: tickets come and go.
    pub fn crypto(&mut self) -> &mut C {
        &mut self.crypto
    }

    /// A datagram of the handshake came.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Incoming<C::Pending> {
        let Ok(Handshake::Hello(hello)) = Handshake::read(datagram) else { return Incoming::Nothing };
        let mac = self.crypto.hello_mac(&hello.prologue, hello.proven);
        if !mac.is_some_and(|mac| is_same(&mac, &hello.mac)) {
            return Incoming::Nothing;
        }
        let key = (from, hello.mac);
        let epoch = epoch(now);
        let cookie = self.cookie(epoch, &key);
        let is_proven = is_same(&cookie, &hello.cookie)
            || epoch.checked_sub(1).is_some_and(|last| is_same(&self.cookie(last, &key), &hello.cookie));
        if !is_proven {
            return Incoming::Answer(written(&Handshake::Cookie { hello: hello.mac, cookie }));
        }
        if let Some(entry) = self.table.get_mut(&key) {
            if now.since(entry.since) >= HALF_OPEN_LASTS {
                return Incoming::Nothing;
            }
            entry.times = entry.times.saturating_add(1);
            return Incoming::Answer(entry.answer.clone());
        }
        let is_used_up = self.done.iter().any(|(at, done)| *done == key && now.since(*at) < COOKIE_LASTS);
        if is_used_up || self.table.len() >= MOST_HALF_OPEN {
            return Incoming::Nothing;
        }
        self.read(key, &hello).map_or(Incoming::Nothing, Incoming::Asked)
    }

    fn read(&mut self, key: Key, hello: &Hello<'_>) -> Option<Asked<C::Pending>> {
        let (payload, pending) = self.crypto.read_hello(&hello.prologue, hello.message)?;
        let offer = Offer::read(&payload).ok()?;
        Some(Asked {
            key,
            pending,
            prologue: hello.prologue,
            peer: offer.session,
            sends: offer.sends,
            receives: offer.receives,
            greeting: offer.greeting.to_vec(),
            largest_packet: offer.largest_packet,
            send_bps: offer.send_bps,
            receive_bps: offer.receive_bps,
        })
    }

    /// Yes, unless one end alone asks for data without secrecy, or there is no room any more. The path is dedicated if both
    /// say so, and then the rates to start with are the smaller of both ends' shares.
    pub fn accept(&mut self, now: Time, asked: Asked<C::Pending>, terms: &Terms) -> Answered {
        if asked.prologue.is_plain != terms.is_plain {
            return self.refuse(now, asked, Refusal::Plain);
        }
        if self.sessions.contains_key(&terms.session) || self.table.len() >= MOST_HALF_OPEN {
            return self.refuse(now, asked, Refusal::NoRoom);
        }
        let path = if asked.prologue.is_dedicated { terms.path } else { PathKind::Shared };
        let [send, receive] = terms.shares();
        let agreed = |flows: bool, share, bps| -> Option<Rate> {
            (flows && path == PathKind::Dedicated).then(|| start(share, bps)).flatten()
        };
        let start_send = agreed(asked.receives, send, asked.receive_bps);
        let start_receive = agreed(asked.sends, receive, asked.send_bps);
        let largest_packet = terms.largest(asked.largest_packet);
        let answer = Answer {
            session: terms.session,
            is_dedicated: path == PathKind::Dedicated,
            largest_packet: u64::from(largest_packet),
            send_bps: start_receive.map(to_bps),
            receive_bps: start_send.map(to_bps),
        };
        let payload = bytes(|writer| answer.write(writer));
        let (message, keys) = self.crypto.write_reply(asked.pending, &payload);
        let established = Established {
            local: terms.session,
            peer: asked.peer,
            is_initiator: false,
            address: Some(asked.key.0),
            ticket: asked.prologue.ticket,
            sends: asked.receives,
            receives: asked.sends,
            path,
            is_plain: terms.is_plain,
            start_send,
            start_receive,
            largest_packet,
            rtt: None,
            keys,
        };
        self.sessions.insert(terms.session, asked.key);
        let datagram = written(&Handshake::Reply { hello: asked.key.1, message: &message });
        self.keep(now, asked.key, datagram, Some(Box::new(established)), None)
    }

    /// No.
    pub fn refuse(&mut self, now: Time, asked: Asked<C::Pending>, why: Refusal) -> Answered {
        let payload = bytes(|writer| why.write(writer));
        let (message, _) = self.crypto.write_reply(asked.pending, &payload);
        let datagram = written(&Handshake::Refusal { hello: asked.key.1, message: &message });
        self.keep(now, asked.key, datagram, None, Some(why))
    }

    fn keep(
        &mut self,
        now: Time,
        key: Key,
        answer: Vec<u8>,
        session: Option<Box<Established<C::Keys>>>,
        refusal: Option<Refusal>,
    ) -> Answered {
        let datagram = answer.clone();
        if self.table.len() < MOST_HALF_OPEN {
            let entry = Entry { since: now, answer, times: 1, session };
            self.table.insert(key, entry);
            self.earliest.get_or_insert(now.saturating_add(HALF_OPEN_LASTS));
        }
        Answered { datagram, refusal }
    }

    /// A session that is half open: its keys open its first packet.
    pub fn half_open(&self, session: SessionId) -> Option<&Established<C::Keys>> {
        self.table.get(self.sessions.get(&session)?)?.session.as_deref()
    }

    /// The first packet of a session has been opened: the session is there. `None` if it is not half open, any more.
    pub fn confirm(&mut self, now: Time, session: SessionId) -> Option<Established<C::Keys>> {
        let key = *self.sessions.get(&session)?;
        if now.since(self.table.get(&key)?.since) >= HALF_OPEN_LASTS {
            return None;
        }
        self.sessions.remove(&session);
        let entry = self.table.remove(&key)?;
        let mut established = *entry.session?;
        if entry.times == 1 {
            established.rtt = Some(now.since(entry.since));
        }
        if self.done.len() >= MOST_DONE {
            self.done.pop_front();
        }
        self.done.push_back((now, key));
        Some(established)
    }

    /// When answers may be forgotten.
    pub fn next_timeout(&self) -> Option<Time> {
        self.earliest
    }

    /// Forgets answers that are old: the names of sessions that did not come to be, which are free again. Harmless too early;
    /// until it comes, an old answer is of no use and takes its room.
    pub fn handle_timeout(&mut self, now: Time) -> Vec<SessionId> {
        if self.earliest.is_none_or(|earliest| now < earliest) {
            return Vec::new();
        }
        let mut gone = Vec::new();
        let sessions = &mut self.sessions;
        self.table.retain(|_, entry| {
            let is_kept = now.since(entry.since) < HALF_OPEN_LASTS;
            if let (false, Some(session)) = (is_kept, &entry.session) {
                sessions.remove(&session.local);
                gone.push(session.local);
            }
            is_kept
        });
        let since = self.table.values().map(|entry| entry.since).min();
        self.earliest = since.map(|since| since.saturating_add(HALF_OPEN_LASTS));
        gone
    }

    /// The proof of an address, as of such an epoch.
    fn cookie(&self, epoch: u64, (from, mac): &Key) -> Mac {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut bytes = Vec::with_capacity(42);
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&ip.octets());
        bytes.extend_from_slice(&from.port().to_be_bytes());
        bytes.extend_from_slice(mac);
        self.crypto.cookie(&bytes)
    }
}

fn epoch(now: Time) -> u64 {
    now.as_nanos() / COOKIE_LASTS.half().as_nanos()
}

/// Without telling by its time where they differ.
fn is_same(one: &Mac, other: &Mac) -> bool {
    one.iter().zip(other).fold(0, |differences, (one, other)| differences | (one ^ other)) == 0
}

fn written(packet: &Handshake<'_>) -> Vec<u8> {
    bytes(|writer| packet.write(writer))
}

/// What fits into a hello: all answers do.
fn bytes(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut room = [0; HELLO_BYTES];
    let mut writer = Writer::new(&mut room);
    write(&mut writer).expect("an answer is smaller than a hello");
    let used = writer.used();
    room[..used].to_vec()
}
