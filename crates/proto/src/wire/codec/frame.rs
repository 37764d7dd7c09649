//! Contents of control packets.

use fairwave_node::{ClaimMessage, GrantMessage};
use thiserror::Error;

use super::exchange::{read_claim, read_grant, write_claim, write_grant};
use super::{DecodeError, Full, LossReport, Reader, Refusal, Writer};
use crate::path::ecn::EcnCounts;

/// A message from one end to the other. All of them may be repeated, and none has to arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frame<'a> {
    /// Sink to source: send this range of a stream.
    Request {
        /// The stream.
        stream: u64,
        /// Its first byte.
        offset: u64,
        /// Its bytes, at least one.
        length: u64,
    },
    /// Sink to source: how fast to send.
    Feedback {
        /// The rate that the sink expects, bit/s: a cap, never a duty. [`NO_LIMIT_BPS`](super::NO_LIMIT_BPS) where the sink sets none.
        expected_bps: u64,
    },
    /// Sink to source: up to which rate it may send, where both ends share capacity by claims and grants; it takes the
    /// place of [`Frame::Feedback`].
    Grant(GrantMessage),
    /// Source to sink: what it can use, and which grant it obeys.
    Claim(ClaimMessage),
    /// Sink to source: gives the source its round-trip time, by the data packet with the highest number so far.
    Timing {
        /// Its stamp.
        stamp_us: u32,
        /// How long ago it arrived.
        held_us: u64,
    },
    /// Sink to source: what has arrived and what has not.
    Losses(LossReport<'a>),
    /// Sink to source: how many data packets came with each ECN field, since the session started.
    Marks(EcnCounts),
    /// Source to sink: which data packets there are. It also shows a sink that the last of them got lost.
    Sent {
        /// The fate of all numbers below is settled; their losses need not be reported any more.
        settled: u64,
        /// The number of the next packet, not below `settled`.
        next: u64,
    },
    /// Source to sink: this range will not come.
    Void {
        /// The stream.
        stream: u64,
        /// Its first byte.
        offset: u64,
        /// Its bytes, at least one.
        length: u64,
        /// Why.
        reason: VoidReason,
    },
    /// Either way: answer with an [`Frame::Echo`] of the same. Keeps a session alive, and proves an address.
    Probe(u64),
    /// The answer.
    Echo(u64),
    /// Either way: the session is over.
    Close(CloseReason),
}

/// Why a range will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidReason {
    /// There is no such thing any more.
    Vanished,
    /// It ends earlier.
    Shrank,
    /// It cannot be read.
    Unreadable,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// All is done.
    #[error("done")]
    Done,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
    /// The peer was silent for too long.
    #[error("the peer stopped responding")]
    Silence,
    /// The path loses too much.
    #[error("excessive loss on the path")]
    Path,
    /// The peer claims more than it was granted.
    #[error("the peer exceeds its granted rate")]
    ExceedsGrant,
    /// The peer broke the protocol.
    #[error("the peer violated the protocol")]
    Protocol,
    /// The peer's process ends, in good order. It may come again.
    #[error("the peer is shutting down")]
    Leaving,
    /// Its keys have reached their max age: its initiator opens another session.
    #[error("the session keys are a day old")]
    Keys,
    /// The peer does not know the session any more: its process started again.
    #[error("the peer does not know the session: it was restarted")]
    Reset,
    /// The connection that carried its datagrams, of TCP or of ssh, is over. The peer is not informed: there is no way
    /// there.
    #[error("the carrying connection was lost")]
    Cut,
    /// The application that the session was opened for cannot serve it, as shows when it looks: what it offers is gone,
    /// or it has no room.
    #[error("refused: {0}")]
    Refused(Refusal),
}

const REQUEST: u8 = 1;
const FEEDBACK: u8 = 2;
const LOSSES: u8 = 3;
const VOID: u8 = 4;
const PROBE: u8 = 5;
const ECHO: u8 = 6;
const CLOSE: u8 = 7;
const SENT: u8 = 8;
const TIMING: u8 = 9;
const GRANT: u8 = 10;
const MARKS: u8 = 11;
const CLAIM: u8 = 12;

/// A session's end is refused with this added to the number of the refusal.
const REFUSED: u8 = 16;

