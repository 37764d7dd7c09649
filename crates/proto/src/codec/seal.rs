//! Datagrams as they travel: a header in the clear, a body under seal.

use super::{DecodeError, Full, HEADER_BYTES, Header, Reader, Writer};

/// Closes and opens bodies with the key of one direction and kind. A host fills it with real keys.
pub trait Seal {
    /// Closes `body` in place: the tag that proves it, with the header and the packet number.
    fn close(&mut self, number: u64, header: &[u8], body: &mut [u8]) -> [u8; TAG_BYTES];

    /// Opens `body` in place if its tag proves it; else `body` is of no use.
    fn open(&mut self, number: u64, header: &[u8], body: &mut [u8], tag: &[u8; TAG_BYTES]) -> bool;
}

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// Writes a datagram into `room`: its header, the body that `write` writes, and the tag. Its length.
pub fn seal_datagram(
    header: &Header,
    seal: &mut impl Seal,
    room: &mut [u8],
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<usize, Full> {
    let (head, rest) = room.split_at_mut_checked(HEADER_BYTES).ok_or(Full)?;
    header.write(&mut Writer::new(head))?;
    let most = rest.len().checked_sub(TAG_BYTES).ok_or(Full)?;
    let mut writer = Writer::new(rest.get_mut(..most).ok_or(Full)?);
    write(&mut writer)?;
    let used = writer.used();
    let (body, rest) = rest.split_at_mut_checked(used).ok_or(Full)?;
    let tag = seal.close(header.number, head, body);
    rest.first_chunk_mut().map(|place| *place = tag).ok_or(Full)?;
    Ok(HEADER_BYTES.saturating_add(used).saturating_add(TAG_BYTES))
}

/// Opens the body of a datagram whose header has been read, to learn whose key it needs.
pub fn open_datagram<'a>(
    header: &Header,
    seal: &mut impl Seal,
    datagram: &'a mut [u8],
) -> Result<Reader<'a>, DecodeError> {
    let (head, rest) = datagram.split_at_mut_checked(HEADER_BYTES).ok_or(DecodeError::Short("the header"))?;
    let (body, tag) = rest.split_last_chunk_mut().ok_or(DecodeError::Short("the seal"))?;
    if seal.open(header.number, head, body, tag) { Ok(Reader::new(body)) } else { Err(DecodeError::Seal) }
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
        // Lanes side by side, so that no word waits for the one before it. Each step keeps what two different words make of
        // a lane apart, so that no change gets lost.
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
    fn close(&mut self, number: u64, header: &[u8], body: &mut [u8]) -> [u8; TAG_BYTES] {
        self.tag(number, header, body)
    }

    fn open(&mut self, number: u64, header: &[u8], body: &mut [u8], tag: &[u8; TAG_BYTES]) -> bool {
        self.tag(number, header, body) == *tag
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Kind, Piece, SessionId};
    use super::*;

    const HEADER: Header = Header { kind: Kind::Data, session: SessionId(5), number: 1 << 40 };

    fn datagram(bytes: &[u8]) -> Vec<u8> {
        let mut room = [0; 1500];
        let piece = Piece { stamp_us: 9, stream: 1, offset: 2, bytes };
        let length = seal_datagram(&HEADER, &mut Checksum::new(7), &mut room, |writer| piece.write(writer)).unwrap();
        room[..length].to_vec()
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
        // Header, piece, and the checksum of both in two halves.
        let expected = "28000000000000000500000100000000000000000900000001000000000000000268656c6c6f0519f198d5c4bccf1e64d5b64c3e596f";
        let text: String = datagram(b"hello").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn seal__needs_room_for_all_of_it() {
        let piece = Piece { stamp_us: 9, stream: 1, offset: 2, bytes: b"hello" };
        for length in 0..54 {
            let room = &mut vec![0; length];
            assert_eq!(seal_datagram(&HEADER, &mut Checksum::new(7), room, |writer| piece.write(writer)), Err(Full));
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
