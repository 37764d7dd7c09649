//! One attempt to open a session.

use fairwave_units::{Duration, Time};
use thiserror::Error;

use super::InitiatorCrypto;
use super::established::{Established, HandshakeTerms, start, to_bps};
use crate::path::path_kind::{PathDeclaration, PathDeclarations, PathKind};
use crate::session::lasts::Lasts;
use crate::wire::codec::{Ahead, Answer, Full, HELLO_BYTES, Handshake, Hello, Mac, Offer, Prologue, Refusal, Writer};
use crate::wire::features::Features;

/// Sends a hello until it is answered, or gives up.
///
/// The first hello has nothing in it but what proves the ticket. It is repeated after 250 ms, and then each 500 ms.
/// When a cookie comes, a hello with that cookie and with Noise's first message goes at once, and is repeated after two
/// round trips, at least 50 ms and at most a second, and then after twice as long each time, up to 500 ms. If the
/// responder answers that one with another cookie, its own is too old, and the next is written with a new ephemeral
/// key. After five seconds in all the attempt has failed.
///
/// RFC 8085 s3.1.1 wants waits that grow. These grow no further than 500 ms because an attempt ends so soon: with waits
/// that grew on, one of 40 failed where 30 % are lost both ways.
///
/// Once it is established the other end waits for a packet of the session before it serves anything: send one at once.
#[derive(Debug)]
pub struct Initiator<C> {
    crypto: C,
    terms: HandshakeTerms,
    prologue: Prologue,
    /// Its sealed offer.
    offer: Vec<u8>,
    sends: bool,
    receives: bool,
    hello: Box<[u8; HELLO_BYTES]>,
    mac: Mac,
    /// Cookies that were taken.
    cookies: u32,
    started: Time,
    /// When the hello goes next.
    due: Time,
    /// How long to wait after that.
    wait: Duration,
    /// Times that the hello went as it is now, the first of them, and the last.
    times: u32,
    first: Time,
    last: Time,
    rtt: Option<Duration>,
    is_over: bool,
    /// How long the attempt lasts.
    lasts: Duration,
}

/// How an attempt goes.
#[derive(Debug, PartialEq)]
pub enum AttemptProgress<K> {
    /// It goes on. The datagram may have been another's, old or forged.
    Waiting,
    /// The session is there.
    Established(Box<Established<K>>),
    /// There will be none.
    Failed(HandshakeError),
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// Not even a cookie came.
    #[error("no reply: wrong ticket, server not running or UDP blocked")]
    NoAnswer,
    /// A cookie came, and then nothing.
    #[error("the server replied once, then stopped responding")]
    FellSilent,
    /// The responder said no.
    #[error("the server refused: {0}")]
    Refused(Refusal),
    /// The responder's answer is sealed well and makes no sense.
    #[error("the server's reply violates the protocol")]
    Protocol,
}

/// Wait for an answer to the first hello: more than nearly all round trips.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Min wait once the round-trip time is known: processes and their networks may be late by tens of milliseconds.
const MIN_WAIT: Duration = Duration::from_millis(50);
/// Max first wait once the round-trip time is known (RFC 6298 s2: the initial RTO).
const MAX_FIRST_WAIT: Duration = Duration::from_secs(1);
/// Waits that grow end here.
const MAX_WAIT: Duration = Duration::from_millis(500);
/// A responder has a new cookie every five seconds, or after a restart. One that sends more of them only solicits
/// hellos.
const MAX_COOKIES: u32 = 8;

impl<C: InitiatorCrypto> Initiator<C> {
    /// An attempt starts: this end will send, receive or both, and greets the application at the other end. `Full` if
    /// the greeting is longer than [`MAX_GREETING_BYTES`](crate::wire::codec::MAX_GREETING_BYTES).
    pub fn new(
        now: Time,
        mut crypto: C,
        terms: HandshakeTerms,
        (sends, receives): (bool, bool),
        greeting: &[u8],
    ) -> Result<Self, Full> {
        let prologue = crypto.prologue(terms.is_plain, terms.declared == PathDeclaration::Dedicated);
        let [send, receive] = terms.shares();
        let offer = Offer {
            session: terms.session,
            sends,
            receives,
            largest_packet: u64::from(terms.largest_packet),
            send_bps: send.map(to_bps),
            receive_bps: receive.map(to_bps),
            says_dedicated: terms.declared != PathDeclaration::Shared,
            greeting,
        };
        let mut room = [0; HELLO_BYTES];
        let mut writer = Writer::new(&mut room);
        offer.write(&mut writer)?;
        let used = writer.used();
        let offer = room.get(..used).ok_or(Full)?.to_vec();
        let (hello, mac) = written(&crypto, &prologue, &[], terms.features)?;
        Ok(Self {
            crypto,
            terms,
            prologue,
            offer,
            sends,
            receives,
            hello,
            mac,
            cookies: 0,
            started: now,
            due: now,
            wait: FIRST_WAIT,
            times: 0,
            first: now,
            last: now,
            rtt: None,
            is_over: false,
            lasts: Lasts::default().opening,
        })
    }

    /// Sets how long the attempt lasts: [`Lasts::opening`], 5 s by default.
    #[must_use]
    pub fn lasting(self, lasts: Duration) -> Self {
        Self { lasts, ..self }
    }

