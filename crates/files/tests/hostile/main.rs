//! Hostile peers: they hold a valid ticket or key, open a session by the protocol, and then send bytes that Fairwave
//! never sends. They attack the real code behind the public interface, over real ports.
//!
//! Nothing here is patched: [`hostile_session::Peer`] drives the public cores of `fairwave-proto` with the cryptography of
//! `fairwave-host` up to the open session, and takes their keys from then on.
//!
//! To add a case:
//!
//! - the attacker of a server holds a ticket: [`scene::Scene`] has a real server with a share, a ticket for it, and an
//!   honest visitor; [`hostile_session::Peer::call`] opens the session with a greeting ([`hostile_session::GET`], [`hostile_session::PUT`]),
//!   [`hostile_session::Peer::say`] seals frames and [`hostile_session::Peer::give`] data of the case's choice, and [`hostile_session::Peer::hear`]
//!   decrypts the answers;
//! - the attacker of a taker is a server: [`hostile_session::Peer::answer`] waits for the taker's hello and is then used the same
//!   way; [`giver::Giver`] is the one for lists, hashes and bytes of the case's choice, where all else is to be proper;
//! - a case asserts that the attacked end still works ([`scene::Scene::serves`]), and which bound ended the attack. It
//!   is named `attacker__outcome`, and prints its seed if it is random.

#![allow(missing_docs, non_snake_case)]

// The encryption of the sessions of both ends: the files of `fairwave-host`, so that changes apply here.
#[allow(dead_code, unused_imports, reason = "a peer needs a part of it")]
#[path = "../../../host/src/crypto/mod.rs"]
mod crypto;
#[allow(dead_code, reason = "a peer needs a part of it")]
#[path = "../../../host/src/log_limiter.rs"]
mod log_limiter;

/// The parts of its crate that `crypto` uses.
mod keyring {
    pub(crate) use fairwave_host::{Issued, Keyring, id_text};
}
mod secret {
    pub(crate) use fairwave_host::Secret;
}
mod ticket {
    pub(crate) use fairwave_host::Ticket;
}

mod giver;
mod hostile_session;
mod names;
mod nonsense;
mod reports;
mod requests;
mod scene;
