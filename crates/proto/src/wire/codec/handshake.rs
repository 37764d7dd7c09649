//! The packets that open a session.
//!
//! ```text
//! hello    = version (4 bits), 1 (4 bits), suite (1), flags (1), ticket id (8), cookie (16), length (2), Noise message,
//!            features (1), zeros up to 1184 bytes, MAC of all that (16): always 1200 bytes. A first hello has random bytes in place of
//!            the cookie, and no Noise message
//! cookie   = version, 2, MAC of the hello (16), cookie (16)
//! reply    = version, 3, MAC of the hello (16), Noise message up to the end
//! refusal  = version, 4, MAC of the hello (16), Noise message up to the end
//! flags    = 1: plain, 2: dedicated
//! features = 1: the initiator sends claims as a source, 2: it sends grants as a sink; an initiator without features
//!            sends a zero, and a responder that does not read them sees padding
//! prologue = the first 27 bytes of the hello
//! ```

use super::{DecodeError, Full, Reader, VERSION, Writer};
use crate::wire::features::Features;

/// Bytes of a hello: so many that no answer has more.
pub const HELLO_BYTES: usize = 1200;
/// Bytes of a MAC, and of a cookie.
pub const MAC_BYTES: usize = 16;
/// Bytes of a [`Prologue`].
pub(crate) const PROLOGUE_BYTES: usize = 11 + MAC_BYTES;

pub(super) const HELLO: u8 = 1;
const COOKIE: u8 = 2;
pub(super) const REPLY: u8 = 3;
pub(super) const REFUSAL: u8 = 4;
/// Kinds of packets from here on belong to sessions that are open.
const SESSION_KINDS: u8 = 8;

const PLAIN: u8 = 1;
const DEDICATED: u8 = 2;

/// Proof of a packet: for a hello, that its sender holds the ticket; for a cookie, that its address is its own.
pub type Mac = [u8; MAC_BYTES];

/// Names a ticket to the host that issued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicketId(pub u64);

/// The data that both ends must see alike: it goes into the handshake's hash (Noise revision 34 s6: a prologue that
/// differs at the two ends fails the handshake).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prologue {
    /// Which handshake and ciphers.
    pub suite: u8,
    /// Data without secrecy, as the initiator asks for it.
    pub is_plain: bool,
    /// Whether the initiator declares the path dedicated.
    pub is_dedicated: bool,
    /// The ticket.
    pub ticket: TicketId,
    /// The cookie that the responder recently sent to the initiator's address: a hello is good only with it. Random
    /// bytes in a first hello, which distinguish attempts.
    pub cookie: Mac,
}

/// A packet that opens a session, or answers one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake<'a> {
    /// From the initiator.
    Hello(Hello<'a>),
    /// Show that the address is yours: write a hello with this.
    Cookie {
        /// The MAC of the hello that it answers.
        hello: Mac,
        /// The cookie to put into it.
        cookie: Mac,
    },
    /// Yes.
    Reply {
        /// The MAC of the hello that it answers.
        hello: Mac,
        /// Noise's second message.
        message: &'a [u8],
    },
    /// No.
    Refusal {
        /// The MAC of the hello that it answers.
        hello: Mac,
        /// Noise's second message.
        message: &'a [u8],
    },
}

/// An initiator's packet: at first to get a cookie, and then with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Its start.
    pub prologue: Prologue,
    /// Noise's first message; nothing in a first hello.
    pub message: &'a [u8],
    /// The initiator's features.
    pub features: Features,
    /// The bytes that the MAC covers: all but the MAC.
    pub proven: &'a [u8],
    /// Their MAC.
    pub mac: Mac,
}

/// Whether a datagram belongs to no open session yet.
pub fn is_handshake(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xf < SESSION_KINDS)
}

impl Prologue {
    /// As it travels.
    pub fn to_bytes(&self) -> [u8; PROLOGUE_BYTES] {
        let flags = (if self.is_plain { PLAIN } else { 0 }) | (if self.is_dedicated { DEDICATED } else { 0 });
        let mut bytes = [0; PROLOGUE_BYTES];
        let mut writer = Writer::new(&mut bytes);
        let written = writer
            .bytes(&[VERSION << 4 | HELLO, self.suite, flags])
            .and_then(|()| writer.u64(self.ticket.0))
            .and_then(|()| writer.bytes(&self.cookie));
        debug_assert!(written.is_ok(), "a prologue has 27 bytes");
        bytes
    }

    /// Without the first byte, which has been read.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let suite = reader.u8("the suite")?;
        let flags = reader.u8("the flags")?;
        if flags & !(PLAIN | DEDICATED) != 0 {
            return Err(DecodeError::Range("the flags"));
        }
        let ticket = TicketId(reader.u64("the ticket")?);
        let cookie = mac(reader)?;
        Ok(Self { suite, is_plain: flags & PLAIN != 0, is_dedicated: flags & DEDICATED != 0, ticket, cookie })
    }
}

impl<'a> Handshake<'a> {
    /// Reads a datagram of the handshake.
    pub fn read(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8("the header")?;
        if first >> 4 != VERSION {
            return Err(DecodeError::Version(first >> 4));
        }
        Ok(match first & 0xf {
            HELLO => Self::Hello(Hello::read(datagram)?),
            COOKIE => Self::Cookie { hello: mac(&mut reader)?, cookie: mac(&mut reader)? },
            REPLY => Self::Reply { hello: mac(&mut reader)?, message: reader.rest() },
            REFUSAL => Self::Refusal { hello: mac(&mut reader)?, message: reader.rest() },
            kind => return Err(DecodeError::Kind { what: "packet", kind }),
        })
    }

