//! The reset of a session whose other end has lost its state.

use std::fmt;

use super::{DecodeError, Full, HEADER_BYTES, Header, PacketKind, Reader, SessionId, TAG_BYTES, Writer};

/// A value that a responder gives to an initiator under seal, so that it can later, without any key of the session,
/// report that it does not know the session: a stateless reset (RFC 9000 s10.3). Only the holder of the responder's own
/// key can derive it again from the session's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Stands in the header of a reset where another packet has the session's name at the initiator, which the
    /// responder has forgotten. By it the initiator finds the session.
    pub id: SessionId,
    /// The last bytes of a reset: they prove it.
    pub token: Token,
}

/// Proof of a reset.
pub type Token = [u8; TOKEN_BYTES];

/// Bytes of a token.
pub(crate) const TOKEN_BYTES: usize = 16;
/// Bytes between the header and the token at least: RFC 9000 s10.3 has as many in front of the token that nobody
/// can foretell.
const MIN_PADDING: usize = 5;
/// Bytes of a reset at least. A packet that is no longer than this gets none.
pub(crate) const MIN_RESET_BYTES: usize = HEADER_BYTES + MIN_PADDING + TOKEN_BYTES;
/// Bytes of a reset at most: as many as control packets have that say little.
pub(crate) const MAX_RESET_BYTES: usize = 80;

// RFC 9000 s10.3: the token takes the place of the tag, so that a reset looks like any other packet.
const _: () = assert!(TOKEN_BYTES == TAG_BYTES);

impl Reset {
    /// Reads the reset of an answer.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = SessionId(reader.u64("the reset's id")?);
        let mut token = Token::default();
        for place in &mut token {
            *place = reader.u8("the reset's token")?;
        }
        Ok(Self { id, token })
    }

    /// Writes it.
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.u64(self.id.0)?;
        writer.bytes(&self.token)
    }

    /// The datagram that answers a packet with this header and `bytes` bytes: a control packet by its header, then
    /// random bytes, then the token. It is smaller than what it answers, so that two ends that do not know each other
    /// fall silent, and a spoofed source address is sent no more than came in its name (RFC 9000 s10.3.3). `None` if
    /// that is not possible.
    pub fn answer(&self, to: &Header, bytes: usize, mut random: impl FnMut() -> u64) -> Option<Vec<u8>> {
        let most = bytes.checked_sub(1)?.min(MAX_RESET_BYTES);
        let choices = most.checked_sub(MIN_RESET_BYTES)?.checked_add(1)?;
        let more = usize::try_from(random().checked_rem(u64::try_from(choices).ok()?)?).ok()?;
        let mut datagram = vec![0; MIN_RESET_BYTES.checked_add(more)?];
        // A number that this direction may have come to: the other one has come so far.
        let header = Header { kind: PacketKind::Control, session: self.id, number: to.number };
        header.write(&mut Writer::new(&mut datagram)).ok()?;
        let (rest, token) = datagram.get_mut(HEADER_BYTES..)?.split_last_chunk_mut::<TOKEN_BYTES>()?;
        *token = self.token;
        for places in rest.chunks_mut(8) {
            places.iter_mut().zip(random().to_be_bytes()).for_each(|(place, byte)| *place = byte);
        }
        Some(datagram)
    }

    /// Whether a datagram ends in the token. That takes as long wherever they differ (RFC 9000 s10.3.1).
    pub fn is_shown(&self, datagram: &[u8]) -> bool {
        datagram.len() >= MIN_RESET_BYTES
            && datagram.last_chunk::<TOKEN_BYTES>().is_some_and(|last| {
                last.iter().zip(&self.token).fold(0, |differences, (one, other)| differences | (one ^ other)) == 0
            })
    }
}

impl fmt::Debug for Reset {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reset({:?})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RESET: Reset = Reset { id: SessionId(5), token: [7; TOKEN_BYTES] };
    const HEADER: Header = Header { kind: PacketKind::Data, session: SessionId(9), number: 1 << 20 };

    #[test]
    fn answer__to_the_smallest_packets_there_is_none() {
        for bytes in 0..=MIN_RESET_BYTES {
            assert_eq!(RESET.answer(&HEADER, bytes, || 3), None, "{bytes} bytes");
        }
        let least = RESET.answer(&HEADER, MIN_RESET_BYTES + 1, || 3).unwrap();
        assert_eq!(least.len(), MIN_RESET_BYTES);
    }

    #[test]
    fn debug__does_not_show_the_token() {
        assert_eq!(format!("{RESET:?}"), "Reset(SessionId(5))");
    }

    proptest! {
        /// It is smaller than what it answers, reads as a control packet, and only its id and its token are not random.
        #[test]
        fn answer__is_smaller_and_looks_like_a_packet(bytes in MIN_RESET_BYTES + 1..2000, seed: u64) {
            let mut draw = seed;
            let mut random = || { draw = super::super::mixed(draw); draw };
            let datagram = RESET.answer(&HEADER, bytes, &mut random).unwrap();
            prop_assert!(datagram.len() < bytes && (MIN_RESET_BYTES..=MAX_RESET_BYTES).contains(&datagram.len()));
            let header = Header::read(&mut Reader::new(&datagram)).unwrap();
            prop_assert_eq!(header, Header { kind: PacketKind::Control, session: RESET.id, number: HEADER.number });
            prop_assert!(RESET.is_shown(&datagram));
            let again = RESET.answer(&HEADER, bytes, &mut random).unwrap();
            let padding = |datagram: &[u8]| datagram[HEADER_BYTES..HEADER_BYTES + MIN_PADDING].to_vec();
            prop_assert_ne!(padding(&datagram), padding(&again));
        }

        #[test]
        fn is_shown__by_all_bits_of_its_token_alone(bit in 0_usize..TOKEN_BYTES * 8, bytes in MIN_RESET_BYTES + 1..200) {
            let mut datagram = RESET.answer(&HEADER, bytes, || 3).unwrap();
            let at = datagram.len() - TOKEN_BYTES + bit / 8;
            datagram[at] ^= 1 << (bit % 8);
            prop_assert!(!RESET.is_shown(&datagram));
        }
    }
}
