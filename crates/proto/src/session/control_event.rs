//! Events of the control core.

use std::net::SocketAddr;

use fairwave_node::Direction;
use fairwave_units::{Duration, Rate};

use crate::handshake::HandshakeError;
use crate::session::opened::Opened;
use crate::wire::codec::{CloseReason, SessionId};

/// Events for the other cores, or the application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ControlEvent {
    /// A session is there.
    Opened(Opened),
    /// A session that this host wanted will not be.
    Failed {
        /// The name that it would have had.
        session: SessionId,
        /// Why.
        error: HandshakeError,
    },
    /// An end node grants a session a rate, until its next tick.
    Grant {
        /// The session.
        session: SessionId,
        /// Of which node.
        direction: Direction,
        /// The rate.
        rate: Rate,
        /// The node's interval.
        interval: Duration,
    },
    /// A session's peer is at another address: all that was known of its path is void.
    Moved {
        /// The session.
        session: SessionId,
        /// Its address.
        address: SocketAddr,
    },
    /// The largest datagram that a session's path takes, as far as is known.
    Size {
        /// The session.
        session: SessionId,
        /// Bytes.
        datagram_bytes: u32,
    },
    /// The grant of a session's sink that is in force.
    SinkGrant {
        /// The session.
        session: SessionId,
        /// The rate.
        rate: Rate,
    },
    /// The round-trip time of a session.
    Rtt {
        /// The session.
        session: SessionId,
        /// Smoothed.
        rtt: Duration,
        /// The least of the last ten to twenty seconds.
        least: Duration,
    },
    /// A session is over.
    Closed {
        /// The session.
        session: SessionId,
        /// Why.
        reason: CloseReason,
        /// Whether the peer reported it.
        by_peer: bool,
    },
}
