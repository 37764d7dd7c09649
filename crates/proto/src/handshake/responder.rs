//! A host's end of the handshakes that others start.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use fairwave_units::{Duration, Rate, Time};

use super::established::{Established, HandshakeTerms, start, to_bps};
use super::refusals::Refusals;
use super::resets::Resets;
use super::{Crypto, Prefix, ResponderCrypto};
use crate::path::path_kind::{PathDeclaration, PathDeclarations, PathKind};
use crate::wire::codec::{
    Ahead, Answer, Full, HELLO_BYTES, Handshake, Hello, Mac, Offer, Prologue, Refusal, Reset, SessionId, TicketId,
    Writer,
};
use crate::wire::features::Features;

/// Answers hellos, and keeps sessions that are half open.
///
/// In this order, so that cheap checks come first: a datagram that is not a hello is dropped; so is one whose MAC is
/// wrong. One without a good cookie gets a cookie: a MAC over address, port and ticket, under a key of this host and
/// the number of the five-second period that it was made in, valid in this period and the next. Only then the handshake
/// is read, and the driver is asked: [`Incoming::Asked`], which it answers with [`Responder::accept`] or
/// [`Responder::refuse`].
///
/// An acceptance is kept for ten seconds, in a table of 1024 of which one ticket and one [`Prefix`] have a part: the
/// same hello again gets the same bytes. A session is open when its first packet has been decrypted with its keys
/// ([`Responder::half_open`]): [`Responder::confirm`]. A hello whose session is open is ignored. A refusal is not kept:
/// a repeated request is refused again, within the limits of `MAX_REFUSALS`.
#[derive(Debug)]
pub struct Responder<C: ResponderCrypto> {
    crypto: C,
    most: HalfOpen,
    refusals: Refusals,
    resets: Resets,
    table: BTreeMap<HelloKey, HalfOpenEntry<C::Keys>>,
    sessions: BTreeMap<SessionId, HelloKey>,
    /// Hellos whose sessions were opened lately, and when.
    done: VecDeque<(Time, HelloKey)>,
    /// No entry ends before.
    earliest: Option<Time>,
}

/// A hello is known by where it comes from and by its MAC.
type HelloKey = (SocketAddr, Mac);

#[derive(Debug)]
struct HalfOpenEntry<K> {
    since: Time,
    answer: Vec<u8>,
    /// Times that it was sent.
    times: u32,
    session: Box<Established<K>>,
}

/// How many sessions may be half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfOpen {
    /// In all.
    pub all: usize,
    /// With one ticket, which many may hold.
    pub of_ticket: usize,
    /// From one prefix.
    pub of_prefix: usize,
}

impl Default for HalfOpen {
    /// One ticket has half of the table, one prefix a quarter: neither keeps the others out.
    fn default() -> Self {
        Self { all: MAX_HALF_OPEN, of_ticket: MAX_HALF_OPEN / 2, of_prefix: MAX_HALF_OPEN / 4 }
    }
}

/// The result of a handshake datagram.
#[derive(Debug)]
pub enum Incoming<P> {
    /// Nothing: it is forged, broken, late, or there is no room.
    Nothing,
    /// This goes back to where it came from.
    Answer(Vec<u8>),
    /// The holder of a ticket requests a session; a cookie has verified its address. Answer it before passing in the
    /// next datagram.
    Asked(SessionRequest<P>),
}

/// A session request as a host sees it.
pub type PendingVisit<C> = SessionRequest<<<C as Crypto>::Responder as ResponderCrypto>::Pending>;

/// A request for a session, with its origin and purpose.
#[derive(Debug)]
pub struct SessionRequest<P> {
    key: HelloKey,
    pending: P,
    /// The start of the hello: the ticket, and what the initiator declares about the path and asks of secrecy.
    pub prologue: Prologue,
    /// The initiator's name for the session.
    pub peer: SessionId,
    /// Whether the initiator will send.
    pub sends: bool,
    /// Whether the initiator will receive.
    pub receives: bool,
    /// Message for the application.
    pub greeting: Vec<u8>,
    largest_packet: u64,
    send_bps: Option<u64>,
    receive_bps: Option<u64>,
    says_dedicated: bool,
    features: Features,
}

impl<P> SessionRequest<P> {
    /// The address of the initiator.
    pub fn from(&self) -> SocketAddr {
        self.key.0
    }

    /// The initiator's features.
    pub fn features(&self) -> Features {
        self.features
    }
}

/// The answer to the initiator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The datagram.
    pub datagram: Vec<u8>,
    /// The reason for a refusal, `None` if the session is accepted; a refused session's name is free.
    pub refusal: Option<Refusal>,
}

