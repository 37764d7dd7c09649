//! Sealed contents of the handshake's packets.
//!
//! ```text
//! offer   = 1, session id (8), flags (1), largest packet (varint), share of what the initiator sends (varint, if known),
//!           share of what it receives (varint, if known), greeting up to the end
//! flags   = 1: the initiator sends, 2: it receives, 4: the first share is known, 8: the second, 16: it declares the path
//!           dedicated; the flag in the prologue declares that it also knows its capacity
//! answer  = 3, session id (8), flags (1), largest packet (varint), rate to start with of what the initiator sends
//!           (varint, if any), of what it receives (varint, if any), reset's id (8) and token (16), if
//!           any, features (1), if any: as in a hello, of the responder; the first claim of its source
//!           and the first grant of its sink (varints, both or neither)
//! flags   = 1: dedicated, 2: there is a reset, 4: there is the first rate, 8: the second, 16: the responder declares the
//!           path dedicated, 32: and does not know its capacity
//! refused = 4, reason (1)
//! ```

use thiserror::Error;

use super::handshake::{HELLO, REFUSAL, REPLY};
use super::{Ahead, DecodeError, Full, Reader, Reset, SessionId, Writer};
use crate::path::path_kind::PathDeclaration;
use crate::wire::features::Features;

/// Bytes of a greeting at most.
pub const MAX_GREETING_BYTES: usize = 544;

const SENDS: u8 = 1;
const RECEIVES: u8 = 2;
const DEDICATED: u8 = 1;
const RESET: u8 = 2;
const SEND_RATE: u8 = 4;
const RECEIVE_RATE: u8 = 8;
const SAYS_DEDICATED: u8 = 16;
const WITHOUT_CAPACITY: u8 = 32;

/// An initiator's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Its name for the session.
    pub session: SessionId,
    /// Whether it will send.
    pub sends: bool,
    /// Whether it will receive. At least one is so.
    pub receives: bool,
    /// The largest datagram that it takes, in bytes.
    pub largest_packet: u64,
    /// Its share of its capacity for sending, bit/s.
    pub send_bps: Option<u64>,
    /// And for what it receives.
    pub receive_bps: Option<u64>,
    /// Whether it declares the path dedicated, even if it does not know its capacity.
    pub says_dedicated: bool,
    /// Message for the application at the other end, at most [`MAX_GREETING_BYTES`] bytes.
    pub greeting: &'a [u8],
}

/// A responder's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its name for the session.
    pub session: SessionId,
    /// Whether both say that the path is dedicated.
    pub is_dedicated: bool,
    /// The responder's declaration about the path.
    pub declared: PathDeclaration,
    /// The largest datagram that both take.
    pub largest_packet: u64,
    /// The rate to start with of what the *initiator* sends, bit/s.
    pub send_bps: Option<u64>,
    /// And of what it receives.
    pub receive_bps: Option<u64>,
    /// The reset that a responder sends once it no longer knows the session.
    pub reset: Option<Reset>,
    /// The responder's features.
    pub features: Features,
    /// The first claim and grant of its end nodes.
    pub ahead: Ahead,
}

/// Why a session was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The ticket has expired.
    #[error("the ticket has expired")]
    Expired,
    /// The ticket was for one use.
    #[error("the ticket has already been used")]
    UsedUp,
    /// The greeting names something that does not exist.
    #[error("unknown share")]
    UnknownName,
    /// There are too many sessions.
    #[error("the host has reached its maximum number of sessions")]
    NoRoom,
    /// Only one end asks for data without secrecy.
    #[error("only one end uses --plain")]
    Plain,
    /// The ticket is not for this direction.
    #[error("the ticket does not allow this direction")]
    Direction,
    /// The ticket was taken back.
    #[error("the ticket has been revoked")]
    Revoked,
    /// The ticket is for something else than what the greeting asks for: for files, and not for a bench, or the other
    /// way round.
    #[error("the ticket is for another purpose")]
    Purpose,
    /// The ticket is for one transfer, and another peer's is under way, or may come back.
    #[error("the ticket is for one transfer, and another transfer is using it")]
    InUse,
}

const REFUSALS: [Refusal; 9] = [
    Refusal::Expired,
    Refusal::UsedUp,
    Refusal::UnknownName,
    Refusal::NoRoom,
    Refusal::Plain,
    Refusal::Direction,
    Refusal::Revoked,
    Refusal::Purpose,
    Refusal::InUse,
];

