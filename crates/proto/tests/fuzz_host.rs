//! A whole host, a hostile peer with valid seals and arbitrary packets, and an honest peer. `make fuzz` looks for
//! inputs that break it, and `cargo test` runs the ones in `__fuzz__/sealed` again, and some at random.
//!
//! The handshake is done properly; from then on the input is what the hostile peer sends under seal. Packets go from
//! host to host as values: a valid seal proves that they come from the peer, and that is given.
//!
//! Whatever comes: the host does not panic, holds no more than a bound, does no more for a packet than its bytes are
//! worth, and its session with the honest peer goes on. This target is a separate program, whose allocator counts.

#![allow(missing_docs, non_snake_case)]

#[path = "system/memory.rs"]
mod memory;
mod network;

use fairwave_proto::codec::{CloseReason, Frame, Frames, Piece, Reader, SessionId, VoidReason, Writer};
use fairwave_proto::handshake::insecure::Insecure;
use fairwave_proto::{ControlPacket, DataPacket, Direction, Ecn, Event, Host, Packet, PathKind, PieceAt};
use fairwave_units::{Bytes, Duration, Rate, Time};

use network::{Flow, LIVE_BYTES, Load, Network, Setup, address};

/// Inputs at random in `cargo test`; BOLERO_RANDOM_ITERATIONS overrides this.
const ITERATIONS: usize = 300;
const LARGEST: usize = 1500;

const CAPACITY_BPS: f64 = 20e6;
/// Bytes that the victim and the honest peer move in each direction: some 20 ms at half of the capacity.
const HONEST_BYTES: u64 = 30_000;
/// Both get it within this, whatever else the victim has to do: every wait of the protocol is shorter than 4 s.
const PATIENCE: Duration = Duration::from_secs(20);
/// Max bytes that a session may make a host hold: 256 KiB, some 32 768 gaps of 24 bytes in numbers and as many in
/// bytes, of 48, and twice that for queues that grow by doubling.
const MAX_HELD: i64 = (256 << 10) + 2 * 32_768 * (24 + 48);
/// The honest session, and what a host has without any.
const OTHERS_HELD: i64 = 512 << 10;
/// Frames that a packet of the honest protocol has: the rest of a larger one is padding.
const MAX_BODY: usize = 1400;
/// An answer is to no more than this and twice the packet that it answers: a page of a report for every packet of it.
const MAX_ANSWER: u64 = 40 * 1200;

/// How a number is chosen: it is the next one.
const NEXT: u8 = 3;
/// Index of each host.
const VICTIM: usize = 0;
const HONEST: usize = 1;
const HOSTILE: usize = 2;

struct Scene {
    network: Network,
    /// The session that the hostile peer has with the victim, by the victim's name for it.
    open: Option<SessionId>,
    /// The hostile peer's next numbers: data, control.
    numbers: [u64; 2],
    /// Bytes of control packets that the victim sent to the hostile peer.
    answered: u64,
}

/// The scene, as the first byte of an input sets it.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
struct Plan {
    /// Whether the victim sends to the hostile peer, and whether it receives from it.
    sends: bool,
    receives: bool,
    path: PathKind,
    has_nodes: bool,
    victim_calls: bool,
    refuses: bool,
}

impl Plan {
    fn read(byte: u8) -> Self {
        let bit = |at: u8| byte >> at & 1 == 1;
        Self {
            sends: bit(0) || !bit(1),
            receives: bit(1),
            path: if bit(2) { PathKind::Dedicated } else { PathKind::Shared },
            has_nodes: !bit(3),
            victim_calls: bit(4),
            refuses: bit(5),
        }
    }
}

/// The first byte of an input sets the scene, the others drive the hostile peer.
#[test]
fn sealed() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let Some((first, rest)) = input.split_first() else { return };
        let mut scene = Scene::new(&Plan::read(*first));
        let mut reader = Reader::new(rest);
        while scene.act(&mut reader).is_some() {
            scene.check_bounds();
        }
        scene.finish();
    });
}

impl Scene {
    fn new(plan: &Plan) -> Self {
        LIVE_BYTES.get_or_init(|| memory::live);
        let setup = Setup {
            capacity_bps: plan.has_nodes.then_some(CAPACITY_BPS),
            path: plan.path,
            fair_start: false,
            phase: Some(Duration::from_millis(7)),
            room: Bytes::new(1 << 20),
            buffer: (!plan.has_nodes).then_some(Bytes::new(1 << 20)),
            probes_mtu: true,
            ..Setup::default()
        };
        let mut network = Network::of(1, vec![setup; 3], Duration::from_micros(10));
        let honest = Flow { is_mutual: true, sizes: vec![HONEST_BYTES], ..Flow::endless(VICTIM, HONEST) };
        let (source, sink) = if plan.sends { (VICTIM, HOSTILE) } else { (HOSTILE, VICTIM) };
        let hostile = Flow {
            is_fetched: plan.victim_calls == (sink == VICTIM),
            is_mutual: plan.sends && plan.receives,
            is_refused: plan.refuses,
            has: u64::MAX,
            sizes: vec![0],
            ..Flow::endless(source, sink)
        };
        network.flows = vec![honest, hostile];
        network.run_until(Time::from_nanos(20_000_000));
        let open = network.session(VICTIM, 1);
        assert!(open.is_some() && network.session(VICTIM, 0).is_some(), "the handshakes are proper");
        // From here on the input speaks for it; numbers that its host has used are used.
        network.hosts[HOSTILE].pauses = vec![network.now..Time::MAX];
        let mut scene = Self { network, open, numbers: [1 << 20; 2], answered: 0 };
        scene.settle();
        scene
    }

