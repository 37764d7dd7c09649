//! Two handlers without a network: requests and bytes go through the protocol's own queues, on paths that lose,
//! reorder, repeat and forge packets, depending on a seed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;
use std::time::Instant;

use crossbeam_channel::Receiver;
use fairwave_host::{Handler, Session, SessionCommand, SessionFacts};
use fairwave_proto::codec::{CloseReason, SessionId, VoidReason};
use fairwave_proto::{ByteRanges, PathKind, RequestQueue, Requests};
use fairwave_units::{Bytes, Duration, Time};

/// Properties of the paths between two ends. Probabilities are per packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopbackPath {
    /// Printed where a test fails.
    pub(crate) seed: u64,
    /// A packet is lost: bytes are sent again, requests are made again, void ranges are reported again.
    pub(crate) loss: f64,
    /// A packet overtakes others.
    pub(crate) reorder: f64,
    /// A packet arrives twice.
    pub(crate) repeat: f64,
    /// A byte of a data packet is changed, as an attacker on the path may do.
    pub(crate) forge: f64,
    /// Max bytes of a piece.
    pub(crate) piece_bytes: u32,
    /// Max bytes of a request.
    pub(crate) request_bytes: u64,
    /// Max bytes requested and not received.
    pub(crate) room: Bytes,
}

/// Nothing goes wrong.
pub(crate) const FAIR: LoopbackPath = LoopbackPath {
    seed: 1,
    loss: 0.0,
    reorder: 0.0,
    repeat: 0.0,
    forge: 0.0,
    piece_bytes: 8900,
    request_bytes: 4 << 20,
    room: Bytes::new(64 << 20),
};

/// Much goes wrong.
pub(crate) const ROUGH: LoopbackPath =
    LoopbackPath { loss: 0.05, reorder: 0.2, repeat: 0.05, piece_bytes: 1300, request_bytes: 10_000, ..FAIR };

/// Requests are repeated if nothing arrives for this time.
const PATIENCE: Duration = Duration::from_millis(100);
/// Packets that may be on a way at a time.
const MAX_UNDER_WAY: usize = 64;

enum LoopbackPacket {
    Request { stream: u32, range: Range<u64> },
    Data { stream: u32, offset: u64, bytes: Vec<u8> },
    Void { stream: u32, range: Range<u64>, reason: VoidReason },
}

struct LoopbackEnd {
    session: Session,
    commands: Receiver<(SessionId, SessionCommand)>,
    handler: Box<dyn Handler>,
    requests: Requests,
    /// Requested bytes that have not arrived, by stream.
    missing: BTreeMap<u32, ByteRanges>,
    room: Bytes,
    queue: RequestQueue,
    /// Packets in flight to this end.
    inbox: Vec<LoopbackPacket>,
}

/// Two ends, driven by one thread.
pub(crate) struct Loopback {
    /// The giver, and the taker.
    ends: [LoopbackEnd; 2],
    way: LoopbackPath,
    chance: u64,
    began: Instant,
    /// Bytes of streams that arrived at the giver and at the taker, each time that they did.
    pub(crate) carried: [u64; 2],
    closed: Option<CloseReason>,
}

impl Loopback {
    /// Opens a session between the two; the taker is its initiator if it is a get.
    pub(crate) fn open(giver: Box<dyn Handler>, taker: Box<dyn Handler>, is_get: bool, way: LoopbackPath) -> Self {
        let end = |handler: Box<dyn Handler>, is_giver: bool| {
            let (session, commands) = Session::detached(SessionFacts {
                peer: ([127, 0, 0, 1], 1 + u16::from(is_giver)).into(),
                is_initiator: is_giver != is_get,
                sends: is_giver || !is_get,
                receives: !is_giver || !is_get,
                carrier: fairwave_host::Carrier::Udp,
                path: PathKind::Dedicated,
                declared: fairwave_host::PathDeclarations::default(),
                is_plain: way.forge > 0.0,
            });
            let mut end = LoopbackEnd {
                session,
                commands,
                handler,
                requests: Requests::default(),
                missing: BTreeMap::new(),
                room: way.room,
                queue: RequestQueue::default(),
                inbox: Vec::new(),
            };
            end.handler.on_open(&end.session);
            end
        };
        let ends = [end(giver, true), end(taker, false)];
        Self { ends, way, chance: way.seed, began: Instant::now(), carried: [0; 2], closed: None }
    }

