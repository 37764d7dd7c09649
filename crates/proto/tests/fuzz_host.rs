//! A whole host, a peer whose seals are good and whose packets say anything, and an honest peer beside it. `make fuzz`
//! looks for inputs that break it, and `cargo test` runs the ones in `__fuzz__/sealed` again, and some at random.
//!
//! The handshake is done properly; from then on the input is what the hostile peer says under seal. Packets go from
//! host to host as values: a good seal proves that they come from the peer, and that is given.
//!
//! Whatever comes: the host does not panic, holds no more than a bound, does no more for a packet than its bytes are
//! worth, and its session with the honest peer goes on. This target has a program of its own, whose allocator counts.

#![allow(missing_docs)]

use std::alloc::System;
use std::net::SocketAddr;

use fairwave_proto::codec::{CloseReason, Frame, Frames, Piece, Reader, SessionId, TicketId, VoidReason, Writer};
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    ControlPacket, DataPacket, Direction, Ecn, Event, Host, HostConfig, IntervalRule, Lasts, NodeConfig, OpenRequest,
    Opened, Packet, PathControl, PathKind, PieceAt, SessionOptions,
};
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::{Bytes, Duration, Rate, Time};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Inputs at random in `cargo test`; BOLERO_RANDOM_ITERATIONS says otherwise.
const ITERATIONS: usize = 300;
const LARGEST: usize = 1500;

const TICKET: (TicketId, u64) = (TicketId(1), 7);
const OPTIONS: SessionOptions = SessionOptions { weight: 1.0, alpha: 0.1, beta: 0.2, minimum: Rate::ZERO };
const CAPACITY_MBPS: f64 = 20.0;
/// What the victim and the honest peer move in each direction: some 20 ms at half of the capacity.
const HONEST_BYTES: u64 = 30_000;
/// Both get it within this, whatever else the victim has to do: every wait of the protocol is shorter than 4 s.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a session may make a host hold: 256 KiB, some 32 768 gaps of 24 bytes in numbers and as many in bytes, of 48,
/// and twice that where a queue grows by doubling.
const MOST_HELD: i64 = (256 << 10) + 2 * 32_768 * (24 + 48);
/// The honest session, and what a host has without any.
const OTHERS_HELD: i64 = 512 << 10;
/// Frames that a packet of the honest protocol has: the rest of a larger one is padding.
const MOST_BODY: usize = 1400;
/// An answer is to no more than this and twice the packet that it answers: a page of a report for every packet of it.
const MOST_ANSWER: u64 = 40 * 1200;

/// How a number is chosen: it is the next one.
const NEXT: u8 = 3;
/// Where each host is.
const VICTIM: usize = 0;
const HONEST: usize = 1;
const HOSTILE: usize = 2;

struct Scene {
    hosts: [Host<Insecure>; 3],
    now: Time,
    /// The session that the hostile peer has with the victim, by the victim's name for it.
    open: Option<Opened>,
    honest: Option<Opened>,
    /// The hostile peer's next numbers: data, control.
    numbers: [u64; 2],
    /// Bytes that came to the honest peer, and from it.
    moved: [u64; 2],
    /// Bytes of control packets that the victim sent to the hostile peer.
    answered: u64,
    held: i64,
    victim_refuses: bool,
}

/// What an input says of the scene, in its first byte.
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

/// The first byte of an input says what the scene is, the others what the hostile peer does.
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

fn live() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated).cast_signed() as i64
}

fn address(at: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + at as u8], 9))
}

