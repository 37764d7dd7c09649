//! The start of every packet, in the clear.

use fairwave_node::SessionId;

use super::{DecodeError, Full, Reader, VERSION, Writer};

/// The clear part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of its body.
    pub kind: PacketKind,
    /// The session, as its receiver names it.
    pub session: SessionId,
    /// Its number: one more for each packet of this direction and kind, never used again. A packet that carries the
    /// same data again has a new number.
    pub number: u64,
}

/// The kind of a packet's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A piece of a stream.
    Data,
    /// Frames.
    Control,
}

/// Bytes of a header.
pub const HEADER_BYTES: usize = 17;

impl Header {
    /// Reads the clear part of a packet.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let first = reader.u8("the header")?;
        let version = first >> 4;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let kind = match first & 0xf {
            DATA => PacketKind::Data,
            CONTROL => PacketKind::Control,
            kind => return Err(DecodeError::Kind { what: "packet", kind }),
        };
        let session = SessionId(reader.u64("the session id")?);
        Ok(Self { kind, session, number: reader.u64("the packet number")? })
    }

    /// Writes it.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let kind = match self.kind {
            PacketKind::Data => DATA,
            PacketKind::Control => CONTROL,
        };
        writer.whole(|writer| {
            writer.u8(VERSION << 4 | kind)?;
            writer.u64(self.session.0)?;
            writer.u64(self.number)
        })
    }
}

/// Kinds below are for the handshake, which has other headers.
const DATA: u8 = 8;
const CONTROL: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__what_was_written() {
        for kind in [PacketKind::Data, PacketKind::Control] {
            let header = Header { kind, session: SessionId(0x0102_0304_0506_0708), number: 9 };
            let mut bytes = [0; HEADER_BYTES];
            header.write(&mut Writer::new(&mut bytes)).unwrap();
            assert_eq!(Header::read(&mut Reader::new(&bytes)), Ok(header));
            for length in 0..HEADER_BYTES {
                assert!(matches!(Header::read(&mut Reader::new(&bytes[..length])), Err(DecodeError::Short(_))));
                assert_eq!(header.write(&mut Writer::new(&mut [0; HEADER_BYTES][..length])), Err(Full));
            }
        }
    }

    #[test]
    fn read__refuses_other_versions_and_kinds() {
        let mut bytes = [(VERSION + 1) << 4 | 8; HEADER_BYTES];
        assert_eq!(Header::read(&mut Reader::new(&bytes)), Err(DecodeError::Version(VERSION + 1)));
        bytes[0] = VERSION << 4 | 0xa;
        assert_eq!(Header::read(&mut Reader::new(&bytes)), Err(DecodeError::Kind { what: "packet", kind: 10 }));
    }
}