    /// Runs until one end closes the session, for at most this time; returns the close reason.
    pub(crate) fn run(&mut self, lasts: std::time::Duration) -> Option<CloseReason> {
        let until = Instant::now() + lasts;
        while self.closed.is_none() && Instant::now() < until {
            if !self.step() {
                thread::sleep(std::time::Duration::from_micros(200));
            }
        }
        self.closed
    }

    /// Runs until one end closes the session; returns the close reason. `None` if no byte arrives for `stalls`: a busy
    /// machine is slow, and only a stall is a failure.
    pub(crate) fn run_out(&mut self, stalls: std::time::Duration) -> Option<CloseReason> {
        loop {
            let before = self.carried;
            if self.run(stalls).is_some() || self.carried == before {
                return self.closed;
            }
        }
    }

    /// The network dies at both ends.
    pub(crate) fn cut(&mut self) {
        for end in &mut self.ends {
            end.handler.on_closed(&end.session, CloseReason::Silence, false);
        }
        self.closed = Some(CloseReason::Silence);
    }

    /// Does all pending work; returns whether there was any.
    pub(crate) fn step(&mut self) -> bool {
        let now = Time::from_nanos(self.began.elapsed().as_nanos() as u64);
        let mut is_busy = false;
        for at in 0..2 {
            is_busy |= self.obey(at);
            if self.closed.is_some() {
                return true;
            }
            is_busy |= self.send(at, now);
            is_busy |= self.deliver(at, now);
        }
        is_busy
    }

    /// Executes an application's commands to its session.
    fn obey(&mut self, at: usize) -> bool {
        let mut is_busy = false;
        while let Ok((_, command)) = self.ends[at].commands.try_recv() {
            is_busy = true;
            let end = &mut self.ends[at];
            match command {
                SessionCommand::Want { stream, range } => {
                    end.requests.want(stream, range.clone());
                    end.missing.entry(stream).or_default().insert(range);
                }
                SessionCommand::GiveUp { stream, range } => {
                    end.requests.give_up(stream, &range);
                    end.missing.entry(stream).or_default().remove(&range);
                }
                SessionCommand::Room(room) => end.room = room.min(self.way.room),
                SessionCommand::Serve { stream, range } => {
                    // One that is not remembered will be asked for again.
                    end.queue.on_request(stream, range);
                }
                SessionCommand::Refuse { stream, range, reason } => {
                    end.queue.cancel(stream, &range);
                    self.post(1 - at, LoopbackPacket::Void { stream, range, reason });
                }
                SessionCommand::Desired(_) | SessionCommand::Ceiling(_) => {}
                SessionCommand::Close(reason) => {
                    self.closed = Some(reason);
                    for (index, end) in self.ends.iter_mut().enumerate() {
                        end.handler.on_closed(&end.session, reason, index != at);
                    }
                    return true;
                }
            }
        }
        is_busy
    }

