//! The handshake: Noise NKpsk0 with the ticket's secret.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fairwave_proto::codec::{MAC_BYTES, Mac, Prologue, Reset, SessionId, TicketId};
use fairwave_proto::handshake::{Crypto, InitiatorCrypto, ResponderCrypto};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::keys::SessionKeys;
use super::suite::Suite;
use crate::keyring::{Issued, Keyring, id_text};
use crate::log_limiter::LogLimiter;
use crate::secret::Secret;
use crate::ticket::Ticket;

/// The handshake of all suites: the initiator knows the responder's key from the ticket, and both know its secret.
const PATTERN: &str = "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s";
/// The largest message of a handshake.
const MAX_MESSAGE: usize = 1200;

/// The cryptography of real hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Noise {}

/// An initiator's part, for one attempt.
pub(crate) struct NoiseInitiator {
    suite: Suite,
    ticket: TicketId,
    server_key: [u8; 32],
    secret: Secret,
    is_plain: bool,
    state: Option<HandshakeState>,
}

/// A responder's part, for all handshakes of a host.
pub(crate) struct NoiseResponder {
    /// `None` while the host does not listen.
    tickets: Option<Arc<Keyring>>,
    cookie_key: Zeroizing<[u8; 32]>,
    /// Derived from the host's own key and its listen address, so that it is the same after a restart there. `None`
    /// while the host does not listen.
    reset_key: Option<Zeroizing<[u8; 32]>>,
    /// The local receive address.
    local: SocketAddr,
    /// Log lines about tickets that are not known: anybody can cause them.
    unknown: LogLimiter,
}

/// A handshake between its messages.
pub(crate) struct NoisePending {
    suite: Suite,
    is_plain: bool,
    state: HandshakeState,
}

impl Crypto for Noise {
    type Keys = SessionKeys;
    type Initiator = NoiseInitiator;
    type Responder = NoiseResponder;
}

impl NoiseInitiator {
    pub(crate) fn new(ticket: &Ticket) -> Self {
        let Ticket { key, id, ref secret, .. } = *ticket;
        let suite = Suite::of_this_machine();
        Self { suite, ticket: id, server_key: key, secret: secret.clone(), is_plain: false, state: None }
    }
}

impl NoiseResponder {
    /// For a host that receives at `local`.
    pub(crate) fn new(local: SocketAddr) -> Result<Self, getrandom::Error> {
        // The network thread does not read it.
        machine_id();
        let mut cookie_key = Zeroizing::new([0; 32]);
        getrandom::fill(cookie_key.as_mut_slice())?;
        Ok(Self { tickets: None, cookie_key, reset_key: None, local, unknown: LogLimiter::default() })
    }

    /// From now on hellos with these tickets are answered.
    pub(crate) fn listen(&mut self, tickets: Arc<Keyring>) {
        // RFC 9000 s10.3.2: of endpoints with the same key no endpoint may have a session whose name another one does
        // not know, or that one would reveal to any sender the token that ends the session (s21.11). Processes of a
        // user have one identity, and each is at its own place.
        let key = purpose(tickets.identity().private(), "fairwave 2026 reset");
        // So are machines that share a home directory.
        let mut place = blake3::Hasher::new_keyed(&key);
        place.update(machine_id());
        place.update(rustix::system::uname().nodename().to_bytes()).update(&[0]);
        place.update(self.local.to_string().as_bytes());
        self.reset_key = Some(Zeroizing::new(*place.finalize().as_bytes()));
        self.tickets = Some(tickets);
    }
}

/// The system's machine ID; empty if it has none.
fn machine_id() -> &'static [u8] {
    static ID: OnceLock<Vec<u8>> = OnceLock::new();
    ID.get_or_init(|| std::fs::read("/etc/machine-id").unwrap_or_default())
}

/// The key of a ticket for one purpose: keys of different purposes reveal nothing of each other.
fn purpose(secret: &Secret, purpose: &str) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key(purpose, secret.as_bytes()))
}

fn psk(secret: &Secret) -> Zeroizing<[u8; 32]> {
    purpose(secret, "fairwave 2026 psk")
}

fn mac(key: &[u8; 32], bytes: &[u8]) -> Mac {
    let mut mac = Mac::default();
    blake3::Hasher::new_keyed(key).update(bytes).finalize_xof().fill(&mut mac);
    mac
}

fn builder<'a>(prologue: &'a [u8], psk: &'a [u8; 32]) -> Builder<'a> {
    Builder::new(PATTERN.parse().expect("the pattern is one of Noise's"))
        .prologue(prologue)
        .and_then(|builder| builder.psk(0, psk))
        .expect("both are set once")
}

