//! Lies of a hostile peer: an honest host, and a filter that changes the packets it receives and sends.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use fairwave_node::{ClaimMessage, GrantMessage};
use fairwave_proto::codec::{Frame, Frames, LossReport, NO_LIMIT_BPS, SessionId, VoidReason, Writer};
use fairwave_proto::{ByteRanges, ControlPacket, DataPacket, EcnCounts, MAX_FRAME_BYTES, Packet, PieceAt};

use fairwave_units::{Duration, Rate};

use crate::network::{Random, Tamper};

/// Changes to a host's packets.
#[derive(Clone, Debug)]
pub(crate) struct Trick {
    /// Factor that a source applies to its sink's grants.
    pub(crate) takes: f64,
    /// Speed of a source's stamps: above one it claims to send slower than it does, below one faster.
    pub(crate) stamps: f64,
    /// Factor that a sink applies to its node's grants.
    pub(crate) grants: f64,
    /// Factor that a source applies to the rate it could use, for the rate it claims and reports as in force.
    pub(crate) claims: f64,
    /// A sink reports that all has arrived.
    pub(crate) hides_losses: bool,
    /// Number of reports in which a sink reports every other packet as not arrived.
    pub(crate) calls_late: usize,
    /// Ends of those reports, the newest last.
    pub(crate) ends: VecDeque<u64>,
    /// Packets of nonsense for each packet that it sends.
    pub(crate) nonsense: f64,
    /// By session, the number of the next control packet.
    pub(crate) numbers: BTreeMap<SessionId, u64>,
    pub(crate) waiting: Vec<(SocketAddr, SessionId, Packet)>,
    pub(crate) random: Random,
    /// By session, the first stamp.
    pub(crate) first: BTreeMap<SessionId, u32>,
}

impl Default for Trick {
    fn default() -> Self {
        Self {
            takes: 1.0,
            stamps: 1.0,
            grants: 1.0,
            claims: 1.0,
            hides_losses: false,
            calls_late: 0,
            ends: VecDeque::new(),
            nonsense: 0.0,
            numbers: BTreeMap::new(),
            waiting: Vec::new(),
            random: Random::new(1),
            first: BTreeMap::new(),
        }
    }
}

impl Tamper for Trick {
    fn hear(&self, frames: &[u8]) -> Vec<u8> {
        each(frames, |frame, writer| {
            let frame = match frame {
                Frame::Feedback { expected_bps } => Frame::Feedback { expected_bps: times(expected_bps, self.takes) },
                Frame::Grant(grant) => Frame::Grant(scaled(&grant, self.takes)),
                // Of its own false stamps it learns nothing.
                Frame::Timing { .. } if self.stamps != 1.0 => return,
                frame => frame,
            };
            frame.write(writer).expect("a varint is a little longer at the most");
        })
    }

    fn say(&mut self, to: SocketAddr, session: SessionId, packet: Packet) -> Packet {
        let mut count = self.nonsense;
        while self.random.chance(count) {
            count -= 1.0;
            let nonsense = self.nonsense(&packet);
            let nonsense = self.numbered(session, nonsense);
            self.waiting.push((to, session, nonsense));
        }
        let packet = self.numbered(session, packet);
        match packet {
            Packet::Data(mut data) => {
                let first = *self.first.entry(session).or_insert(data.stamp_us);
                let since = f64::from(data.stamp_us.wrapping_sub(first)) * self.stamps;
                data.stamp_us = first.wrapping_add(since as u64 as u32);
                Packet::Data(data)
            }
            Packet::Control(mut control) => {
                if control.frames.len() <= MAX_FRAME_BYTES {
                    control.frames = self.rewrite(&control.frames);
                }
                Packet::Control(control)
            }
            Packet::Handshake(bytes) => Packet::Handshake(bytes),
        }
    }

    fn more(&mut self) -> Option<(SocketAddr, SessionId, Packet)> {
        self.waiting.pop()
    }
}

impl Trick {
    /// Numbers of control packets go up, with nonsense between them.
    fn numbered(&mut self, session: SessionId, packet: Packet) -> Packet {
        match packet {
            Packet::Control(control) if self.nonsense > 0.0 => {
                let next = self.numbers.entry(session).or_default();
                *next += 1;
                Packet::Control(ControlPacket { number: *next - 1, ..control })
            }
            packet => packet,
        }
    }

