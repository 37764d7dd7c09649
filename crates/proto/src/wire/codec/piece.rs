//! The body of a data packet.

use super::{DecodeError, Full, Reader, Writer};

/// A piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// When it was sent, by the source's clock in microseconds, of which the lowest 32 bits travel. The sink measures
    /// rates by it and echoes it.
    pub stamp_us: u32,
    /// The stream.
    pub stream: u32,
    /// Offset in the stream, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Bytes of a piece in front of its data: always the same, so that packets of full pieces are of one size.
pub const PIECE_BYTES: usize = 16;

impl<'a> Piece<'a> {
    /// Reads the whole body of a data packet. A piece has at least one byte, and ends below 2^62.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let stamp_us = reader.u32("the stamp")?;
        let stream = reader.u32("the stream")?;
        let offset = reader.u64("the offset")?;
        let rest = reader.rest();
        let bytes = reader.bytes(rest.len(), "the data")?;
        if bytes.is_empty() {
            return Err(DecodeError::Short("the data"));
        }
        let end = offset.checked_add(bytes.len() as u64);
        end.filter(|end| *end <= super::writer::MAX_VARINT).ok_or(DecodeError::Range("the end of the data"))?;
        Ok(Self { stamp_us, stream, offset, bytes })
    }

    /// Writes it.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.whole(|writer| {
            writer.u32(self.stamp_us)?;
            writer.u32(self.stream)?;
            writer.u64(self.offset)?;
            writer.bytes(self.bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn read__what_was_written(
            stamp_us in any::<u32>(),
            stream in any::<u32>(),
            offset in 0_u64..1 << 61,
            bytes in proptest::collection::vec(any::<u8>(), 1..100),
        ) {
            let piece = Piece { stamp_us, stream, offset, bytes: &bytes };
            let mut room = [0; 200];
            let mut writer = Writer::new(&mut room);
            piece.write(&mut writer).unwrap();
            let used = writer.used();
            prop_assert_eq!(Piece::read(&mut Reader::new(&room[..used])), Ok(piece));
        }
    }

    #[test]
    fn read__refuses_nothing_and_too_much() {
        let mut room = [0; 32];
        let mut writer = Writer::new(&mut room);
        Piece { stamp_us: 1, stream: 0, offset: 3, bytes: &[] }.write(&mut writer).unwrap();
        assert_eq!(Piece::read(&mut Reader::new(&room[..PIECE_BYTES])), Err(DecodeError::Short("the data")));
        let mut writer = Writer::new(&mut room);
        Piece { stamp_us: 1, stream: 0, offset: (1 << 62) - 2, bytes: &[7, 7] }.write(&mut writer).unwrap();
        let used = writer.used();
        assert_eq!(Piece::read(&mut Reader::new(&room[..used])), Err(DecodeError::Range("the end of the data")));
    }
}