impl<'a> Frame<'a> {
    fn read(kind: u8, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match kind {
            REQUEST => {
                let (stream, offset, length) = range(reader)?;
                Self::Request { stream, offset, length }
            }
            FEEDBACK => Self::Feedback { expected_bps: reader.varint("the expected rate")? },
            TIMING => Self::Timing { stamp_us: reader.u32("the stamp")?, held_us: reader.varint("the time since")? },
            LOSSES => Self::Losses(LossReport::read(reader)?),
            GRANT => Self::Grant(read_grant(reader)?),
            CLAIM => Self::Claim(read_claim(reader)?),
            MARKS => {
                let mut count = || reader.varint("the count of an ECN field");
                Self::Marks(EcnCounts { capable: count()?, capable_one: count()?, marked: count()? })
            }
            VOID => {
                let (stream, offset, length) = range(reader)?;
                let reason = match reader.u8("the reason")? {
                    0 => VoidReason::Vanished,
                    1 => VoidReason::Shrank,
                    2 => VoidReason::Unreadable,
                    _ => return Err(DecodeError::Range("the reason")),
                };
                Self::Void { stream, offset, length, reason }
            }
            SENT => {
                let settled = reader.varint("the settled numbers")?;
                let next = Some(reader.varint("the next number")?).filter(|next| *next >= settled);
                Self::Sent { settled, next: next.ok_or(DecodeError::Range("the next number"))? }
            }
            PROBE => Self::Probe(reader.u64("a probe")?),
            ECHO => Self::Echo(reader.u64("an echo")?),
            CLOSE => Self::Close(match reader.u8("the reason")? {
                0 => CloseReason::Done,
                1 => CloseReason::Stopped,
                2 => CloseReason::Silence,
                3 => CloseReason::Path,
                4 => CloseReason::ExceedsGrant,
                5 => CloseReason::Protocol,
                6 => CloseReason::Leaving,
                7 => CloseReason::Keys,
                8 => CloseReason::Reset,
                9 => CloseReason::Cut,
                reason => {
                    let refusal = reason.checked_sub(REFUSED).and_then(Refusal::from_number);
                    CloseReason::Refused(refusal.ok_or(DecodeError::Range("the reason"))?)
                }
            }),
            kind => return Err(DecodeError::Kind { what: "frame", kind }),
        })
    }

    /// Writes a frame. [`Frame::write_losses`] writes loss reports, which may take several pages; a loss report that
    /// was read goes through it as well.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.whole(|writer| match *self {
            Self::Request { stream, offset, length } => {
                writer.u8(REQUEST)?;
                write_range(writer, [stream, offset, length])
            }
            Self::Feedback { expected_bps } => writer.u8(FEEDBACK).and_then(|()| writer.varint(expected_bps)),
            Self::Grant(grant) => writer.u8(GRANT).and_then(|()| write_grant(&grant, writer)),
            Self::Claim(claim) => writer.u8(CLAIM).and_then(|()| write_claim(&claim, writer)),
            Self::Timing { stamp_us, held_us } => {
                writer.u8(TIMING)?;
                writer.u32(stamp_us)?;
                writer.varint(held_us)
            }
            Self::Losses(report) => {
                let lost: Vec<_> = report.lost().collect();
                let end = Self::write_losses(report.base()..report.end(), &lost, writer)?;
                if end == report.end() { Ok(()) } else { Err(Full) }
            }
            Self::Marks(EcnCounts { capable, capable_one, marked }) => {
                writer.u8(MARKS)?;
                [capable, capable_one, marked].into_iter().try_for_each(|count| writer.varint(count))
            }
            Self::Void { stream, offset, length, reason } => {
                writer.u8(VOID)?;
                write_range(writer, [stream, offset, length])?;
                writer.u8(match reason {
                    VoidReason::Vanished => 0,
                    VoidReason::Shrank => 1,
                    VoidReason::Unreadable => 2,
                })
            }
            Self::Sent { settled, next } => {
                writer.u8(SENT)?;
                writer.varint(settled)?;
                writer.varint(next)
            }
            Self::Probe(value) => writer.u8(PROBE).and_then(|()| writer.u64(value)),
            Self::Echo(value) => writer.u8(ECHO).and_then(|()| writer.u64(value)),
            Self::Close(reason) => {
                writer.u8(CLOSE)?;
                writer.u8(match reason {
                    CloseReason::Done => 0,
                    CloseReason::Stopped => 1,
                    CloseReason::Silence => 2,
                    CloseReason::Path => 3,
                    CloseReason::ExceedsGrant => 4,
                    CloseReason::Protocol => 5,
                    CloseReason::Leaving => 6,
                    CloseReason::Keys => 7,
                    CloseReason::Reset => 8,
                    CloseReason::Cut => 9,
                    CloseReason::Refused(refusal) => REFUSED.saturating_add(refusal.number()),
                })
            }
        })
    }

    /// Writes a report about `numbers` as [`LossReport::write`] does, or a page of it: where the next page starts.
    pub fn write_losses(
        numbers: std::ops::Range<u64>,
        lost: &[std::ops::Range<u64>],
        writer: &mut Writer<'_>,
    ) -> Result<u64, Full> {
        let mut end = numbers.start;
        writer.whole(|writer| {
            writer.u8(LOSSES)?;
            end = LossReport::write(numbers, lost, writer)?;
            Ok(())
        })?;
        Ok(end)
    }
}

/// A range of a stream: not empty, and with an end below 2^62.
fn range(reader: &mut Reader<'_>) -> Result<(u64, u64, u64), DecodeError> {
    let stream = reader.varint("the stream")?;
    let offset = reader.varint("the offset")?;
    let length = reader.varint("the length")?;
    let end = offset.checked_add(length).filter(|end| length > 0 && *end <= super::writer::MAX_VARINT);
    end.map(|_| (stream, offset, length)).ok_or(DecodeError::Range("the length"))
}

