//! The way of a GTP packet through the codec: from what a core gives to a sealed datagram and back.

use fairwave_proto::codec::{Header, Kind, Piece, Reader, SessionId, Writer, open_datagram, seal_datagram};
use fairwave_proto::handshake::insecure::InsecureKeys;
use fairwave_proto::{ControlPacket, DataPacket, Packet, PieceAt};

/// Writes and reads the datagrams of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// Room for the bytes of a piece.
    bytes: Vec<u8>,
}

impl Wire {
    /// Makes a packet of flow `flow` a datagram, in `room`, with the keys of its session and whether its initiator, the sink,
    /// sends it.
    pub(crate) fn seal(
        &mut self,
        flow: u32,
        keys: Option<(InsecureKeys, bool)>,
        packet: &Packet,
        mut room: Vec<u8>,
    ) -> Vec<u8> {
        let (kind, session, number) = match packet {
            Packet::Data(data) => (Kind::Data, data.session, data.number),
            Packet::Control(control) => (Kind::Control, control.session, control.number),
            // Ready as it is.
            Packet::Handshake(datagram) => {
                room.extend_from_slice(datagram);
                return room;
            }
        };
        room.resize(packet.datagram_bytes() as usize, 0);
        let write = |writer: &mut Writer<'_>| match packet {
            Packet::Data(DataPacket { stamp_us, piece: PieceAt { stream, length, offset }, .. }) => {
                fill(&mut self.bytes, flow, *stream, *offset, *length);
                Piece { stamp_us: *stamp_us, stream: *stream, offset: *offset, bytes: &self.bytes }.write(writer)
            }
            Packet::Control(control) => writer.bytes(&control.frames),
            Packet::Handshake(_) => Ok(()),
        };
        let header = Header { kind, session, number };
        let (keys, from_initiator) = keys.expect("a session that says something has keys");
        let length = seal_datagram(&header, &mut keys.seal(from_initiator, kind), &mut room, write);
        assert_eq!(length, Ok(room.len()), "a datagram has the length that its packet says");
        room
    }

    /// Opens a datagram with the keys of the session that it names, if that is there, and gives its room back. The bytes of a
    /// piece are those that its stream has there.
    ///
    /// # Panics
    /// If anything is not as it was sent: nothing changes datagrams under way.
    pub(crate) fn open(
        &mut self,
        flow: u32,
        keys: &dyn Fn(SessionId) -> Option<(InsecureKeys, bool)>,
        mut datagram: Vec<u8>,
    ) -> (Option<Packet>, Vec<u8>) {
        let Ok(header) = Header::read(&mut Reader::new(&datagram)) else {
            return (Some(Packet::Handshake(datagram)), Vec::new());
        };
        let Header { kind, session, number } = header;
        let Some((keys, from_initiator)) = keys(session) else { return (None, datagram) };
        let mut body = open_datagram(&header, &mut keys.seal(from_initiator, kind), &mut datagram)
            .expect("a datagram that was sealed opens");
        let packet = match kind {
            Kind::Control => {
                let frames = body.rest().to_vec();
                Packet::Control(ControlPacket { session, number, frames })
            }
            Kind::Data => {
                let piece = Piece::read(&mut body).expect("a piece that was written is read");
                let Piece { stamp_us, stream, offset, bytes } = piece;
                let length = u32::try_from(bytes.len()).expect("a datagram is small");
                fill(&mut self.bytes, flow, stream, offset, length);
                assert!(self.bytes == bytes, "the bytes of a stream are those that were sent");
                Packet::Data(DataPacket { session, number, stamp_us, piece: PieceAt { stream, length, offset } })
            }
        };
        (Some(packet), datagram)
    }
}

/// What a stream holds: every byte is a function of its flow, stream and offset.
fn fill(bytes: &mut Vec<u8>, flow: u32, stream: u32, offset: u64, length: u32) {
    let skipped = (offset % 8) as usize;
    let end = skipped + length as usize;
    // Whole words; what was there before is written over.
    bytes.resize(end.next_multiple_of(8), 0);
    let salt = (u64::from(flow) << 32 | u64::from(stream)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, _) = bytes.as_chunks_mut();
    for (place, word) in words.iter_mut().zip(offset / 8..) {
        let mixed = (word ^ salt).wrapping_mul(0xd6e8_feb8_6659_fd93);
        *place = (mixed ^ mixed >> 32).to_le_bytes();
    }
    bytes.truncate(end);
    bytes.drain(..skipped);
}
