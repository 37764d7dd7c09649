//! The way of a GTP packet over a wire: from what a host gives to a sealed datagram and back, framed as real hosts
//! frame it.

use fairwave_proto::codec::{Header, PacketKind, Reader, SessionId};
use fairwave_proto::handshake::insecure::InsecureKeys;
use fairwave_proto::{ControlPacket, DataPacket, Packet, PieceAt};

/// Writes and reads the datagrams of all sessions.
#[derive(Debug, Default)]
pub(crate) struct DatagramCodec {
    /// Room for the bytes of a piece.
    bytes: Vec<u8>,
}

impl DatagramCodec {
    /// Makes a packet of flow `flow` a datagram, in `room`, with the keys of its session and whether its initiator, the
    /// sink, sends it.
    pub(crate) fn seal(
        &mut self,
        flow: u32,
        keys: Option<(InsecureKeys, bool)>,
        packet: &Packet,
        mut room: Vec<u8>,
    ) -> Vec<u8> {
        let seal = |kind| {
            let (keys, from_initiator) = keys.expect("a session that says something has keys");
            keys.seal(from_initiator, kind)
        };
        room.resize(packet.datagram_bytes() as usize, 0);
        let length = match packet {
            Packet::Data(data) => {
                let PieceAt { stream, offset, length } = data.piece;
                fill(&mut self.bytes, flow, stream, offset, length);
                data.seal(&mut seal(PacketKind::Data), &mut room, &self.bytes)
            }
            Packet::Control(control) => control.seal(&mut seal(PacketKind::Control), &mut room),
            // Ready as it is.
            Packet::Handshake(datagram) => {
                room.copy_from_slice(datagram);
                return room;
            }
        };
        assert_eq!(length, Ok(room.len()), "a datagram has the length that its packet says");
        room
    }

    /// Opens a datagram with the keys of the session that it names, if that is there, and gives its room back. The
    /// bytes of a piece are those that its stream has there.
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
        let Some((keys, from_initiator)) = keys(header.session) else { return (None, datagram) };
        let seal = &mut keys.seal(from_initiator, header.kind);
        let packet = match header.kind {
            PacketKind::Control => {
                let control = ControlPacket::open(&header, seal, &mut datagram);
                Packet::Control(control.expect("a datagram that was sealed opens"))
            }
            PacketKind::Data => {
                let opened = DataPacket::open(&header, seal, &mut datagram);
                let (data, bytes) = opened.expect("a datagram that was sealed opens");
                let PieceAt { stream, offset, length } = data.piece;
                fill(&mut self.bytes, flow, stream, offset, length);
                assert!(self.bytes == bytes, "the bytes of a stream are those that were sent");
                Packet::Data(data)
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
