//! Peers that are not Fairwave's own: they hold a good ticket or a good key, open a session as the protocol has it, and
//! then send what no Fairwave sends. What they attack is the real thing behind the public interface, over real ports.
//!
//! Nothing here is patched: [`wire::Peer`] drives the public cores of `fairwave-proto` with the cryptography of
//! `fairwave-host` up to the open session, and takes their keys from then on.
//!
//! To add a case:
//!
//! - who attacks a server holds a ticket: [`scene::Scene`] has a real server with a share, a ticket for it, and an
//!   honest visitor; [`wire::Peer::call`] opens the session with a greeting ([`wire::GET`], [`wire::PUT`]),
//!   [`wire::Peer::say`] seals frames and [`wire::Peer::give`] data of the case's choice, and [`wire::Peer::hear`]
//!   opens what comes back;
//! - who attacks a taker is a server of its own: [`wire::Peer::answer`] waits for its call and is then the same;
//!   [`giver::Giver`] is the one for lists, hashes and bytes of the case's choice, where all else is to be proper;
//! - a case asserts what the attacked end still does ([`scene::Scene::serves`]), and by which bound the attack ended.
//!   It is named `attacker__what_becomes_of_it`, and prints its seed where it draws anything.

#![allow(missing_docs, non_snake_case)]

// What the sessions of both ends are sealed with: the files of `fairwave-host`, so that a change there is one here.
#[allow(dead_code, unused_imports, reason = "a peer needs a part of it")]
#[path = "../../../host/src/crypto/mod.rs"]
mod crypto;
#[allow(dead_code, reason = "a peer needs a part of it")]
#[path = "../../../host/src/log_limiter.rs"]
mod log_limiter;

/// What `crypto` knows of the rest of its crate.
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
mod names;
mod nonsense;
mod reports;
mod requests;
mod scene;
mod wire;
