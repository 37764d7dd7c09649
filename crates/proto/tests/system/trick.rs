//! How a hostile peer lies: a host that is honest, and something that changes what it hears and says.

use std::collections::BTreeMap;

use fairwave_proto::codec::{Frame, Frames, NO_LIMIT_BPS, SessionId, Writer};
use fairwave_proto::{MOST_FRAME_BYTES, Packet};

/// What is changed.
#[derive(Clone, Debug)]
pub(crate) struct Trick {
    /// A source takes its sink's grants for so many times as much.
    pub(crate) takes: f64,
    /// A source's stamps run so many times as fast: above one it claims to send slower than it does, below one faster.
    pub(crate) stamps: f64,
    /// A sink grants so many times as much as its node does.
    pub(crate) grants: f64,
    /// A sink reports that all has arrived.
    pub(crate) hides_losses: bool,
    /// By session, the first stamp.
    pub(crate) first: BTreeMap<SessionId, u32>,
}

impl Default for Trick {
    fn default() -> Self {
        Self { takes: 1.0, stamps: 1.0, grants: 1.0, hides_losses: false, first: BTreeMap::new() }
    }
}

impl Trick {
    /// What it makes of frames that came.
    pub(crate) fn hear(&self, frames: &[u8]) -> Vec<u8> {
        each(frames, |frame, writer| {
            let frame = match frame {
                Frame::Feedback { expected_bps } => Frame::Feedback { expected_bps: times(expected_bps, self.takes) },
                // Of its own false stamps it learns nothing.
                Frame::Timing { .. } if self.stamps != 1.0 => return,
                frame => frame,
            };
            frame.write(writer).expect("it is no longer than it was");
        })
    }

    /// What it makes of a packet that is to go.
    pub(crate) fn say(&mut self, session: SessionId, packet: Packet) -> Packet {
        match packet {
            Packet::Data(mut data) => {
                let first = *self.first.entry(session).or_insert(data.stamp_us);
                let since = f64::from(data.stamp_us.wrapping_sub(first)) * self.stamps;
                data.stamp_us = first.wrapping_add(since as u64 as u32);
                Packet::Data(data)
            }
            Packet::Control(mut control) => {
                if control.frames.len() <= MOST_FRAME_BYTES {
                    control.frames = self.rewrite(&control.frames);
                }
                Packet::Control(control)
            }
            Packet::Handshake(bytes) => Packet::Handshake(bytes),
        }
    }

    fn rewrite(&self, frames: &[u8]) -> Vec<u8> {
        each(frames, |frame, writer| match frame {
            Frame::Feedback { expected_bps } => {
                let expected_bps = times(expected_bps, self.grants);
                Frame::Feedback { expected_bps }.write(writer).expect("a varint is a little longer at the most");
            }
            Frame::Losses(report) if self.hides_losses => {
                Frame::write_losses(report.base()..report.end(), &[], writer).expect("it is shorter than it was");
            }
            frame => frame.write(writer).expect("it is no longer than it was"),
        })
    }
}

fn times(bps: u64, factor: f64) -> u64 {
    if factor == 1.0 { bps } else { ((bps as f64 * factor) as u64).min(NO_LIMIT_BPS) }
}

fn each(frames: &[u8], mut change: impl FnMut(Frame<'_>, &mut Writer<'_>)) -> Vec<u8> {
    let mut room = vec![0; frames.len() + 100];
    let mut writer = Writer::new(&mut room);
    Frames::new(frames).flatten().for_each(|frame| change(frame, &mut writer));
    let used = writer.used();
    room.truncate(used);
    room
}
