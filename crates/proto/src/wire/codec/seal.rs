//! Datagrams as they travel: a header in the clear, a body under seal.

use super::{DecodeError, Full, HEADER_BYTES, Header, Reader, Writer};

/// Closes the bodies of datagrams with the key of one direction and kind. Hosts have ciphers and a MAC, simulations a
/// [`Checksum`].
pub trait Seal {
    /// Closes a body: its first `head` bytes are there, `rest` follows them from where it lies, and then the tag, which
    /// proves both with the header and the packet number. `body` has room for exactly that.
    fn close(&mut self, number: u64, header: &[u8], body: &mut [u8], head: usize, rest: &[u8]);
}

/// Opens what the [`Seal`] of the other end has closed.
pub trait Unseal {
    /// Opens a body in place, with its tag behind it: what was closed, if the tag proves it; else `body` is of no use.
    fn open<'a>(&mut self, number: u64, header: &[u8], body: &'a mut [u8]) -> Option<&'a mut [u8]>;
}

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// Writes a datagram into `room`: its header, then its body, which is what `write` writes and `rest`, and the tag. Its
/// length.
///
/// The rest is sealed from where it lies: no byte of it is copied before.
pub fn seal_datagram(
    header: &Header,
    seal: &mut impl Seal,
    room: &mut [u8],
    rest: &[u8],
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<usize, Full> {
    let (clear, sealed) = room.split_at_mut_checked(HEADER_BYTES).ok_or(Full)?;
    header.write(&mut Writer::new(clear))?;
    let mut writer = Writer::new(sealed);
    write(&mut writer)?;
    let head = writer.used();
    let length = head.saturating_add(rest.len()).saturating_add(TAG_BYTES);
    let body = sealed.get_mut(..length).ok_or(Full)?;
    seal.close(header.number, clear, body, head, rest);
    Ok(HEADER_BYTES.saturating_add(length))
}

/// Opens the body of a datagram whose header has been read, to learn whose key it needs.
pub fn open_datagram<'a>(
    header: &Header,
    seal: &mut impl Unseal,
    datagram: &'a mut [u8],
) -> Result<Reader<'a>, DecodeError> {
    let (clear, body) = datagram.split_at_mut_checked(HEADER_BYTES).ok_or(DecodeError::Short("the header"))?;
    if body.len() < TAG_BYTES {
        return Err(DecodeError::Short("the seal"));
    }
    let body = seal.open(header.number, clear, body).ok_or(DecodeError::Seal)?;
    Ok(Reader::new(body))
}

/// A seal for simulations: it finds what changed by accident, and hides nothing.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    key: u64,
}

impl Checksum {
    /// With a key: another's packets do not open.
    pub fn new(key: u64) -> Self {
        Self { key }
    }

    pub(crate) fn tag(self, number: u64, header: &[u8], body: &[u8]) -> [u8; TAG_BYTES] {
        // Lanes side by side, so that no word waits for the one before it. Each step keeps what two different words
        // make of a lane apart, so that no change gets lost.
        let first = mixed(self.key ^ mixed(number));
        let mut lanes = [first, !first, first.rotate_left(16), !first.rotate_left(32)];
        for bytes in [header, body] {
            let (rows, rest) = bytes.as_chunks::<32>();
            for row in rows {
                let (words, _) = row.as_chunks();
                for (lane, word) in lanes.iter_mut().zip(words) {
                    *lane = step(*lane, *word);
                }
            }
            for (lane, chunk) in lanes.iter_mut().zip(rest.chunks(8)) {
                let mut word = [0; 8];
                word.iter_mut().zip(chunk).for_each(|(place, byte)| *place = *byte);
                *lane = step(*lane, word);
            }
            for lane in &mut lanes {
                *lane = mixed(*lane ^ bytes.len() as u64);
            }
        }
        let sum = lanes.into_iter().fold(0, |sum, lane| mixed(sum ^ lane));
        let mut tag = [0; TAG_BYTES];
        for (half, sum) in tag.chunks_mut(8).zip([sum, mixed(!sum)]) {
            half.copy_from_slice(&sum.to_le_bytes());
        }
        tag
    }
}