/// Sessions that are half open at most.
pub const MAX_HALF_OPEN: usize = 1024;
/// A session is half open for as long as the cookie of its hello may be good: a path or a process that stands still for
/// some seconds before the first packet loses no session.
pub const HALF_OPEN_LASTS: Duration = COOKIE_LASTS;
/// Max lifetime of a cookie; the min is half of it.
pub(crate) const COOKIE_LASTS: Duration = Duration::from_secs(10);

/// Hellos that are known to be used up.
const MAX_DONE: usize = 1024;

impl<C: ResponderCrypto> Responder<C> {
    /// A responder without sessions.
    pub fn new(crypto: C) -> Self {
        Self {
            crypto,
            most: HalfOpen::default(),
            refusals: Refusals::new(),
            resets: Resets::new(),
            table: BTreeMap::new(),
            sessions: BTreeMap::new(),
            done: VecDeque::new(),
            earliest: None,
        }
    }

    /// Other bounds than those that there are by default.
    pub fn set_most(&mut self, most: HalfOpen) {
        self.most = most;
    }

    /// The cryptography, to add and remove tickets.
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
        // The MAC covers the cookie: with a good one the sender has the ticket's secret now, and receives at its
        // address. It is what RFC 9000 s8.1.2 has a Retry token do, s8.1.4: bound to the address and
        // short-lived, and no state for it here.
        let Prologue { ticket, cookie: shown, .. } = hello.prologue;
        let epoch = epoch(now);
        let cookie = self.cookie(epoch, from, ticket);
        let is_proven = is_same(&cookie, &shown)
            || epoch.checked_sub(1).is_some_and(|last| is_same(&self.cookie(last, from, ticket), &shown));
        if !is_proven {
            return Incoming::Answer(written(&Handshake::Cookie { hello: hello.mac, cookie }));
        }
        let key = (from, hello.mac);
        if let Some(entry) = self.table.get_mut(&key) {
            if now.since(entry.since) >= HALF_OPEN_LASTS {
                return Incoming::Nothing;
            }
            entry.times = entry.times.saturating_add(1);
            return Incoming::Answer(entry.answer.clone());
        }
        let is_used_up = self.done.iter().any(|(at, done)| *done == key && now.since(*at) < COOKIE_LASTS);
        let prefix = Prefix::of(from.ip());
        if is_used_up || self.is_full(ticket, prefix) || !self.refusals.are_few(&self.crypto, epoch, ticket, prefix) {
            return Incoming::Nothing;
        }
        let Some(asked) = self.read(key, &hello) else {
            self.refusals.count(&self.crypto, epoch, ticket, prefix);
            return Incoming::Nothing;
        };
        Incoming::Asked(asked)
    }

    /// Whether no other session may be half open with this ticket, from there.
    fn is_full(&self, ticket: TicketId, prefix: Prefix) -> bool {
        let HalfOpen { all, of_ticket, of_prefix } = self.most;
        let count = |is_one: &dyn Fn(&HelloKey, TicketId) -> bool| {
            self.table.iter().filter(|(key, entry)| is_one(key, entry.session.ticket)).count()
        };
        self.table.len() >= all
            || count(&|_, of| of == ticket) >= of_ticket
            || count(&|(from, _), _| Prefix::of(from.ip()) == prefix) >= of_prefix
    }

    fn read(&mut self, key: HelloKey, hello: &Hello<'_>) -> Option<SessionRequest<C::Pending>> {
        let (payload, pending) = self.crypto.read_hello(&hello.prologue, hello.message)?;
        let offer = Offer::read(&payload).ok()?;
        Some(SessionRequest {
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
            says_dedicated: offer.says_dedicated,
            features: hello.features,
        })
    }

    /// Accepts, unless only one end asks for data without secrecy, or there is no room left. The path is dedicated if
    /// both ends declare it so, and then the start rates are the smaller of both ends' shares.
    pub fn accept(&mut self, now: Time, asked: SessionRequest<C::Pending>, terms: &HandshakeTerms) -> Answered {
        if asked.prologue.is_plain != terms.is_plain {
            return self.refuse(now, asked, Refusal::Plain);
        }
        let is_full = self.is_full(asked.prologue.ticket, Prefix::of(asked.from().ip()));
        if is_full || self.sessions.contains_key(&terms.session) {
            return self.refuse(now, asked, Refusal::NoRoom);
        }
        let path = if asked.prologue.is_dedicated { terms.declared.kind() } else { PathKind::Shared };
        let there = match (asked.prologue.is_dedicated, asked.says_dedicated) {
            (true, _) => PathDeclaration::Dedicated,
            (false, true) => PathDeclaration::WithoutCapacity,
            (false, false) => PathDeclaration::Shared,
        };
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
            declared: terms.declared,
            largest_packet: u64::from(largest_packet),
            send_bps: start_receive.map(to_bps),
            receive_bps: start_send.map(to_bps),
            reset: self.crypto.reset(terms.session),
            features: terms.features,
            ahead: terms.ahead,
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
            declared: PathDeclarations { here: terms.declared, there },
            is_plain: terms.is_plain,
            start_send,
            start_receive,
            largest_packet,
            rtt: None,
            features: asked.features,
            ahead: Ahead::default(),
            asked_at: None,
            reset: None,
            keys,
        };
        self.sessions.insert(terms.session, asked.key);
        let datagram = written(&Handshake::Reply { hello: asked.key.1, message: &message });
        let entry = HalfOpenEntry { since: now, answer: datagram.clone(), times: 1, session: Box::new(established) };
        self.table.insert(asked.key, entry);
        self.earliest.get_or_insert(now.saturating_add(HALF_OPEN_LASTS));
        Answered { datagram, refusal: None }
    }

    /// No. Nothing is kept of it: the same hello is read and refused again.
    pub fn refuse(&mut self, now: Time, asked: SessionRequest<C::Pending>, why: Refusal) -> Answered {
        let prefix = Prefix::of(asked.from().ip());
        self.refusals.count(&self.crypto, epoch(now), asked.prologue.ticket, prefix);
        let payload = bytes(|writer| why.write(writer));
        let (message, _) = self.crypto.write_reply(asked.pending, &payload);
        let datagram = written(&Handshake::Refusal { hello: asked.key.1, message: &message });
        Answered { datagram, refusal: Some(why) }
    }

    /// A packet came for a session that this host does not know: returns the reset for it, if the rate limit allows
    /// one.
    pub fn reset(&mut self, now: Time, from: IpAddr, session: SessionId) -> Option<Reset> {
        if self.resets.allow(&self.crypto, now, Prefix::of(from)) { self.crypto.reset(session) } else { None }
    }

    /// A session that is half open: its keys open its first packet.
    pub fn half_open(&self, session: SessionId) -> Option<&Established<C::Keys>> {
        Some(&*self.table.get(self.sessions.get(&session)?)?.session)
    }

    /// The first packet of a session has been opened: the session is there. `None` if it is not half open, any more.
    pub fn confirm(&mut self, now: Time, session: SessionId) -> Option<Established<C::Keys>> {
        let key = *self.sessions.get(&session)?;
        if now.since(self.table.get(&key)?.since) >= HALF_OPEN_LASTS {
            return None;
        }
        self.sessions.remove(&session);
        let entry = self.table.remove(&key)?;
        let mut established = *entry.session;
        if entry.times == 1 {
            established.rtt = Some(now.since(entry.since));
        }
        if self.done.len() >= MAX_DONE {
            self.done.pop_front();
        }
        self.done.push_back((now, key));
        Some(established)
    }

    /// When half-open sessions may be forgotten.
    pub fn next_timeout(&self) -> Option<Time> {
        self.earliest
    }

    /// Forgets sessions that did not come to be: their names, which are free again. Harmless too early; until it comes,
    /// an old one is of no use and takes its room.
    pub fn handle_timeout(&mut self, now: Time) -> Vec<SessionId> {
        if self.earliest.is_none_or(|earliest| now < earliest) {
            return Vec::new();
        }
        let mut gone = Vec::new();
        let sessions = &mut self.sessions;
        self.table.retain(|_, entry| {
            let is_kept = now.since(entry.since) < HALF_OPEN_LASTS;
            if !is_kept {
                sessions.remove(&entry.session.local);
                gone.push(entry.session.local);
            }
            is_kept
        });
        let since = self.table.values().map(|entry| entry.since).min();
        self.earliest = since.map(|since| since.saturating_add(HALF_OPEN_LASTS));
        gone
    }

    /// The proof of an address, as of such an epoch.
    fn cookie(&self, epoch: u64, from: SocketAddr, ticket: TicketId) -> Mac {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut bytes = Vec::with_capacity(34);
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&ip.octets());
        bytes.extend_from_slice(&from.port().to_be_bytes());
        bytes.extend_from_slice(&ticket.0.to_be_bytes());
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

/// Encodes what fits into a hello: all answers do.
fn bytes(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut room = [0; HELLO_BYTES];
    let mut writer = Writer::new(&mut room);
    write(&mut writer).expect("an answer is smaller than a hello");
    let used = writer.used();
    room[..used].to_vec()
}