impl<'a> Offer<'a> {
    /// Reads the payload of a hello.
    pub fn read(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = begin(payload, HELLO)?;
        let session = SessionId(reader.u64("the session id")?);
        let flags = reader.u8("the flags")?;
        let (sends, receives) = (flags & SENDS != 0, flags & RECEIVES != 0);
        if flags & !(SENDS | RECEIVES | SEND_RATE | RECEIVE_RATE | SAYS_DEDICATED) != 0 || !(sends || receives) {
            return Err(DecodeError::Range("the flags"));
        }
        let largest_packet = reader.varint("the largest packet")?;
        let [send_bps, receive_bps] = rates(&mut reader, flags)?;
        let greeting = reader.rest();
        if greeting.len() > MAX_GREETING_BYTES {
            return Err(DecodeError::Range("the greeting"));
        }
        let says_dedicated = flags & SAYS_DEDICATED != 0;
        Ok(Self { session, sends, receives, largest_packet, send_bps, receive_bps, says_dedicated, greeting })
    }

    /// Writes it.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        if self.greeting.len() > MAX_GREETING_BYTES {
            return Err(Full);
        }
        let directions = (if self.sends { SENDS } else { 0 }) | (if self.receives { RECEIVES } else { 0 });
        let flags = directions | (if self.says_dedicated { SAYS_DEDICATED } else { 0 });
        writer.whole(|writer| {
            writer.u8(HELLO)?;
            writer.u64(self.session.0)?;
            write_rates(writer, flags, self.largest_packet, [self.send_bps, self.receive_bps])?;
            writer.bytes(self.greeting)
        })
    }
}

impl Answer {
    /// Reads the payload of a reply.
    pub fn read(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = begin(payload, REPLY)?;
        let session = SessionId(reader.u64("the session id")?);
        let flags = reader.u8("the flags")?;
        let known = DEDICATED | RESET | SEND_RATE | RECEIVE_RATE | SAYS_DEDICATED | WITHOUT_CAPACITY;
        let declared = match (flags & SAYS_DEDICATED != 0, flags & WITHOUT_CAPACITY != 0) {
            (false, false) => PathDeclaration::Shared,
            (true, false) => PathDeclaration::Dedicated,
            (true, true) => PathDeclaration::WithoutCapacity,
            (false, true) => return Err(DecodeError::Range("the flags")),
        };
        let is_dedicated = flags & DEDICATED != 0;
        if flags & !known != 0 || (is_dedicated && declared != PathDeclaration::Dedicated) {
            return Err(DecodeError::Range("the flags"));
        }
        let largest_packet = reader.varint("the largest packet")?;
        let [send_bps, receive_bps] = rates(&mut reader, flags)?;
        let reset = (flags & RESET != 0).then(|| Reset::read(&mut reader)).transpose()?;
        // Versions without features stop here, and a responder with no features sends none.
        let features = reader.u8("the features").map(Features::from_byte).unwrap_or_default();
        let ahead = Ahead::read(&mut reader);
        Ok(Self { session, is_dedicated, declared, largest_packet, send_bps, receive_bps, reset, features, ahead })
    }

    /// Writes it.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let declared = match self.declared {
            PathDeclaration::Shared => 0,
            PathDeclaration::Dedicated => SAYS_DEDICATED,
            PathDeclaration::WithoutCapacity => SAYS_DEDICATED | WITHOUT_CAPACITY,
        };
        let flags =
            declared | if self.is_dedicated { DEDICATED } else { 0 } | if self.reset.is_some() { RESET } else { 0 };
        writer.whole(|writer| {
            writer.u8(REPLY)?;
            writer.u64(self.session.0)?;
            write_rates(writer, flags, self.largest_packet, [self.send_bps, self.receive_bps])?;
            self.reset.map_or(Ok(()), |reset| reset.write(writer))?;
            if (self.features, self.ahead) == (Features::default(), Ahead::default()) {
                return Ok(());
            }
            writer.u8(self.features.byte())?;
            self.ahead.write(writer)
        })
    }
}

impl Refusal {
    /// Reads the payload of a refusal.
    pub fn read(payload: &[u8]) -> Result<Self, DecodeError> {
        let reason = begin(payload, REFUSAL)?.u8("the reason")?;
        Self::from_number(reason).ok_or(DecodeError::Range("the reason"))
    }

    /// Writes it.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.whole(|writer| {
            writer.u8(REFUSAL)?;
            writer.u8(self.number())
        })
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        REFUSALS.get(usize::from(number)).copied()
    }

    pub(super) fn number(self) -> u8 {
        REFUSALS.iter().position(|refusal| *refusal == self).unwrap_or(0) as u8
    }
}

/// A payload holds its kind: the packet's own kind is not under seal.
fn begin(payload: &[u8], expected: u8) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(payload);
    match reader.u8("the payload")? {
        kind if kind == expected => Ok(reader),
        kind => Err(DecodeError::Kind { what: "payload", kind }),
    }
}

fn rates(reader: &mut Reader<'_>, flags: u8) -> Result<[Option<u64>; 2], DecodeError> {
    let mut rate = |flag| (flags & flag != 0).then(|| reader.varint("a rate")).transpose();
    Ok([rate(SEND_RATE)?, rate(RECEIVE_RATE)?])
}