/// Takes a word into a lane: one to one in either.
fn step(lane: u64, word: [u8; 8]) -> u64 {
    let mixed = (lane ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// A finaliser that spreads every bit over all (Steele, Lea & Flood 2014, SplitMix64).
pub(crate) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

impl Seal for Checksum {
    fn close(&mut self, number: u64, header: &[u8], body: &mut [u8], head: usize, rest: &[u8]) {
        let Some((text, tag)) = body.split_last_chunk_mut() else { return };
        if let Some(place) = text.get_mut(head..) {
            place.copy_from_slice(rest);
        }
        *tag = self.tag(number, header, text);
    }
}

impl Unseal for Checksum {
    fn open<'a>(&mut self, number: u64, header: &[u8], body: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (text, tag) = body.split_last_chunk_mut()?;
        (self.tag(number, header, text) == *tag).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{PacketKind, Piece, SessionId};
    use super::*;

    const HEADER: Header = Header { kind: PacketKind::Data, session: SessionId(5), number: 1 << 40 };

    fn datagram(bytes: &[u8]) -> Vec<u8> {
        let mut room = [0; 1500];
        let piece = Piece { stamp_us: 9, stream: 1, offset: 2, bytes };
        let written = |writer: &mut Writer<'_>| piece.write(writer);
        let length = seal_datagram(&HEADER, &mut Checksum::new(7), &mut room, &[], written).unwrap();
        let whole = room[..length].to_vec();
        // Seals the piece's bytes from their own place.
        let front = |writer: &mut Writer<'_>| Piece { bytes: &[], ..piece }.write(writer);
        let length = seal_datagram(&HEADER, &mut Checksum::new(7), &mut room, bytes, front).unwrap();
        assert_eq!(whole, room[..length]);
        whole
    }

    #[test]
    fn datagram__opens_with_its_key_alone() {
        let mut datagram = datagram(b"hello");
        // 17 of header, 16 + 5 of piece, 16 of tag.
        assert_eq!(datagram.len(), 54);
        let header = Header::read(&mut Reader::new(&datagram)).unwrap();
        assert_eq!(header, HEADER);
        assert_eq!(open_datagram(&header, &mut Checksum::new(8), &mut datagram).err(), Some(DecodeError::Seal));
        let mut body = open_datagram(&header, &mut Checksum::new(7), &mut datagram).unwrap();
        assert_eq!(Piece::read(&mut body), Ok(Piece { stamp_us: 9, stream: 1, offset: 2, bytes: b"hello" }));
    }

    #[test]
    fn datagram__is_the_one_on_record() {
        let datagram = datagram(b"hello");
        assert_eq!(datagram[..17], *b"\x28\0\0\0\0\0\0\0\x05\0\0\x01\0\0\0\0\0", "the header");
        assert_eq!(datagram[17..38], *b"\0\0\0\x09\0\0\0\x01\0\0\0\0\0\0\0\x02hello", "the piece");
        assert_eq!(datagram[38..], 0x0519_f198_d5c4_bccf_1e64_d5b6_4c3e_596f_u128.to_be_bytes(), "the checksum");
    }

    #[test]
    fn seal__needs_room_for_all_of_it() {
        let piece = Piece { stamp_us: 9, stream: 1, offset: 2, bytes: b"hello" };
        for length in 0..54 {
            let (room, seal) = (&mut vec![0; length], &mut Checksum::new(7));
            assert_eq!(seal_datagram(&HEADER, seal, room, &[], |writer| piece.write(writer)), Err(Full));
            assert_eq!(seal_datagram(&HEADER, seal, room, &[7; 21], |_| Ok(())), Err(Full));
        }
    }

    proptest! {
        /// A bit that changes anywhere is found; so is an end that was cut off.
        #[test]
        fn open__finds_every_changed_bit(at in 0_usize..54 * 8, cut in 0_usize..54) {
            let mut changed = datagram(b"hello");
            changed[at / 8] ^= 1 << (at % 8);
            let opened = Header::read(&mut Reader::new(&changed.clone()))
                .and_then(|header| open_datagram(&header, &mut Checksum::new(7), &mut changed).map(|_| ()));
            prop_assert!(opened.is_err());
            let mut short = datagram(b"hello")[..cut].to_vec();
            let opened = Header::read(&mut Reader::new(&short.clone()))
                .and_then(|header| open_datagram(&header, &mut Checksum::new(7), &mut short).map(|_| ()));
            prop_assert!(opened.is_err());
        }
    }
}
