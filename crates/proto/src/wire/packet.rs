//! Packets as the cores know them, and how they become sealed datagrams and come back from them: on a wire as in a
//! simulation.

use std::net::SocketAddr;

use crate::wire::codec::{
    DecodeError, Frame, Full, HEADER_BYTES, Header, PIECE_BYTES, PacketKind, Piece, Seal, SessionId, TAG_BYTES, Unseal,
    Writer, open_datagram, seal_datagram,
};
use crate::wire::packet_runs::PieceAt;

/// A data packet. Its payload stays with the driver, which knows what a piece of a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket {
    /// The session, as the receiver of the packet names it.
    pub session: SessionId,
    /// Its number: one more for each data packet of this direction.
    pub number: u64,
    /// When it was sent by the source's clock, in microseconds, of which the lowest 32 bits travel.
    pub stamp_us: u32,
    /// Its data.
    pub piece: PieceAt,
}

/// A control packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPacket {
    /// The session, as the receiver of the packet names it.
    pub session: SessionId,
    /// Its number: one more for each control packet of this direction.
    pub number: u64,
    /// Its body: frames, as [`Frames`](crate::wire::codec::Frames) reads them.
    pub frames: Vec<u8>,
}

/// A packet that wants to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The destination.
    pub to: SocketAddr,
    /// The session, as this host names it; none for a handshake.
    pub session: Option<SessionId>,
    /// Whether it sets out with ECT(0): routers may mark it in place of dropping it.
    pub takes_marks: bool,
    /// The packet.
    pub packet: Packet,
}

impl Transmit {
    /// A datagram of the handshake.
    pub(crate) fn handshake(to: SocketAddr, datagram: Vec<u8>) -> Self {
        Self { to, session: None, takes_marks: false, packet: Packet::Handshake(datagram) }
    }
}

/// A packet to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A piece of a stream, to be sealed.
    Data(DataPacket),
    /// Frames, to be sealed.
    Control(ControlPacket),
    /// A datagram of the handshake, ready to go.
    Handshake(Vec<u8>),
}

/// Bytes of a datagram in front of the bytes of its piece.
pub const DATA_FRONT: usize = HEADER_BYTES + PIECE_BYTES;
/// Bytes of a datagram around the bytes of its piece.
pub const DATA_OVERHEAD: u32 = (DATA_FRONT + TAG_BYTES) as u32;
/// Bytes of a datagram around its frames.
pub(crate) const CONTROL_OVERHEAD: u32 = (HEADER_BYTES + TAG_BYTES) as u32;
/// Bytes of frames in a control packet at most: with them it fits into the least datagram that every path takes.
pub const MAX_FRAME_BYTES: usize = 1200 - CONTROL_OVERHEAD as usize;

/// A body of these frames, as far as they fit into one packet.
pub(crate) fn frames(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut room = [0; MAX_FRAME_BYTES];
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

    /// Writes its datagram into `room`, sealed: its length.
    pub fn seal(&self, seal: &mut impl Seal, room: &mut [u8]) -> Result<usize, Full> {
        let header = Header { kind: PacketKind::Control, session: self.session, number: self.number };
        seal_datagram(&header, seal, room, &self.frames, |_| Ok(()))
    }

    /// Opens the datagram of a control packet, whose header has been read.
    pub fn open(header: &Header, seal: &mut impl Unseal, datagram: &mut [u8]) -> Result<Self, DecodeError> {
        let body = open_datagram(header, seal, datagram)?;
        Ok(Self { session: header.session, number: header.number, frames: body.rest().to_vec() })
    }
}

impl DataPacket {
    /// Bytes of its datagram, without IP and UDP.
    pub fn datagram_bytes(&self) -> u32 {
        DATA_OVERHEAD.saturating_add(self.piece.length)
    }

    /// Writes its datagram into `room`, sealed: its length. `bytes` are those of its piece, and are sealed from where
    /// they lie.
    pub fn seal(&self, seal: &mut impl Seal, room: &mut [u8], bytes: &[u8]) -> Result<usize, Full> {
        seal_datagram(&self.header(), seal, room, bytes, |writer| self.front().write(writer))
    }

    /// Seals a packet in place: the bytes of its piece are in `room`, behind the first [`DATA_FRONT`].
    pub fn seal_in_place(&self, seal: &mut impl Seal, room: &mut [u8]) -> Result<usize, Full> {
        seal_datagram(&self.header(), seal, room, &[], |writer| {
            self.front().write(writer)?;
            writer.take(self.piece.length as usize).map(|_| ())
        })
    }

    /// Opens the datagram of a data packet, whose header has been read: the packet, and the bytes of its piece.
    pub fn open<'a>(
        header: &Header,
        seal: &mut impl Unseal,
        datagram: &'a mut [u8],
    ) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut body = open_datagram(header, seal, datagram)?;
        let Piece { stamp_us, stream, offset, bytes } = Piece::read(&mut body)?;
        let piece = PieceAt { stream, offset, length: bytes.len() as u32 };
        Ok((Self { session: header.session, number: header.number, stamp_us, piece }, bytes))
    }

    #[inline]
    fn header(&self) -> Header {
        Header { kind: PacketKind::Data, session: self.session, number: self.number }
    }

    /// The part in front of the bytes.
    #[inline]
    fn front(&self) -> Piece<'static> {
        let PieceAt { stream, offset, .. } = self.piece;
        Piece { stamp_us: self.stamp_us, stream, offset, bytes: &[] }
    }
}