    /// Writes an answer. A hello is written by [`Hello::write`], which makes its MAC.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let (kind, hello, rest) = match self {
            Self::Hello(hello) => {
                return writer.whole(|writer| {
                    writer.bytes(hello.proven)?;
                    writer.bytes(&hello.mac)
                });
            }
            Self::Cookie { hello, cookie } => (COOKIE, hello, cookie.as_slice()),
            Self::Reply { hello, message } => (REPLY, hello, *message),
            Self::Refusal { hello, message } => (REFUSAL, hello, *message),
        };
        writer.whole(|writer| {
            writer.u8(VERSION << 4 | kind)?;
            writer.bytes(hello)?;
            writer.bytes(rest)
        })
    }
}

impl<'a> Hello<'a> {
    fn read(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        const SHORT: DecodeError = DecodeError::Short("the hello");
        if datagram.len() != HELLO_BYTES {
            return Err(DecodeError::Range("the length of a hello"));
        }
        let (proven, mac) = datagram.split_last_chunk().ok_or(SHORT)?;
        let mut reader = Reader::new(proven);
        reader.u8("the header")?;
        let prologue = Prologue::read(&mut reader)?;
        let length = u16::from_be_bytes([reader.u8("the length")?, reader.u8("the length")?]);
        let message = reader.bytes(usize::from(length), "the message")?;
        let features = reader.u8("the features").map(Features::from_byte).unwrap_or_default();
        Ok(Self { prologue, message, features, proven, mac: *mac })
    }

    /// Writes a hello; `mac` makes the MAC of its bytes. Of a message that leaves no room for them the features are
    /// none.
    pub fn write(
        prologue: &Prologue,
        message: &[u8],
        features: Features,
        mac: impl FnOnce(&[u8]) -> Mac,
    ) -> Result<[u8; HELLO_BYTES], Full> {
        let mut datagram = [0; HELLO_BYTES];
        let (proven, place) = datagram.split_last_chunk_mut::<MAC_BYTES>().ok_or(Full)?;
        let mut writer = Writer::new(proven);
        writer.bytes(&prologue.to_bytes())?;
        writer.bytes(&u16::try_from(message.len()).map_err(|_| Full)?.to_be_bytes())?;
        writer.bytes(message)?;
        if writer.room() > 0 {
            writer.u8(features.byte())?;
        }
        *place = mac(proven);
        Ok(datagram)
    }
}

fn mac(reader: &mut Reader<'_>) -> Result<Mac, DecodeError> {
    const SHORT: DecodeError = DecodeError::Short("the MAC");
    reader.bytes(MAC_BYTES, "the MAC")?.first_chunk().copied().ok_or(SHORT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROLOGUE: Prologue =
        Prologue { suite: 1, is_plain: true, is_dedicated: false, ticket: TicketId(0x0102_0304), cookie: [9; 16] };

    #[test]
    fn hello__is_read_as_it_was_written() {
        let datagram = Hello::write(&PROLOGUE, b"noise", Features::default(), |proven| [proven[30]; 16]).unwrap();
        let Handshake::Hello(hello) = Handshake::read(&datagram).unwrap() else { unreachable!() };
        assert_eq!((hello.prologue, hello.message, hello.proven.len()), (PROLOGUE, &b"noise"[..], 1184));
        assert_eq!(hello.mac, [b'o'; 16]);
        assert_eq!(hello.proven[..PROLOGUE_BYTES], PROLOGUE.to_bytes());
        // Prologue, length of the message, message and MAC.
        let most = vec![1; HELLO_BYTES - PROLOGUE_BYTES - 2 - MAC_BYTES];
        assert!(Hello::write(&PROLOGUE, &most, Features::default(), |_| [0; 16]).is_ok());
        assert_eq!(Hello::write(&PROLOGUE, &[&most[..], &[1]].concat(), Features::default(), |_| [0; 16]), Err(Full));
    }

    #[test]
    fn read__refuses_a_hello_of_another_length_or_with_flags_that_there_are_not() {
        let mut datagram = Hello::write(&PROLOGUE, b"noise", Features::default(), |_| [0; 16]).unwrap();
        let length = DecodeError::Range("the length of a hello");
        assert_eq!(Handshake::read(&datagram[..1199]), Err(length));
        assert_eq!(Handshake::read(&[&datagram[..], &[0]].concat()), Err(length));
        datagram[2] |= 4;
        assert_eq!(Handshake::read(&datagram), Err(DecodeError::Range("the flags")));
        datagram[2] = 0;
        datagram[PROLOGUE_BYTES] = 0xff;
        assert_eq!(Handshake::read(&datagram), Err(DecodeError::Short("the message")));
    }

    #[test]
    fn is_handshake__looks_at_the_kind() {
        assert!(is_handshake(&[0x24]) && is_handshake(&[0x27, 1]));
        assert!(!is_handshake(&[0x28]) && !is_handshake(&[0x29]) && !is_handshake(&[]));
    }

    proptest! {
        /// Any packet that can be read is written and read again as an equal one.
        #[test]
        fn handshake__of_anything(kind in 0_u8..8, mut body in proptest::collection::vec(any::<u8>(), 0..100), full: bool) {
            body.insert(0, VERSION << 4 | kind);
            if full {
                body.resize(HELLO_BYTES, 0);
            }
            if let Ok(packet) = Handshake::read(&body) {
                let mut room = vec![0; HELLO_BYTES];
                let mut writer = Writer::new(&mut room);
                packet.write(&mut writer).unwrap();
                let used = writer.used();
                prop_assert_eq!(Handshake::read(&room[..used]), Ok(packet));
            }
        }
    }
}