    /// Sends requests and pieces.
    fn send(&mut self, at: usize, now: Time) -> bool {
        let mut is_busy = false;
        self.ends[at].requests.lapse(now, PATIENCE);
        while let Some(request) = {
            let end = &mut self.ends[at];
            end.requests.next(now, end.room)
        } {
            is_busy = true;
            let (mut start, end) = (request.range.start, request.range.end);
            while start < end {
                let to = end.min(start.saturating_add(1 + self.roll() % self.way.request_bytes));
                self.post(1 - at, LoopbackPacket::Request { stream: request.stream, range: start..to });
                start = to;
            }
        }
        while self.ends[1 - at].inbox.len() < MAX_UNDER_WAY {
            let most = 1 + self.roll() as u32 % self.way.piece_bytes;
            let end = &mut self.ends[at];
            let Some(piece) = end.queue.next_piece(most) else { break };
            is_busy = true;
            let range = piece.offset..piece.offset + u64::from(piece.length);
            let mut bytes = Vec::with_capacity(piece.length as usize);
            let lent = end.handler.lend(piece.stream, range.clone(), &mut |part| bytes.extend_from_slice(part));
            if lent.is_err() && end.handler.comes_later() {
                continue;
            }
            if let Err(reason) = lent {
                self.post(1 - at, LoopbackPacket::Void { stream: piece.stream, range, reason });
                continue;
            }
            assert_eq!(bytes.len(), piece.length as usize, "lent too much or too little of {range:?}");
            if self.is_so(self.way.loss) {
                self.ends[at].queue.on_lost(piece);
                continue;
            }
            if self.is_so(self.way.forge) {
                let index = self.roll() as usize % bytes.len();
                bytes[index] ^= 1 << (self.roll() % 8);
            }
            self.post(1 - at, LoopbackPacket::Data { stream: piece.stream, offset: piece.offset, bytes });
        }
        is_busy
    }

    /// Hands over what arrives.
    fn deliver(&mut self, at: usize, now: Time) -> bool {
        let packets = std::mem::take(&mut self.ends[at].inbox);
        let is_busy = !packets.is_empty();
        for packet in packets {
            let end = &mut self.ends[at];
            match packet {
                LoopbackPacket::Request { stream, range } => end.handler.on_request(&end.session, stream, range),
                LoopbackPacket::Data { stream, offset, bytes } => {
                    let range = offset..offset + bytes.len() as u64;
                    end.requests.on_data(now, stream, &range);
                    for part in end.take_missing(stream, &range) {
                        self.carried[at] += part.end - part.start;
                        let bytes = &bytes[(part.start - offset) as usize..(part.end - offset) as usize];
                        end.handler.on_data(&end.session, stream, part.start, bytes);
                    }
                }
                LoopbackPacket::Void { stream, range, reason } => {
                    end.requests.give_up(stream, &range);
                    for part in end.take_missing(stream, &range) {
                        end.handler.on_void(&end.session, stream, part, reason);
                    }
                }
            }
        }
        is_busy
    }

    /// Sends a packet to an end, unless it is lost. Lost data are handled at the sender.
    fn post(&mut self, to: usize, packet: LoopbackPacket) {
        let is_lost = !matches!(packet, LoopbackPacket::Data { .. }) && self.is_so(self.way.loss);
        if is_lost {
            return;
        }
        let again = self.is_so(self.way.repeat).then(|| packet.again());
        for packet in [Some(packet), again].into_iter().flatten() {
            let overtakes = self.is_so(self.way.reorder);
            let place = self.roll() as usize;
            let inbox = &mut self.ends[to].inbox;
            let place = if overtakes { place % (inbox.len() + 1) } else { inbox.len() };
            inbox.insert(place, packet);
        }
    }

    fn is_so(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.roll() as f64) < probability * u64::MAX as f64
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn roll(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl LoopbackEnd {
    /// The requested parts of a range that have not arrived; marks them as arrived.
    fn take_missing(&mut self, stream: u32, range: &Range<u64>) -> Vec<Range<u64>> {
        let Some(missing) = self.missing.get_mut(&stream) else { return Vec::new() };
        let parts = missing.overlapping(range).map(|part| part.start.max(range.start)..part.end.min(range.end));
        let parts: Vec<_> = parts.collect();
        missing.remove(range);
        parts
    }
}

impl LoopbackPacket {
    fn again(&self) -> Self {
        match self {
            Self::Request { stream, range } => Self::Request { stream: *stream, range: range.clone() },
            Self::Data { stream, offset, bytes } => {
                Self::Data { stream: *stream, offset: *offset, bytes: bytes.clone() }
            }
            Self::Void { stream, range, reason } => {
                Self::Void { stream: *stream, range: range.clone(), reason: *reason }
            }
        }
    }
}