/// The first message has used it up (Noise s9.2: psk0 stands at its beginning). The library would leave it in memory.
fn forget_psk(state: &mut HandshakeState) {
    state.set_psk(0, &[0; 32]).expect("there is a place for one");
}

fn keys(suite: Suite, is_initiator: bool, is_plain: bool, state: &mut HandshakeState) -> SessionKeys {
    SessionKeys::new(suite, is_initiator, is_plain, state.dangerously_get_raw_split())
}

fn written(state: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; MAX_MESSAGE];
    let length = state.write_message(payload, &mut message).expect("it is this end's turn, and there is room");
    message.truncate(length);
    message
}

impl InitiatorCrypto for NoiseInitiator {
    type Keys = SessionKeys;

    fn prologue(&mut self, is_plain: bool, is_dedicated: bool) -> Prologue {
        let mut cookie = [0; MAC_BYTES];
        getrandom::fill(&mut cookie).expect("the endpoint began with random bytes of the system");
        Prologue { suite: self.suite.number(), is_plain, is_dedicated, ticket: self.ticket, cookie }
    }

    fn write_hello(&mut self, prologue: &Prologue, payload: &[u8]) -> Vec<u8> {
        self.is_plain = prologue.is_plain;
        let mut state = builder(&prologue.to_bytes(), &psk(&self.secret))
            .remote_public_key(&self.server_key)
            .and_then(Builder::build_initiator)
            .expect("all that NKpsk0 asks for is there");
        let message = written(&mut state, payload);
        forget_psk(&mut state);
        self.state = Some(state);
        message
    }

    fn hello_mac(&self, proven: &[u8]) -> Mac {
        mac(&purpose(&self.secret, "fairwave 2026 hello"), proven)
    }

    fn read_reply(&mut self, message: &[u8]) -> Option<(Vec<u8>, SessionKeys)> {
        let state = self.state.as_mut()?;
        let mut payload = vec![0; MAX_MESSAGE];
        // snow goes back to where it was if a message does not open.
        let length = state.read_message(message, &mut payload).ok()?;
        payload.truncate(length);
        Some((payload, keys(self.suite, true, self.is_plain, state)))
    }
}

impl ResponderCrypto for NoiseResponder {
    type Keys = SessionKeys;
    type Pending = NoisePending;

    fn hello_mac(&self, prologue: &Prologue, proven: &[u8]) -> Option<Mac> {
        Suite::from_number(prologue.suite)?;
        let tickets = self.tickets.as_ref()?;
        let Some(Issued { secret, .. }) = tickets.lookup(prologue.ticket) else {
            if tracing::enabled!(tracing::Level::DEBUG) && self.unknown.allows(Instant::now()) {
                tracing::debug!(ticket = %id_text(prologue.ticket), "no answer to who names a ticket that is not known here");
            }
            return None;
        };
        Some(mac(&purpose(&secret, "fairwave 2026 hello"), proven))
    }

    fn cookie(&self, bytes: &[u8]) -> Mac {
        mac(&self.cookie_key, bytes)
    }

    fn read_hello(&mut self, prologue: &Prologue, message: &[u8]) -> Option<(Vec<u8>, NoisePending)> {
        let suite = Suite::from_number(prologue.suite)?;
        let tickets = self.tickets.as_ref()?;
        let secret = tickets.lookup(prologue.ticket)?.secret;
        let mut state = builder(&prologue.to_bytes(), &psk(&secret))
            .local_private_key(tickets.identity().private().as_bytes())
            .and_then(Builder::build_responder)
            .expect("all that NKpsk0 asks for is there");
        let mut payload = vec![0; MAX_MESSAGE];
        let read = state.read_message(message, &mut payload);
        forget_psk(&mut state);
        payload.truncate(read.ok()?);
        Some((payload, NoisePending { suite, is_plain: prologue.is_plain, state }))
    }

    fn write_reply(&mut self, pending: NoisePending, payload: &[u8]) -> (Vec<u8>, SessionKeys) {
        let NoisePending { suite, is_plain, mut state } = pending;
        let message = written(&mut state, payload);
        (message, keys(suite, false, is_plain, &mut state))
    }

    fn reset(&self, session: SessionId) -> Option<Reset> {
        let hash = blake3::keyed_hash(self.reset_key.as_deref()?, &session.0.to_be_bytes());
        let (id, rest) = hash.as_bytes().split_first_chunk()?;
        Some(Reset { id: SessionId(u64::from_be_bytes(*id)), token: *rest.first_chunk()? })
    }
}
