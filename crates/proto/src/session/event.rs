//! Events that a host returns to its driver.

use std::ops::Range;

use crate::handshake::HandshakeError;
use crate::receive::receiver::ReceiverCounts;
use crate::send::sender::SenderCounts;
use crate::session::opened::Opened;
use crate::wire::codec::{CloseReason, SessionId, VoidReason};

/// Something that the application should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A session is there: one that this host wanted, or one that it accepted.
    Open(Opened),
    /// A session that this host wanted will not be.
    Failed {
        /// The name that it would have had.
        session: SessionId,
        /// Why.
        error: HandshakeError,
    },
    /// The peer asks for a range: answer with [`Host::serve`](crate::Host::serve) or
    /// [`Host::refuse`](crate::Host::refuse), now or when it has been read. It may come again.
    Requested {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: u32,
        /// The range.
        range: Range<u64>,
    },
    /// A range that was wanted will not come.
    Void {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: u32,
        /// The range.
        range: Range<u64>,
        /// Why.
        reason: VoidReason,
    },
    /// A session is over.
    Closed {
        /// The session.
        session: SessionId,
        /// Why.
        reason: CloseReason,
        /// Whether the peer closed it.
        by_peer: bool,
        /// Its counts as a source and as a sink up to then.
        counts: (SenderCounts, ReceiverCounts),
    },
}