    /// Does the next thing in the input; `None` at its end.
    fn act(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let what = reader.u8("what").ok()?;
        match what & 7 {
            0 => {
                let length = usize::from(reader.u8("a length").ok()?).min(reader.rest().len());
                let body = reader.bytes(length, "a body").ok()?.to_vec();
                self.say(what >> 3, body);
            }
            1..=3 => {
                let mut room = [0; MAX_BODY];
                let mut writer = Writer::new(&mut room);
                for _ in 0..=what >> 3 & 7 {
                    if write_frame(reader, &mut writer).is_none() {
                        break;
                    }
                }
                let used = writer.used();
                // Many times the same, as far as a packet takes them.
                let times = if what >> 6 == 3 && used > 0 { MAX_BODY / used } else { 1 };
                self.say(NEXT, room[..used].repeat(times));
            }
            4 => {
                let length = usize::from(reader.u8("a length").ok()?).min(reader.rest().len());
                let body = reader.bytes(length, "a body").ok()?;
                if let Ok(Piece { stamp_us, stream, offset, bytes }) = Piece::read(&mut Reader::new(body)) {
                    let piece = PieceAt { stream, length: bytes.len() as u32, offset };
                    self.give(what >> 3, stamp_us, piece);
                }
            }
            5 => {
                let [stream, length, shift] = reader.bytes(3, "a piece").ok()?.try_into().ok()?;
                let offset = spread(reader)?;
                let length = 1 + (u32::from(length) << (shift & 3));
                let stamp_us = (self.network.now.as_nanos() / 1000) as u32;
                let count = if what >> 6 == 3 { 200 } else { 1 };
                for at in 0..count {
                    let offset = offset.saturating_add(2 * at * u64::from(length));
                    self.give(what >> 3, stamp_us, PieceAt { stream: u32::from(stream & 3), length, offset });
                }
            }
            6 => {
                let ms = u64::from(reader.u8("a time").ok()?);
                self.wait(Duration::from_millis(ms));
            }
            _ => self.wants(reader)?,
        }
        Some(())
    }

    /// The victim's application wants or gives up something, or closes.
    fn wants(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let [what, stream, length] = reader.bytes(3, "a request").ok()?.try_into().ok()?;
        let session = self.open?;
        let start = spread(reader)? >> 2;
        let range = start..start + 1 + (u64::from(length) << (what >> 4));
        let stream = u32::from(stream & 3);
        self.at_victim(|host, now| match what & 7 {
            0..=4 => host.want(now, session, stream, range),
            5 => host.give_up(session, stream, &range),
            6 => host.serve(now, session, stream, range),
            _ => host.set_desired(now, session, Rate::nearest_bps(range.start as f64)),
        });
        self.settle();
        Some(())
    }

    /// The number of the next packet of a kind: the next one, an old one, or one far ahead.
    fn number(&mut self, kind: usize, choice: u8) -> u64 {
        let next = &mut self.numbers[kind];
        match choice & 7 {
            0 => next.saturating_sub(3),
            1 => {
                *next = next.saturating_add(1 << 16);
                *next
            }
            2 => {
                *next += 2;
                *next
            }
            _ => {
                *next += 1;
                *next
            }
        }
    }

    /// A control packet, sealed by the hostile peer.
    fn say(&mut self, choice: u8, frames: Vec<u8>) {
        let Some(session) = self.open else { return };
        let number = self.number(1, choice);
        let (bytes, before) = (frames.len() as u64, self.answered);
        let allocations = memory::allocations();
        let packet = ControlPacket { session, number, frames };
        self.at_victim(|victim, now| victim.handle_control(now, address(HOSTILE), &packet));
        let allocations = memory::allocations() - allocations;
        assert!(allocations <= 64 + 8 * bytes, "{allocations} allocations for a packet of {bytes} bytes");
        self.settle();
        let answer = self.answered - before;
        assert!(answer <= MAX_ANSWER + 2 * bytes, "{answer} bytes answer a packet of {bytes} bytes");
    }

    /// A data packet, sealed by the hostile peer.
    fn give(&mut self, choice: u8, stamp_us: u32, piece: PieceAt) {
        let Some(session) = self.open else { return };
        let number = self.number(0, choice);
        let packet = DataPacket { session, number, stamp_us, piece };
        self.at_victim(|victim, now| _ = victim.handle_data(now, address(HOSTILE), Ecn::NotCapable, &packet));
        let parts = self.network.hosts[VICTIM].parts(session);
        let range = piece.range();
        assert!(parts.iter().all(|part| range.start <= part.start && part.start < part.end && part.end <= range.end));
        self.settle();
    }

