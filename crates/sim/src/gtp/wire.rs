//! A GTP packet on the wire: from a host's value to a sealed datagram and back, framed as by real hosts.

use fairwave_proto::codec::{Header, PacketKind, Reader, SessionId};
use fairwave_proto::handshake::insecure::InsecureKeys;
use fairwave_proto::{ControlPacket, DataPacket, Packet, PieceAt};

/// Writes and reads the datagrams of all sessions.
#[derive(Debug, Default)]
pub(crate) struct DatagramCodec {
    /// Buffer for the bytes of a piece.
    bytes: Vec<u8>,
}

impl DatagramCodec {
    /// Turns a packet of flow `flow` into a datagram, in `room`, with the keys of its session; `is_initiator` is true
    /// for the sink.
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
            // Already a datagram.
            Packet::Handshake(datagram) => {
                room.copy_from_slice(datagram);
                return room;
            }
        };
        assert_eq!(length, Ok(room.len()), "a datagram has the length that its packet says");
        room
    }

    /// Opens a datagram with the keys of its session, if that exists, and returns its buffer. The bytes of a piece must
    /// be those of its stream.
    ///
    /// # Panics
    /// If anything differs from the packet as sent: nothing changes datagrams in flight.
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

/// Contents of a stream: every byte is a function of its flow, stream and offset.
fn fill(bytes: &mut Vec<u8>, flow: u32, stream: u32, offset: u64, length: u32) {
    let skipped = (offset % 8) as usize;
    let end = skipped + length as usize;
    // Whole words, which overwrite all earlier contents.
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
