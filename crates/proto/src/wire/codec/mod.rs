//! Packets as bytes: the only place where they are.
//!
//! A datagram is a [`Header`] in the clear and a sealed body. The body of a data packet is a [`Piece`] of a stream,
//! that of a control packet a row of [`Frame`]s. Everything that comes in is read through [`Reader`], which knows where
//! the bytes end; nothing here indexes, unwraps or adds without looking, and lints see to it.
//!
//! ```text
//! datagram  = version (4 bits), kind (4 bits), session id (8 bytes), packet number (8 bytes), sealed body
//! data      = stamp in microseconds (4 bytes), stream (4 bytes), offset (8 bytes), bytes up to the end
//! control   = frames up to the end; a zero byte is padding
//! varint    = QUIC's (RFC 9000 s16): the first two bits say 1, 2, 4 or 8 bytes, big-endian
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod ahead;
mod column;
mod exchange;
mod frame;
mod handshake;
mod header;
mod piece;
mod reader;
mod report;
mod reset;
mod seal;
mod terms;
mod writer;

use thiserror::Error;

pub use ahead::Ahead;
pub use exchange::NO_LIMIT_BPS;
pub(crate) use exchange::rate;
pub use fairwave_node::SessionId;
pub use frame::{CloseReason, Frame, Frames, VoidReason};
#[cfg(test)]
pub(crate) use handshake::PROLOGUE_BYTES;
pub use handshake::{HELLO_BYTES, Handshake, Hello, MAC_BYTES, Mac, Prologue, TicketId, is_handshake};
pub use header::{HEADER_BYTES, Header, PacketKind};
pub use piece::{PIECE_BYTES, Piece};
pub use reader::Reader;
pub use report::{LossReport, LostRanges};
pub(crate) use reset::MIN_RESET_BYTES;
#[cfg(test)]
pub(crate) use reset::{MAX_RESET_BYTES, TOKEN_BYTES};
pub use reset::{Reset, Token};
pub(crate) use seal::mixed;
pub use seal::{Checksum, Seal, TAG_BYTES, Unseal, open_datagram, seal_datagram};
pub use terms::{Answer, MAX_GREETING_BYTES, Offer, Refusal};
pub use writer::{Full, Writer};

/// The reason why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// They end too early.
    #[error("the packet is truncated in {0}")]
    Short(&'static str),
    /// A version that this one does not speak.
    #[error("unsupported protocol version {0}, expected {VERSION}")]
    Version(u8),
    /// An unknown kind of packet or frame.
    #[error("unknown kind of {what}: {kind}")]
    Kind {
        /// "packet", "frame" or "payload".
        what: &'static str,
        /// Its number.
        kind: u8,
    },
    /// A value outside of its domain.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// The seal is broken: not from this peer, changed on the way, or for another session.
    #[error("packet authentication failed")]
    Seal,
}

/// The version of the protocol that this crate speaks, and no other: an end cannot be talked into an older one. In
/// version 1 a hello that was recorded could be sent again with another cookie.
pub const VERSION: u8 = 2;