fn host(seed: u8, path: PathKind, has_nodes: bool) -> Host<Insecure> {
    let node = || NodeConfig {
        capacity: Rate::mbps(CAPACITY_MBPS),
        share: 1.0,
        interval: IntervalRule::Fixed(Duration::from_millis(20)),
        phase: Duration::from_millis(7),
        allocator: Box::new(Gtp::new(Reading::Adopted, &Options::default())),
        exchange: None,
    };
    let config = HostConfig {
        lower_bytes: 28,
        piece_bytes: 1000,
        send_bytes: Bytes::new(1),
        sending: has_nodes.then(node),
        receiving: has_nodes.then(node),
        fair_start: false,
        room: Bytes::new(1 << 20),
        buffer: (!has_nodes).then_some(Bytes::new(1 << 20)),
        seed: [seed; 32],
        path,
        path_control: PathControl::Bbr,
        probes_mtu: true,
        is_plain: false,
        lasts: Lasts::default(),
        crypto: InsecureResponder::new(u64::from(seed), [TICKET]),
    };
    Host::new(Time::ZERO, config)
}

impl Scene {
    fn new(plan: &Plan) -> Self {
        let hosts = [1, 2, 3].map(|seed| host(seed, plan.path, plan.has_nodes));
        let mut scene = Self {
            hosts,
            now: Time::ZERO,
            open: None,
            honest: None,
            numbers: [0, 0],
            moved: [0, 0],
            answered: 0,
            held: 0,
            victim_refuses: plan.refuses,
        };
        scene.connect(HONEST, VICTIM, (true, true), 1);
        if plan.victim_calls {
            scene.connect(VICTIM, HOSTILE, (plan.sends, plan.receives), 2);
        } else {
            scene.connect(HOSTILE, VICTIM, (plan.receives, plan.sends), 2);
        }
        for _ in 0..20 {
            scene.pump();
            scene.wait(Duration::from_millis(1));
        }
        assert!(scene.open.is_some() && scene.honest.is_some(), "the handshakes are proper");
        // From here on the input speaks for it; numbers that its host has used are used.
        scene.numbers = [1 << 20; 2];
        scene
    }

