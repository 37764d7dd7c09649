//! Orders from an endpoint to its thread, and the state that the two share.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;
use crossbeam_channel::Sender;

use crate::config::EndpointFacts;
use crate::connect::{ConnectError, ConnectOptions};
use crate::handler::Handler;
use crate::keyring::Keyring;
use crate::membership::NodeFacts;
use crate::proof::Proof;
use crate::session::Session;
use crate::ticket::Ticket;
use crate::visitor::{Accept, Judge};

/// An order to an endpoint's thread.
pub(crate) enum EndpointOrder {
    Connect(Box<Call>),
    Listen {
        tickets: Arc<Keyring>,
        judge: Judge,
        accept: Accept,
    },
    /// Descriptors that lead to another host's process: what is read, what is written, where that host is, and who is
    /// told when they lead nowhere any more.
    Tunnel {
        ends: (OwnedFd, OwnedFd),
        peer: SocketAddr,
        is_gone: Arc<AtomicBool>,
    },
    Stop,
}

/// A session that is wanted.
pub(crate) struct Call {
    pub(crate) to: Ticket,
    pub(crate) options: ConnectOptions,
    pub(crate) handler: Box<dyn Handler>,
    /// That it goes on with another one.
    pub(crate) proof: Option<Proof>,
    pub(crate) reply: Sender<Result<Session, ConnectError>>,
}

/// The state that other threads may read.
pub(crate) struct EndpointShared {
    pub(crate) facts: EndpointFacts,
    pub(crate) sessions: ArcSwap<Vec<Session>>,
    /// Datagrams that the socket had no room for.
    pub(crate) overflows: AtomicU64,
    /// Whose end node its sessions share.
    pub(crate) node: Arc<ArcSwap<NodeFacts>>,
}