fn write_rates(
    writer: &mut Writer<'_>,
    flags: u8,
    largest_packet: u64,
    [send, receive]: [Option<u64>; 2],
) -> Result<(), Full> {
    let send_flag = if send.is_some() { SEND_RATE } else { 0 };
    let receive_flag = if receive.is_some() { RECEIVE_RATE } else { 0 };
    writer.u8(flags | send_flag | receive_flag)?;
    writer.varint(largest_packet)?;
    [send, receive].into_iter().flatten().try_for_each(|rate| writer.varint(rate))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
        let mut room = vec![0; 1000];
        let mut writer = Writer::new(&mut room);
        write(&mut writer).unwrap();
        let used = writer.used();
        room.truncate(used);
        room
    }

    #[test]
    fn refusal__is_read_as_it_was_written() {
        for refusal in REFUSALS {
            assert_eq!(Refusal::read(&written(|writer| refusal.write(writer))), Ok(refusal));
        }
        assert_eq!(Refusal::read(&[REFUSAL, REFUSALS.len() as u8]), Err(DecodeError::Range("the reason")));
    }

    #[test]
    fn read__takes_no_payload_for_another() {
        let refusal = written(|writer| Refusal::Expired.write(writer));
        assert_eq!(Answer::read(&refusal), Err(DecodeError::Kind { what: "payload", kind: REFUSAL }));
        assert_eq!(Offer::read(&refusal), Err(DecodeError::Kind { what: "payload", kind: REFUSAL }));
    }

    #[test]
    fn offer__has_a_direction_and_a_short_greeting() {
        let mut offer = Offer {
            session: SessionId(1),
            sends: false,
            receives: false,
            largest_packet: 1200,
            send_bps: None,
            receive_bps: None,
            says_dedicated: false,
            greeting: &[0; MAX_GREETING_BYTES + 1],
        };
        assert_eq!(offer.write(&mut Writer::new(&mut [0; 1000])), Err(Full));
        offer.greeting = &[];
        assert_eq!(Offer::read(&written(|writer| offer.write(writer))), Err(DecodeError::Range("the flags")));
    }

    proptest! {
        #[test]
        fn terms__are_read_as_they_were_written(
            id: u64,
            sends: bool,
            says_dedicated: bool,
            declaration in 0..4_usize,
            largest_packet in 0_u64..1 << 62,
            send_bps in proptest::option::of(0_u64..1 << 62),
            receive_bps in proptest::option::of(0_u64..1 << 62),
            reset in proptest::option::of(any::<(u64, [u8; 16])>()),
            features in 0_u8..4,
            (claim_bps, promise_bps) in (0_u64..1 << 62, 0_u64..1 << 62),
            greeting in proptest::collection::vec(any::<u8>(), 0..=MAX_GREETING_BYTES),
        ) {
            let session = SessionId(id);
            let offer = Offer { session, sends, receives: !sends, largest_packet, send_bps, receive_bps, says_dedicated, greeting: &greeting };
            let bytes = written(|writer| offer.write(writer));
            prop_assert_eq!(Offer::read(&bytes), Ok(offer));
            let reset = reset.map(|(id, token)| Reset { id: SessionId(id), token });
            let dedicated = PathDeclaration::Dedicated;
            let declared = [PathDeclaration::Shared, PathDeclaration::WithoutCapacity, dedicated, dedicated];
            let (is_dedicated, declared) = (declaration == 3, declared[declaration]);
            let features = Features::from_byte(features);
            let ahead = Ahead::default();
            let answer = Answer { session, is_dedicated, declared, largest_packet, send_bps, receive_bps, reset, features, ahead };
            let bytes = written(|writer| answer.write(writer));
            prop_assert_eq!(Answer::read(&bytes), Ok(answer));
            // An end that knows of no features reads all but the last byte, and understands it.
            let old = bytes.len() - usize::from(features != Features::default());
            prop_assert_eq!(Answer::read(&bytes[..old]), Ok(Answer { features: Features::default(), ..answer }));
            for length in 0..old {
                prop_assert!(Answer::read(&bytes[..length]).is_err());
            }
            // One that knows of nothing ahead stops where the features end.
            let ahead = Answer { ahead: Ahead { claim_bps, promise_bps }, ..answer };
            let longer = written(|writer| ahead.write(writer));
            prop_assert_eq!(Answer::read(&longer), Ok(ahead));
            prop_assert_eq!(&longer[..old], &bytes[..old]);
        }

        /// No panic.
        #[test]
        fn terms__of_anything(kind in 0_u8..6, mut payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            payload.insert(0, kind);
            let _ = (Offer::read(&payload), Answer::read(&payload), Refusal::read(&payload));
        }
    }
}