    /// The hello, if it is to be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<&[u8]> {
        if self.is_over || now < self.due {
            return None;
        }
        if self.times == 0 {
            self.first = now;
        }
        self.times = self.times.saturating_add(1);
        self.last = now;
        self.due = now.saturating_add(self.wait);
        self.wait = twice(self.wait).min(MAX_WAIT.max(self.wait));
        Some(self.hello.as_slice())
    }

    /// Whether a cookie has come: what is sent there arrives, and so does what comes back.
    pub fn is_answered(&self) -> bool {
        self.cookies > 0
    }

    /// When to come with [`Initiator::handle_timeout`] and [`Initiator::poll_transmit`]; `None` after the end.
    pub fn next_timeout(&self) -> Option<Time> {
        (!self.is_over).then(|| self.due.min(self.started.saturating_add(self.lasts)))
    }

    /// Whether it has taken too long. Harmless too early.
    pub fn handle_timeout(&mut self, now: Time) -> Option<HandshakeError> {
        if self.is_over || now.since(self.started) < self.lasts {
            return None;
        }
        self.is_over = true;
        Some(if self.cookies == 0 { HandshakeError::NoAnswer } else { HandshakeError::FellSilent })
    }

    /// Whether a datagram names this attempt's hello. It may still be forged.
    pub fn is_for(&self, datagram: &[u8]) -> bool {
        match Handshake::read(datagram) {
            Ok(Handshake::Cookie { hello, .. } | Handshake::Reply { hello, .. } | Handshake::Refusal { hello, .. }) => {
                hello == self.mac
            }
            Ok(Handshake::Hello(_)) | Err(_) => false,
        }
    }

    /// A datagram of the handshake came, from wherever. Ask [`Initiator::poll_transmit`] afterwards.
    pub fn handle(&mut self, now: Time, datagram: &[u8]) -> AttemptProgress<C::Keys> {
        if self.is_over {
            return AttemptProgress::Waiting;
        }
        match Handshake::read(datagram) {
            Ok(Handshake::Cookie { hello, cookie }) if hello == self.mac => {
                self.on_cookie(now, cookie);
                AttemptProgress::Waiting
            }
            // The payload holds its kind under seal.
            Ok(Handshake::Reply { hello, message } | Handshake::Refusal { hello, message }) if hello == self.mac => {
                let Some((payload, keys)) = self.crypto.read_reply(message) else { return AttemptProgress::Waiting };
                self.is_over = true;
                self.conclude(now, &payload, keys)
            }
            _ => AttemptProgress::Waiting,
        }
    }

    /// The responder wants a hello with this cookie in place of the one that it answers: a cookie for an earlier one,
    /// which was repeated, comes too late. RFC 9000 s17.2.5.2 has a client take one Retry, and no other; here the
    /// responder may have started again, and the attempt goes on.
    fn on_cookie(&mut self, now: Time, cookie: Mac) {
        if self.prologue.cookie == cookie || self.cookies >= MAX_COOKIES {
            return;
        }
        self.prologue.cookie = cookie;
        let message = self.crypto.write_hello(&self.prologue, &self.offer);
        let Ok((hello, mac)) = written(&self.crypto, &self.prologue, &message, self.terms.features) else { return };
        self.sample(now);
        (self.hello, self.mac) = (hello, mac);
        self.cookies += 1;
        self.wait = self.rtt.map_or(FIRST_WAIT, |rtt| twice(rtt).clamp(MIN_WAIT, MAX_FIRST_WAIT));
        (self.due, self.times) = (now, 0);
    }

    /// A round trip is over, if it is known which: nothing was repeated.
    fn sample(&mut self, now: Time) {
        if self.times == 1 {
            let rtt = now.since(self.last);
            self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn conclude(&mut self, now: Time, payload: &[u8], keys: C::Keys) -> AttemptProgress<C::Keys> {
        if let Ok(refusal) = Refusal::read(payload) {
            return AttemptProgress::Failed(HandshakeError::Refused(refusal));
        }
        let Ok(answer) = Answer::read(payload) else { return AttemptProgress::Failed(HandshakeError::Protocol) };
        self.sample(now);
        let path = if answer.is_dedicated { self.terms.declared.kind() } else { PathKind::Shared };
        let declared = PathDeclarations { here: self.terms.declared, there: answer.declared };
        // At most this end's offer, whatever the other one answers.
        let [send, receive] = self.terms.shares();
        let agreed = |flows: bool, share, bps: Option<u64>| {
            (flows && path == PathKind::Dedicated && bps.is_some()).then(|| start(share, bps)).flatten()
        };
        AttemptProgress::Established(Box::new(Established {
            local: self.terms.session,
            peer: answer.session,
            is_initiator: true,
            address: None,
            ticket: self.prologue.ticket,
            sends: self.sends,
            receives: self.receives,
            path,
            declared,
            is_plain: self.terms.is_plain,
            start_send: agreed(self.sends, send, answer.send_bps),
            start_receive: agreed(self.receives, receive, answer.receive_bps),
            largest_packet: self.terms.largest(answer.largest_packet),
            rtt: self.rtt,
            features: answer.features,
            ahead: if path == PathKind::Dedicated { answer.ahead } else { Ahead::default() },
            asked_at: Some(self.first),
            reset: answer.reset,
            keys,
        }))
    }
}

/// A hello, and its MAC.
fn written<C: InitiatorCrypto>(
    crypto: &C,
    prologue: &Prologue,
    message: &[u8],
    features: Features,
) -> Result<(Box<[u8; HELLO_BYTES]>, Mac), Full> {
    let mut mac = Mac::default();
    let hello = Hello::write(prologue, message, features, |proven| {
        mac = crypto.hello_mac(proven);
        mac
    })?;
    Ok((Box::new(hello), mac))
}

fn twice(span: Duration) -> Duration {
    Duration::from_nanos(span.as_nanos().saturating_mul(2))
}
