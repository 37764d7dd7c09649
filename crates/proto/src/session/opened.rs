//! A session, as hosts speak of it.

use std::net::SocketAddr;

use fairwave_node::{Terms, TermsError};
use fairwave_units::{Duration, Rate};
use thiserror::Error;

use crate::handshake::Established;
use crate::path::path_kind::{PathDeclarations, PathKind};
use crate::session::slots::MAX_SESSIONS;
use crate::wire::codec::SessionId;
use crate::wire::features::Features;

/// A session that this host wants to open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenRequest<'a> {
    /// Whether this host will send data.
    pub sends: bool,
    /// Whether it will receive data.
    pub receives: bool,
    /// Message for the other host's application, at most a few hundred bytes.
    pub greeting: &'a [u8],
    /// Options for this host's end nodes.
    pub options: Terms,
}

/// Why a host cannot even start to open a session.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum OpenError {
    /// It has as many as it can have.
    #[error("a host has at most {MAX_SESSIONS} sessions")]
    TooMany,
    /// Its options are invalid.
    #[error(transparent)]
    Options(TermsError),
    /// Its greeting does not fit into a hello.
    #[error("a greeting of {0} bytes does not fit into the handshake")]
    Greeting(usize),
}

/// An open session, as agreed by both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opened {
    /// Its name at this host.
    pub session: SessionId,
    /// Its name at the peer.
    pub peer: SessionId,
    /// The peer's address.
    pub address: SocketAddr,
    /// Whether this host opened it.
    pub is_initiator: bool,
    /// Whether this host sends data.
    pub sends: bool,
    /// Whether this host receives data.
    pub receives: bool,
    /// Whether others use the path.
    pub path: PathKind,
    /// Both ends' declarations about the path.
    pub declared: PathDeclarations,
    /// Its weight among this host's sessions.
    pub(crate) weight: f64,
    /// Start rate for sending.
    pub(crate) start_send: Rate,
    /// Start rate for receiving.
    pub(crate) start_receive: Rate,
    /// The round-trip time of the handshake, where it shows one.
    pub(crate) rtt: Option<Duration>,
    /// The largest datagram that both ends take, in bytes.
    pub(crate) largest_packet: u32,
    /// The other end's features.
    pub(crate) features: Features,
}

impl Opened {
    /// A session whose handshake is over.
    pub(crate) fn of<K>(established: &Established<K>, address: SocketAddr, weight: f64) -> Self {
        Self {
            session: established.local,
            peer: established.peer,
            address,
            is_initiator: established.is_initiator,
            sends: established.sends,
            receives: established.receives,
            path: established.path,
            declared: established.declared,
            weight,
            start_send: established.start_send.unwrap_or(Rate::ZERO),
            start_receive: established.start_receive.unwrap_or(Rate::ZERO),
            rtt: established.rtt,
            largest_packet: established.largest_packet,
            features: established.features,
        }
    }
}

/// A session's use in the control interval that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The session.
    pub session: SessionId,
    /// Its measured rate.
    pub rate: Rate,
    /// At a sink: for how long its packets waited at least, more than at any time in the last ten seconds.
    pub waiting: Option<Duration>,
}
