//! Packets as the cores know them: values, not bytes.

use std::net::SocketAddr;

use crate::codec::{Frame, HEADER_BYTES, PIECE_BYTES, SessionId, TAG_BYTES, Writer};
use crate::outstanding::PieceAt;

/// A data packet. Its payload stays with the driver, which knows what a piece of a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket {
    /// The session, as the receiver of the packet names it.
    pub session: SessionId,
    /// Its number: one more for each data packet of this direction.
    pub number: u64,
    /// When it was sent by the source's clock, in microseconds, of which the lowest 32 bits travel.
    pub stamp_us: u32,
    /// What it carries.
    pub piece: PieceAt,
}

/// A control packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPacket {
    /// The session, as the receiver of the packet names it.
    pub session: SessionId,
    /// Its number: one more for each control packet of this direction.
    pub number: u64,
    /// Its body: frames, as [`Frames`](crate::codec::Frames) reads them.
    pub frames: Vec<u8>,
}

/// A packet that wants to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// The session, as this host names it; none for a handshake.
    pub session: Option<SessionId>,
    /// What.
    pub packet: Packet,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A piece of a stream, to be sealed.
    Data(DataPacket),
    /// Frames, to be sealed.
    Control(ControlPacket),
    /// A datagram of the handshake, ready to go.
    Handshake(Vec<u8>),
}

/// Bytes of a datagram around the bytes of its piece.
pub const DATA_OVERHEAD: u32 = (HEADER_BYTES + PIECE_BYTES + TAG_BYTES) as u32;
/// Bytes of a datagram around its frames.
pub const CONTROL_OVERHEAD: u32 = (HEADER_BYTES + TAG_BYTES) as u32;
/// Bytes of frames in a control packet at the most: with them it fits into the least datagram that every path takes.
pub const MOST_FRAME_BYTES: usize = 1200 - CONTROL_OVERHEAD as usize;

/// A body of these frames, as far as they fit into one packet.
pub(crate) fn frames(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut room = [0; MOST_FRAME_BYTES];
    let mut writer = Writer::new(&mut room);
    let fits = frames.iter().all(|frame| frame.write(&mut writer).is_ok());
    debug_assert!(fits, "a few small frames fit into a packet");
    let used = writer.used();
    room[..used].to_vec()
}

impl Packet {
    /// Bytes of its datagram, without IP and UDP.
    pub fn datagram_bytes(&self) -> u32 {
        match self {
            Self::Data(data) => data.datagram_bytes(),
            Self::Control(control) => control.datagram_bytes(),
            Self::Handshake(bytes) => bytes.len() as u32,
        }
    }
}

impl ControlPacket {
    /// Bytes of its datagram, without IP and UDP.
    pub fn datagram_bytes(&self) -> u32 {
        CONTROL_OVERHEAD.saturating_add(self.frames.len() as u32)
    }
}

impl DataPacket {
    /// Bytes of its datagram, without IP and UDP.
    pub fn datagram_bytes(&self) -> u32 {
        DATA_OVERHEAD.saturating_add(self.piece.length)
    }
}