    /// A packet for another's session, with arbitrary contents.
    fn nonsense(&mut self, like: &Packet) -> Packet {
        let random = &mut self.random;
        let session = match like {
            Packet::Data(data) => data.session,
            Packet::Control(control) => control.session,
            Packet::Handshake(_) => SessionId(random.bits()),
        };
        if let Packet::Data(data) = like
            && random.chance(0.5)
        {
            let number = data.number.saturating_add(number(random) >> 20);
            let length = 1 + random.below(1400) as u32;
            let piece = PieceAt { stream: random.below(4) as u32, length, offset: number2(random) };
            return Packet::Data(DataPacket { session, number, stamp_us: random.bits() as u32, piece });
        }
        let mut frames = vec![0; MAX_FRAME_BYTES];
        let mut writer = Writer::new(&mut frames);
        let most = 1 + random.below(200);
        for _ in 0..most {
            let (stream, offset, length) = (random.below(5) as u64, number2(random), 1 + number2(random));
            let any = number(random);
            let frame = match random.below(12) {
                0..=2 => Frame::Request { stream, offset, length },
                3 => Frame::Feedback { expected_bps: any },
                4 => Frame::Timing { stamp_us: any as u32, held_us: offset },
                5 => Frame::Sent { settled: any, next: any.saturating_add(length) },
                6 => Frame::Void { stream, offset, length, reason: VoidReason::Vanished },
                7 => Frame::Probe(any),
                9 => Frame::Grant(GrantMessage {
                    number: any,
                    rate: Rate::nearest_bps(length as f64),
                    offer: Some(Rate::nearest_bps(offset as f64)),
                    claim_heard: number(random),
                    lease: Duration::from_nanos(any),
                    wants_answer: random.chance(0.5),
                }),
                10 => Frame::Claim(ClaimMessage {
                    number: any + 1,
                    claim: Some(Rate::nearest_bps(length as f64)),
                    is_application_limited: random.chance(0.5),
                    is_bye: random.chance(0.1),
                    wants_answer: random.chance(0.5),
                    in_force: number(random),
                    rate_in_force: Rate::nearest_bps(offset as f64),
                }),
                8 => Frame::Marks(EcnCounts { capable: any, capable_one: 0, marked: offset }),
                _ => Frame::Echo(any),
            };
            let reports = random.chance(0.05) && {
                let lost = offset + 1..offset + 1 + length.min(1000);
                Frame::write_losses(offset..lost.end + stream, &[lost], &mut writer).is_ok()
            };
            if !reports && frame.write(&mut writer).is_err() {
                break;
            }
        }
        let used = writer.used();
        frames.truncate(used);
        if random.chance(0.1) {
            for byte in &mut frames {
                *byte = random.bits() as u8;
            }
        }
        Packet::Control(ControlPacket { session, number: 0, frames })
    }

    fn rewrite(&mut self, frames: &[u8]) -> Vec<u8> {
        each(frames, |frame, writer| match frame {
            Frame::Feedback { expected_bps } => {
                let expected_bps = times(expected_bps, self.grants);
                Frame::Feedback { expected_bps }.write(writer).expect("a varint is a little longer at the most");
            }
            Frame::Grant(grant) => {
                let grant = Frame::Grant(scaled(&grant, self.grants));
                grant.write(writer).expect("varints are a little longer at the most");
            }
            Frame::Claim(claim) => {
                let rate_in_force = claim.rate_in_force * self.claims;
                // It is never its application that limits it.
                let is_application_limited = claim.is_application_limited && self.claims == 1.0;
                let most = claim.claim.map(|rate| rate * self.claims);
                let claim = ClaimMessage { claim: most, rate_in_force, is_application_limited, ..claim };
                Frame::Claim(claim).write(writer).expect("varints are a little longer at the most");
            }
            Frame::Losses(report) if self.hides_losses => {
                self.write_losses(&report, &[], writer);
            }
            Frame::Losses(report) if self.calls_late > 0 => {
                self.write_losses(&report, &report.lost().collect::<Vec<_>>(), writer);
            }
            frame => frame.write(writer).expect("it is no longer than it was"),
        })
    }
}

impl Trick {
    /// A report of these losses, and of those that are only said to be missing: as much of it as fits.
    fn write_losses(&mut self, report: &LossReport<'_>, lost: &[Range<u64>], writer: &mut Writer<'_>) {
        let mut ranges = ByteRanges::default();
        for range in lost {
            ranges.insert(range.clone());
        }
        if self.ends.back().is_none_or(|last| report.end() > *last) {
            self.ends.push_back(report.end());
            while self.ends.len() > self.calls_late + 1 {
                self.ends.pop_front();
            }
        }
        // Numbers before the first of those reports are reported truthfully.
        let from = report.base().max(self.ends.front().copied().unwrap_or(0)) | 1;
        let last = report.end().saturating_sub(1);
        if self.calls_late > 0 {
            (from..last).step_by(2).for_each(|number| _ = ranges.insert(number..number + 1));
        }
        let ranges: Vec<_> = ranges.iter().collect();
        let _ = Frame::write_losses(report.base()..report.end(), &ranges, writer);
    }
}

/// Below 2^62, as often small as large.
fn number(random: &mut Random) -> u64 {
    random.bits() >> (2 + random.below(62))
}

/// Below 2^61.
fn number2(random: &mut Random) -> u64 {
    number(random) / 2
}

fn times(bps: u64, factor: f64) -> u64 {
    if factor == 1.0 { bps } else { ((bps as f64 * factor) as u64).min(NO_LIMIT_BPS) }
}

fn scaled(grant: &GrantMessage, factor: f64) -> GrantMessage {
    GrantMessage { rate: grant.rate * factor, offer: grant.offer.map(|offer| offer * factor), ..*grant }
}

fn each(frames: &[u8], mut change: impl FnMut(Frame<'_>, &mut Writer<'_>)) -> Vec<u8> {
    // A report of what is late is longer than an honest one.
    let mut room = vec![0; MAX_FRAME_BYTES.max(frames.len() + 100)];
    let mut writer = Writer::new(&mut room);
    Frames::new(frames).flatten().for_each(|frame| change(frame, &mut writer));
    let used = writer.used();
    room.truncate(used);
    room
}