    fn connect(&mut self, from: usize, to: usize, (sends, receives): (bool, bool), nonce: u64) {
        let wish = OpenRequest { sends, receives, greeting: b"", options: OPTIONS };
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, nonce);
        self.hosts[from].connect(self.now, address(to), crypto, &wish).expect("there is room");
    }

    /// Does the next thing that the input says: nothing if there is none.
    fn act(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let what = reader.u8("what").ok()?;
        match what & 7 {
            0 => {
                let length = usize::from(reader.u8("a length").ok()?).min(reader.rest().len());
                let body = reader.bytes(length, "a body").ok()?.to_vec();
                self.say(what >> 3, body);
            }
            1..=3 => {
                let mut room = [0; MOST_BODY];
                let mut writer = Writer::new(&mut room);
                for _ in 0..=what >> 3 & 7 {
                    if write_frame(reader, &mut writer).is_none() {
                        break;
                    }
                }
                let used = writer.used();
                // Many times the same, as far as a packet takes them.
                let times = if what >> 6 == 3 && used > 0 { MOST_BODY / used } else { 1 };
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
                let stamp_us = (self.now.as_nanos() / 1000) as u32;
                let count = if what >> 6 == 3 { 200 } else { 1 };
                for at in 0..count {
                    let offset = offset.saturating_add(2 * at * u64::from(length));
                    self.give(what >> 3, stamp_us, PieceAt { stream: u32::from(stream & 3), length, offset });
                }
            }
            6 => {
                let ms = u64::from(reader.u8("a time").ok()?);
                self.wait(Duration::from_millis(ms));
                self.pump();
            }
            _ => self.wants(reader)?,
        }
        Some(())
    }

    /// The victim's application wants or gives up something, or closes.
    fn wants(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let [what, stream, length] = reader.bytes(3, "a wish").ok()?.try_into().ok()?;
        let session = self.open?.session;
        let start = spread(reader)? >> 2;
        let range = start..start + 1 + (u64::from(length) << (what >> 4));
        let stream = u32::from(stream & 3);
        self.at_victim(|host, now| match what & 7 {
            0..=4 => host.want(now, session, stream, range),
            5 => host.give_up(now, session, stream, &range),
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
        let Some(Opened { session, .. }) = self.open else { return };
        let number = self.number(1, choice);
        let (bytes, before) = (frames.len() as u64, self.answered);
        let allocations = ALLOCATOR.stats().allocations;
        let packet = ControlPacket { session, number, frames };
        self.at_victim(|victim, now| victim.handle_control(now, address(HOSTILE), &packet));
        let allocations = ALLOCATOR.stats().allocations - allocations;
        assert!(allocations as u64 <= 64 + 8 * bytes, "{allocations} allocations for a packet of {bytes} bytes");
        self.settle();
        let answer = self.answered - before;
        assert!(answer <= MOST_ANSWER + 2 * bytes, "{answer} bytes answer a packet of {bytes} bytes");
    }

    /// A data packet, sealed by the hostile peer.
    fn give(&mut self, choice: u8, stamp_us: u32, piece: PieceAt) {
        let Some(Opened { session, .. }) = self.open else { return };
        let number = self.number(0, choice);
        let packet = DataPacket { session, number, stamp_us, piece };
        self.at_victim(|victim, now| _ = victim.handle_data(now, address(HOSTILE), Ecn::NotCapable, &packet));
        let parts = self.hosts[VICTIM].parts(session);
        let range = piece.range();
        assert!(parts.iter().all(|part| range.start <= part.start && part.start < part.end && part.end <= range.end));
        self.settle();
    }

    fn at_victim<T>(&mut self, does: impl FnOnce(&mut Host<Insecure>, Time) -> T) -> T {
        let before = live();
        let outcome = does(&mut self.hosts[VICTIM], self.now);
        self.held += live() - before;
        outcome
    }

    /// Carries what hosts say to each other at this instant.
    fn settle(&mut self) {
        for at in [VICTIM, HONEST, VICTIM] {
            self.take_events(at);
            self.take_packets(at);
        }
    }

    fn take_events(&mut self, at: usize) {
        let (now, refuses) = (self.now, self.victim_refuses && at == VICTIM);
        loop {
            let before = live();
            let event = self.hosts[at].poll_event();
            if at == VICTIM {
                self.held += live() - before;
            }
            let Some(event) = event else { return };
            let before = live();
            match event {
                Event::Open(opened) => self.on_open(at, opened),
                Event::Requested { session, stream, range } if refuses && Some(session) == self.hostile() => {
                    self.hosts[at].refuse(now, session, stream, range, VoidReason::Vanished);
                }
                Event::Requested { session, stream, range } => self.hosts[at].serve(now, session, stream, range),
                Event::Closed { session, reason, by_peer, .. } if at != HOSTILE => {
                    let is_honest = at == HONEST || Some(session) == self.honest.map(|opened| opened.session);
                    assert!(!is_honest, "the honest session ended: {reason}, by its peer: {by_peer}");
                    self.open = None;
                }
                _ => {}
            }
            if at == VICTIM {
                self.held += live() - before;
            }
        }
    }

    fn hostile(&self) -> Option<SessionId> {
        self.open.map(|opened| opened.session)
    }

    fn on_open(&mut self, at: usize, opened: Opened) {
        match (at, opened.address == address(HONEST)) {
            (VICTIM, true) => {
                self.honest = Some(opened);
                self.hosts[at].want(self.now, opened.session, 0, 0..HONEST_BYTES);
            }
            (VICTIM, false) => self.open = Some(opened),
            (HONEST, _) => self.hosts[at].want(self.now, opened.session, 0, 0..HONEST_BYTES),
            _ => {}
        }
    }

    fn take_packets(&mut self, at: usize) {
        let is_handshake_over = self.numbers != [0, 0];
        loop {
            let before = live();
            let transmit = self.hosts[at].poll_transmit(self.now);
            if at == VICTIM {
                self.held += live() - before;
                if let Some(Packet::Control(ControlPacket { frames: bytes, .. }) | Packet::Handshake(bytes)) =
                    transmit.as_ref().map(|transmit| &transmit.packet)
                {
                    // What goes with it is the driver's.
                    self.held -= bytes.capacity().cast_signed() as i64;
                }
            }
            let Some(transmit) = transmit else { return };
            let Some(to) = (0..3).find(|to| address(*to) == transmit.to) else { continue };
            if to == HOSTILE && is_handshake_over {
                if let Packet::Control(packet) = &transmit.packet {
                    assert!(Frames::new(&packet.frames).all(|frame| frame.is_ok()), "it speaks the protocol");
                    self.answered += packet.frames.len() as u64;
                }
                continue;
            }
            let before = live();
            self.deliver(at, to, transmit.packet);
            if to == VICTIM {
                self.held += live() - before;
            }
        }
    }

    fn deliver(&mut self, from: usize, to: usize, packet: Packet) {
        let (host, now, from_address) = (&mut self.hosts[to], self.now, address(from));
        match packet {
            Packet::Data(packet) => {
                let bytes = host.handle_data(now, from_address, Ecn::NotCapable, &packet).bytes;
                if from == HONEST || to == HONEST {
                    self.moved[usize::from(to == HONEST)] += bytes;
                }
            }
            Packet::Control(packet) => {
                host.handle_control(now, from_address, &packet);
            }
            Packet::Handshake(bytes) => {
                host.handle_handshake(now, from_address, &bytes, &mut |_| Ok(OPTIONS));
            }
        }
    }

    /// Lets time pass, and the hosts do what is due in it.
    fn wait(&mut self, span: Duration) {
        let end = self.now.saturating_add(span);
        while let Some(at) = self.next().filter(|at| *at <= end) {
            // A packet takes some time, whatever is due.
            self.now = at.max(self.now.saturating_add(Duration::from_micros(1)));
            self.pump();
        }
        self.now = self.now.max(end);
    }

    fn next(&self) -> Option<Time> {
        let all = if self.numbers == [0, 0] { &self.hosts[..] } else { &self.hosts[..HOSTILE] };
        all.iter().filter_map(Host::poll_timeout).min()
    }

    fn pump(&mut self) {
        let all: &[usize] = if self.numbers == [0, 0] { &[VICTIM, HONEST, HOSTILE] } else { &[VICTIM, HONEST] };
        for _ in 0..3 {
            for &at in all {
                let before = live();
                self.hosts[at].handle_timeout(self.now);
                if at == VICTIM {
                    self.held += live() - before;
                }
                self.take_events(at);
                self.take_packets(at);
            }
        }
    }

    fn check_bounds(&self) {
        assert!(self.held <= MOST_HELD + OTHERS_HELD, "the host holds {} bytes", self.held);
        for direction in [Direction::Sending, Direction::Receiving] {
            assert!(self.hosts[VICTIM].sessions(direction).is_none_or(|sessions| sessions <= 2));
        }
    }

    /// The honest session has gone on.
    fn finish(&mut self) {
        let end = self.now.saturating_add(PATIENCE);
        while self.moved != [HONEST_BYTES; 2] {
            assert!(self.now < end, "the honest session moved {:?} of {HONEST_BYTES} bytes each way", self.moved);
            self.wait(Duration::from_millis(20));
        }
        self.check_bounds();
        if let Some(session) = self.hostile() {
            self.at_victim(|host, now| host.close(now, session, CloseReason::Done));
        }
        self.wait(Duration::from_secs(1));
        assert!(self.held <= OTHERS_HELD, "{} bytes stay when the session is over", self.held);
    }
}

/// A number of any size: a byte, shifted by another.
fn spread(reader: &mut Reader<'_>) -> Option<u64> {
    let [value, shift] = reader.bytes(2, "a number").ok()?.try_into().ok()?;
    Some(u64::from(value) << (shift % 54))
}

/// A frame as the protocol has them, of numbers that the input says.
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
