//! The cryptography that the handshake needs.

use crate::wire::codec::{Mac, Prologue, Reset, SessionId};

/// The cryptography of a host.
pub trait Crypto {
    /// Keys that seal a session's packets.
    type Keys;
    /// One attempt to open a session.
    type Initiator: InitiatorCrypto<Keys = Self::Keys>;
    /// The answers to others'.
    type Responder: ResponderCrypto<Keys = Self::Keys>;
}

/// The initiator's side of one Noise handshake of two messages (NKpsk0, or IKpsk2), with its randomness and the ticket.
pub trait InitiatorCrypto {
    /// Keys that seal the session's packets.
    type Keys;

    /// The start of the hello names the suite and the ticket, and has random bytes in place of a cookie; the rest of it
    /// is as requested.
    fn prologue(&mut self, is_plain: bool, is_dedicated: bool) -> Prologue;

    /// The first message, with a sealed payload, at most 112 bytes longer than that. It is requested again for each
    /// cookie, and then is the first one of another handshake: an ephemeral key belongs to exactly one prologue.
    fn write_hello(&mut self, prologue: &Prologue, payload: &[u8]) -> Vec<u8>;

    /// The MAC of a hello, keyed from the ticket's secret.
    fn hello_mac(&self, proven: &[u8]) -> Mac;

    /// Opens the second message, which answers the latest first one: its payload, and the keys. One that does not open
    /// changes nothing: the right one may come yet. After one that does, no other is read.
    fn read_reply(&mut self, message: &[u8]) -> Option<(Vec<u8>, Self::Keys)>;
}

/// The responder's side of all its handshakes, with the secrets of its tickets and its randomness.
pub trait ResponderCrypto {
    /// Keys that seal a session's packets.
    type Keys;
    /// A Noise handshake between its messages.
    type Pending;

    /// The expected MAC of a hello, keyed from its ticket's secret: for expired tickets as well, since their holders
    /// get an error. `None` for tickets that were never issued, and for a suite that is not supported here.
    fn hello_mac(&self, prologue: &Prologue, proven: &[u8]) -> Option<Mac>;

    /// A MAC under a key that only this host knows, drawn when it started.
    fn cookie(&self, bytes: &[u8]) -> Mac;

    /// Opens the first message: its payload.
    fn read_hello(&mut self, prologue: &Prologue, message: &[u8]) -> Option<(Vec<u8>, Self::Pending)>;

    /// The second message, with a sealed payload, at most 112 bytes longer than that; and the keys.
    fn write_reply(&mut self, pending: Self::Pending, payload: &[u8]) -> (Vec<u8>, Self::Keys);

    /// The reset of an unknown session of this name, derived from a key of this host that outlives its process: always
    /// the same, and impossible for others to make. `None` for a host without such a key.
    fn reset(&self, session: SessionId) -> Option<Reset>;
}