fn write_range(writer: &mut Writer<'_>, numbers: [u64; 3]) -> Result<(), Full> {
    numbers.into_iter().try_for_each(|number| writer.varint(number))
}

/// The frames of a control packet's body, in order; the first invalid one ends them.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Of a body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { reader: Reader::new(body) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = loop {
            match self.reader.u8("a frame") {
                Ok(0) => {}
                Ok(kind) => break kind,
                Err(_) => return None,
            }
        };
        let frame = Frame::read(kind, &mut self.reader);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::{Duration, Rate};
    use proptest::prelude::*;

    use super::*;

    fn read(body: &[u8]) -> Vec<Result<Frame<'_>, DecodeError>> {
        Frames::new(body).collect()
    }

    #[test]
    fn frames__are_read_as_they_were_written() {
        let lost = [5..6, 8..12];
        let mut report = [0; 64];
        let mut writer = Writer::new(&mut report);
        LossReport::write(3..40, &lost, &mut writer).unwrap();
        let frames = [
            Frame::Request { stream: 1, offset: 1 << 40, length: 4 << 20 },
            Frame::Feedback { expected_bps: 10_000_000_000 },
            Frame::Grant(GrantMessage {
                number: 1 << 40,
                rate: Rate::mbps(140.0),
                offer: None,
                claim_heard: 0,
                lease: Duration::from_secs(4),
                wants_answer: true,
            }),
            Frame::Claim(ClaimMessage {
                number: 63,
                claim: None,
                is_application_limited: true,
                is_bye: false,
                wants_answer: true,
                in_force: 1 << 40,
                rate_in_force: Rate::ZERO,
            }),
            Frame::Timing { stamp_us: u32::MAX, held_us: 1234 },
            Frame::Marks(EcnCounts { capable: 1 << 40, capable_one: 0, marked: 63 }),
            Frame::Losses(LossReport::read(&mut Reader::new(&report)).unwrap()),
            Frame::Void { stream: 2, offset: 0, length: 1, reason: VoidReason::Unreadable },
            Frame::Sent { settled: 1 << 50, next: 1 << 51 },
            Frame::Probe(u64::MAX),
            Frame::Echo(0),
            Frame::Close(CloseReason::ExceedsGrant),
            Frame::Close(CloseReason::Leaving),
            Frame::Close(CloseReason::Keys),
            Frame::Close(CloseReason::Reset),
            Frame::Close(CloseReason::Refused(Refusal::Expired)),
            Frame::Close(CloseReason::Refused(Refusal::NoRoom)),
        ];
        let mut body = [0; 256];
        let mut writer = Writer::new(&mut body);
        for frame in frames {
            frame.write(&mut writer).unwrap();
        }
        // The rest of the body is padding.
        assert_eq!(read(&body), frames.map(Ok));
    }

    #[test]
    fn frames__end_with_the_first_that_is_none() {
        let mut body = [0; 20];
        Frame::Probe(1).write(&mut Writer::new(&mut body)).unwrap();
        body[9] = 99;
        body[10] = ECHO;
        assert_eq!(read(&body), [Ok(Frame::Probe(1)), Err(DecodeError::Kind { what: "frame", kind: 99 })]);
        assert_eq!(read(&[REQUEST, 0, 0, 0]), [Err(DecodeError::Range("the length"))]);
        assert_eq!(read(&[SENT, 6, 5]), [Err(DecodeError::Range("the next number"))]);
        for reason in [10, REFUSED - 1, REFUSED + 9, u8::MAX] {
            assert_eq!(read(&[CLOSE, reason]), [Err(DecodeError::Range("the reason"))]);
        }
        assert_eq!(read(&[PROBE, 1, 2]), [Err(DecodeError::Short("a probe"))]);
    }

    #[test]
    fn write__nothing_of_a_frame_that_does_not_fit() {
        let mut room = [0; 8];
        let mut writer = Writer::new(&mut room);
        assert_eq!(Frame::Echo(1).write(&mut writer), Err(Full));
        assert_eq!(writer.used(), 0);
    }

    proptest! {
        /// Whatever comes in is read to its end, and what is read is written and read again as the same.
        #[test]
        fn frames__of_anything(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for frame in read(&body).into_iter().flatten() {
                let mut room = vec![0; 1024];
                let mut writer = Writer::new(&mut room);
                frame.write(&mut writer).unwrap();
                let again = read(&room)[0].unwrap();
                match (frame, again) {
                    (Frame::Losses(frame), Frame::Losses(again)) => {
                        prop_assert_eq!((frame.base(), frame.end()), (again.base(), again.end()));
                        prop_assert!(frame.lost().eq(again.lost()));
                    }
                    (frame, again) => prop_assert_eq!(frame, again),
                }
            }
        }
    }
}