    fn at_victim<T>(&mut self, does: impl FnOnce(&mut Host<Insecure>, Time) -> T) -> T {
        let now = self.network.now;
        self.network.hosts[VICTIM].at(|host| does(host, now))
    }

    /// Takes what hosts have to say at this instant.
    fn settle(&mut self) {
        self.wait(Duration::ZERO);
    }

    /// Lets time pass.
    fn wait(&mut self, span: Duration) {
        self.network.run_for(span);
        let answered = &mut self.answered;
        self.network.under_way.retain(|_, datagram| {
            let is_answer = datagram.to == address(HOSTILE);
            if let Load::Packet(Packet::Control(packet)) = &datagram.load
                && is_answer
            {
                assert!(Frames::new(&packet.frames).all(|frame| frame.is_ok()), "it speaks the protocol");
                *answered += packet.frames.len() as u64;
            }
            !is_answer
        });
        for event in self.network.hosts[..HOSTILE].iter_mut().flat_map(|host| host.events.drain(..)) {
            if let Event::Closed { session, reason, by_peer, .. } = event {
                assert_eq!(Some(session), self.open, "the honest session ended: {reason}, by its peer: {by_peer}");
                self.open = None;
            }
        }
    }

    fn check_bounds(&self) {
        let victim = &self.network.hosts[VICTIM];
        assert!(victim.held <= MAX_HELD + OTHERS_HELD, "the host holds {} bytes", victim.held);
        for direction in [Direction::Sending, Direction::Receiving] {
            assert!(victim.sessions(direction).is_none_or(|sessions| sessions <= 2));
        }
    }

    /// Bytes that came to the victim from the honest peer, and to that.
    fn moved(&self) -> [u64; 2] {
        [VICTIM, HONEST].map(|host| {
            let session = self.network.session(host, 0);
            session.and_then(|session| self.network.hosts[host].received(session)).map_or(0, |counts| counts.bytes)
        })
    }

    /// The honest session has gone on.
    fn finish(&mut self) {
        let end = self.network.now.saturating_add(PATIENCE);
        while self.moved() != [HONEST_BYTES; 2] {
            let moved = self.moved();
            assert!(self.network.now < end, "the honest session moved {moved:?} of {HONEST_BYTES} bytes each way");
            self.wait(Duration::from_millis(20));
        }
        self.check_bounds();
        if let Some(session) = self.open {
            self.at_victim(|host, now| host.close(now, session, CloseReason::Done));
        }
        self.wait(Duration::from_secs(1));
        let held = self.network.hosts[VICTIM].held;
        assert!(held <= OTHERS_HELD, "{held} bytes stay when the session is over");
    }
}

/// A number of any size: a byte, shifted by another.
fn spread(reader: &mut Reader<'_>) -> Option<u64> {
    let [value, shift] = reader.bytes(2, "a number").ok()?.try_into().ok()?;
    Some(u64::from(value) << (shift % 54))
}

/// A frame of the protocol, with numbers from the input.
fn write_frame(reader: &mut Reader<'_>, writer: &mut Writer<'_>) -> Option<()> {
    let kind = reader.u8("a kind").ok()?;
    let stream = u64::from(kind >> 4 & 3);
    let written = match kind & 15 {
        0 | 1 => Frame::Request { stream, offset: spread(reader)?, length: 1 + spread(reader)? }.write(writer),
        2 => Frame::Feedback { expected_bps: spread(reader)? }.write(writer),
        3 => Frame::Timing { stamp_us: spread(reader)? as u32, held_us: spread(reader)? }.write(writer),
        4 => {
            let settled = spread(reader)?;
            Frame::Sent { settled, next: settled.saturating_add(spread(reader)?) }.write(writer)
        }
        5 => {
            let (offset, length) = (spread(reader)?, 1 + spread(reader)?);
            let reasons = [VoidReason::Vanished, VoidReason::Shrank, VoidReason::Unreadable];
            Frame::Void { stream, offset, length, reason: reasons[usize::from(kind >> 6) % 3] }.write(writer)
        }
        6 => Frame::Probe(spread(reader)?).write(writer),
        7 => Frame::Echo(spread(reader)?).write(writer),
        8 if kind >> 4 == 15 => Frame::Close(CloseReason::Stopped).write(writer),
        _ => {
            let base = spread(reader)? >> 5;
            let mut at = base;
            let mut lost = Vec::new();
            for _ in 0..kind >> 4 {
                let start = at + 1 + (spread(reader)? >> 5);
                at = start + 1 + (spread(reader)? >> 5);
                lost.push(start..at);
            }
            let end = at + u64::from(kind >> 7) * (spread(reader)? >> 5);
            Frame::write_losses(base..end, &lost, writer).map(|_| ())
        }
    };
    written.ok()
}
