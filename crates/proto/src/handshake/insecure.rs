//! A handshake for simulations: as many bytes as the real one, and no security at all.
//!
//! It finds what changed by accident and keeps sessions apart. Anyone who reads a packet can forge others: everything
//! is derived from 64 bits that [`mixed`](crate::wire::codec) spreads, and nothing is secret.

use std::collections::BTreeMap;

use super::{Crypto, InitiatorCrypto, ResponderCrypto};
use crate::wire::codec::{
    Checksum, MAC_BYTES, Mac, PacketKind, Prologue, Reset, SessionId, TAG_BYTES, TicketId, mixed,
};

/// The suite of no security. Real hosts do not speak it.
pub const INSECURE_SUITE: u8 = 0;

/// The cryptography of simulations.
#[derive(Clone, Copy, Debug)]
pub enum Insecure {}

impl Crypto for Insecure {
    type Keys = InsecureKeys;
    type Initiator = InsecureInitiator;
    type Responder = InsecureResponder;
}

/// An initiator's, for one attempt.
#[derive(Clone, Debug)]
pub struct InsecureInitiator {
    ticket: TicketId,
    secret: u64,
    nonce: u64,
}

/// A responder's.
#[derive(Clone, Debug)]
pub struct InsecureResponder {
    secrets: BTreeMap<TicketId, u64>,
    own: u64,
    nonces: u64,
    /// Outlives it: what sessions are reset with.
    identity: Option<u64>,
}

/// A handshake between its messages.
#[derive(Clone, Copy, Debug)]
pub struct InsecurePending {
    secret: u64,
    nonce: u64,
}

/// The four keys of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsecureKeys(u64);

impl InsecureKeys {
    /// The seal of the packets of a kind that the initiator sends, or that the responder does.
    pub fn seal(self, from_initiator: bool, kind: PacketKind) -> Checksum {
        let direction = u64::from(from_initiator) | if kind == PacketKind::Data { 2 } else { 0 };
        Checksum::new(mixed(self.0 ^ direction))
    }
}

impl InsecureInitiator {
    /// With a ticket; no two attempts have the same nonce.
    pub fn new(ticket: TicketId, secret: u64, nonce: u64) -> Self {
        Self { ticket, secret, nonce }
    }
}

impl InsecureResponder {
    /// With the secrets of its tickets.
    pub fn new(seed: u64, tickets: impl IntoIterator<Item = (TicketId, u64)>) -> Self {
        Self { secrets: tickets.into_iter().collect(), own: mixed(seed), nonces: mixed(!seed), identity: None }
    }

    /// It can reset sessions of an earlier one with the same identity. Hosts of a simulation never start again, and
    /// their answers are shorter without.
    #[must_use]
    pub fn with_resets(self, identity: u64) -> Self {
        Self { identity: Some(identity), ..self }
    }
}

impl InitiatorCrypto for InsecureInitiator {
    type Keys = InsecureKeys;

    fn prologue(&mut self, is_plain: bool, is_dedicated: bool) -> Prologue {
        let [one, other] = [mixed(self.nonce), mixed(!self.nonce)].map(u64::to_be_bytes);
        let mut cookie = [0; MAC_BYTES];
        cookie.iter_mut().zip(one.into_iter().chain(other)).for_each(|(place, byte)| *place = byte);
        Prologue { suite: INSECURE_SUITE, is_plain, is_dedicated, ticket: self.ticket, cookie }
    }

    fn write_hello(&mut self, prologue: &Prologue, payload: &[u8]) -> Vec<u8> {
        self.nonce = mixed(self.nonce);
        message(self.nonce, hello_key(self.secret, self.nonce), &prologue.to_bytes(), payload)
    }

    fn hello_mac(&self, proven: &[u8]) -> Mac {
        Checksum::new(self.secret).tag(0, &[], proven)
    }

    fn read_reply(&mut self, message: &[u8]) -> Option<(Vec<u8>, InsecureKeys)> {
        let nonce = nonce_of(message)?;
        let key = session_key(self.secret, self.nonce, nonce);
        Some((payload(message, key, &[])?, InsecureKeys(key)))
    }
}

impl ResponderCrypto for InsecureResponder {
    type Keys = InsecureKeys;
    type Pending = InsecurePending;

    fn hello_mac(&self, prologue: &Prologue, proven: &[u8]) -> Option<Mac> {
        let secret = *self.secrets.get(&prologue.ticket)?;
        (prologue.suite == INSECURE_SUITE).then(|| Checksum::new(secret).tag(0, &[], proven))
    }

    fn cookie(&self, bytes: &[u8]) -> Mac {
        Checksum::new(self.own).tag(0, &[], bytes)
    }

    fn read_hello(&mut self, prologue: &Prologue, message: &[u8]) -> Option<(Vec<u8>, InsecurePending)> {
        let secret = *self.secrets.get(&prologue.ticket)?;
        let nonce = nonce_of(message)?;
        let payload = payload(message, hello_key(secret, nonce), &prologue.to_bytes())?;
        Some((payload, InsecurePending { secret, nonce }))
    }

    fn write_reply(&mut self, pending: InsecurePending, payload: &[u8]) -> (Vec<u8>, InsecureKeys) {
        self.nonces = self.nonces.wrapping_add(1);
        let nonce = mixed(self.nonces);
        let key = session_key(pending.secret, pending.nonce, nonce);
        (message(nonce, key, &[], payload), InsecureKeys(key))
    }

    fn reset(&self, session: SessionId) -> Option<Reset> {
        let key = self.identity?;
        let id = SessionId(mixed(key ^ mixed(session.0)));
        Some(Reset { id, token: Checksum::new(key).tag(session.0, &[], &[]) })
    }
}

/// Bytes of an ephemeral key in the real one.
const EPHEMERAL_BYTES: usize = 32;

fn hello_key(secret: u64, nonce: u64) -> u64 {
    mixed(secret ^ mixed(nonce))
}

fn session_key(secret: u64, initiator: u64, responder: u64) -> u64 {
    mixed(hello_key(secret, initiator) ^ mixed(responder))
}

/// An ephemeral key, a payload, a tag.
fn message(nonce: u64, key: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut message = nonce.to_be_bytes().to_vec();
    message.resize(EPHEMERAL_BYTES, 0);
    message.extend_from_slice(payload);
    message.extend_from_slice(&Checksum::new(key).tag(0, header, payload));
    message
}

fn nonce_of(message: &[u8]) -> Option<u64> {
    message.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

fn payload(message: &[u8], key: u64, header: &[u8]) -> Option<Vec<u8>> {
    let (ephemeral, rest) = message.split_at_checked(EPHEMERAL_BYTES)?;
    let (payload, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
    let is_whole = ephemeral.iter().skip(8).all(|byte| *byte == 0);
    (is_whole && Checksum::new(key).tag(0, header, payload) == *tag).then(|| payload.to_vec())
}
