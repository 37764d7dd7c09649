//! Facts that arise: two hosts in virtual time, a path between them on which something is wrong, and what their users are
//! told.

use std::collections::BinaryHeap;
use std::net::SocketAddr;

use fairwave_proto::codec::{SessionId, TicketId};
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    Ecn, Event, Host, HostConfig, IntervalRule, Lasts, NodeConfig, OpenRequest, Packet, PathControl, PathDeclarations,
};
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::{Bytes, Time};

use super::*;
use crate::carrier::Carrier;
use crate::session::SessionFacts;
use crate::status::LimitedBy;

type Span = fairwave_units::Duration;

const TICKET: (TicketId, u64) = (TicketId(1), 7);
/// The giver, and the taker.
const GIVER: usize = 0;
const TAKER: usize = 1;

/// The network between both hosts, in the direction of the data. The way back has only the delay.
#[derive(Clone, Copy)]
struct Path {
    /// One way.
    delay: Span,
    /// One data packet in this many gets lost.
    loses_one_in: u64,
    /// The line and how long its queue may be.
    line: Option<(Rate, Span)>,
    /// Packets that wait for longer than this in front of the line are marked, if they can be.
    marks_above: Option<Span>,
    /// Start time of a queue that others keep filled, and its delay.
    others: Option<(Time, Span)>,
    /// Whether somebody on the way takes the ECN field away.
    bleaches: bool,
    /// Nothing comes through any more from then on.
    ends_at: Time,
}

/// Both hosts, and how they are set up.
struct Pair {
    hosts: [Host<Insecure>; 2],
    sessions: [Option<SessionId>; 2],
    path: Path,
    kind: PathKind,
    capacity: Option<Rate>,
    now: Time,
    /// The line is free again.
    is_free: Time,
    /// When, in which order, where to.
    under_way: BinaryHeap<std::cmp::Reverse<(Time, u64, usize)>>,
    packets: std::collections::BTreeMap<u64, (Ecn, Packet)>,
    sent: u64,
    wire_bytes: [u64; 2],
}

impl Pair {
    fn new(path: Path, kind: PathKind, capacity: Option<Rate>, room: u64) -> Self {
        let hosts = [host(1, kind, capacity, room), host(2, kind, capacity, room)];
        let mut pair = Self {
            hosts,
            sessions: [None; 2],
            path,
            kind,
            capacity,
            now: Time::ZERO,
            is_free: Time::ZERO,
            under_way: BinaryHeap::new(),
            packets: std::collections::BTreeMap::new(),
            sent: 0,
            wire_bytes: [0; 2],
        };
        let options = fairwave_proto::Terms::default();
        let request = OpenRequest { sends: false, receives: true, greeting: b"", options };
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, 1);
        pair.hosts[TAKER].connect(pair.now, address(GIVER), crypto, &request).expect("there is room");
        pair
    }

    fn run_to(&mut self, end: Time) {
        while self.now < end {
            for at in [GIVER, TAKER] {
                self.attend(at);
            }
            let arrival = self.under_way.peek().map(|std::cmp::Reverse((at, ..))| *at);
            let next = self.hosts.iter().filter_map(Host::poll_timeout).chain(arrival).min();
            self.now = next.unwrap_or(end).clamp(self.now, end);
            while let Some(&std::cmp::Reverse((at, number, to))) = self.under_way.peek()
                && at <= self.now
            {
                self.under_way.pop();
                self.arrive(number, to);
            }
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
        }
    }

    fn arrive(&mut self, number: u64, to: usize) {
        let (host, from) = (&mut self.hosts[to], address(1 - to));
        let Some((ecn, packet)) = self.packets.remove(&number) else { return };
        match packet {
            Packet::Data(packet) => _ = host.handle_data(self.now, from, ecn, &packet),
            Packet::Control(packet) => _ = host.handle_control(self.now, from, &packet),
            Packet::Handshake(bytes) => {
                host.handle_handshake(self.now, from, &bytes, &mut |_| Ok(fairwave_proto::Terms::default()));
            }
        }
    }

    fn attend(&mut self, at: usize) {
        while let Some(event) = self.hosts[at].poll_event() {
            match event {
                Event::Requested { session, stream, range } => self.hosts[at].serve(self.now, session, stream, range),
                Event::Open(opened) => {
                    self.sessions[at] = Some(opened.session);
                    if opened.receives {
                        self.hosts[at].want(self.now, opened.session, 0, 0..1 << 60);
                    }
                }
                _ => {}
            }
        }
        while let Some(transmit) = self.hosts[at].poll_transmit(self.now) {
            let ecn = if transmit.takes_marks { Ecn::Capable } else { Ecn::NotCapable };
            self.carry(at, ecn, transmit.packet);
        }
    }

    fn carry(&mut self, from: usize, mut ecn: Ecn, packet: Packet) {
        let Path { delay, loses_one_in, line, marks_above, others, bleaches, ends_at } = self.path;
        self.sent += 1;
        let bytes = u64::from(packet.datagram_bytes()) + 28;
        let mut leaves = self.now;
        if from == GIVER {
            self.wire_bytes[GIVER] += bytes;
            // One packet in this many, spread by a multiplier without a pattern.
            let draw = self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            if self.now >= ends_at || (matches!(packet, Packet::Data(_)) && draw.is_multiple_of(loses_one_in)) {
                return;
            }
            if let Some((rate, longest)) = line {
                if self.is_free.since(self.now) > longest {
                    return;
                }
                let takes = rate.time_for(Bytes::new(bytes)).expect("a line has a rate");
                self.is_free = self.is_free.max(self.now).saturating_add(takes);
                if ecn == Ecn::Capable && marks_above.is_some_and(|above| self.is_free.since(self.now) > above) {
                    ecn = Ecn::Marked;
                }
                leaves = self.is_free;
            }
            self.wire_bytes[TAKER] += bytes;
            if bleaches {
                ecn = Ecn::NotCapable;
            }
        }
        if let Some((_, waits)) = others.filter(|(since, _)| from == GIVER && self.now >= *since) {
            leaves = leaves.saturating_add(waits);
        }
        self.under_way.push(std::cmp::Reverse((leaves.saturating_add(delay), self.sent, 1 - from)));
        self.packets.insert(self.sent, (ecn, packet));
    }

    /// The status shown to an end's user, computed over the last half second.
    fn status(&mut self, at: usize) -> SessionStatus {
        let before = (self.sample(at), self.now);
        self.run_to(self.now.saturating_add(Span::from_millis(500)));
        let mut after = self.sample(at);
        after.at = before.0.at + Duration::from_nanos(self.now.since(before.1).as_nanos());
        after.since(&before.0, Here { capacity: self.capacity }).pop().expect("one session")
    }

    fn sample(&mut self, at: usize) -> StatusSample {
        let name = self.sessions[at].expect("it is open");
        let host = &mut self.hosts[at];
        let (sent, received) = (host.sent(name).unwrap_or_default(), host.received(name).unwrap_or_default());
        let wire_bytes = self.wire_bytes[at];
        let stats = SessionStats {
            sent_packets: sent.sent,
            lost_packets: sent.lost,
            sent_wire_bytes: if at == GIVER { wire_bytes } else { 0 },
            received_wire_bytes: if at == TAKER { wire_bytes } else { 0 },
            received_packets: received.packets,
            missed_packets: received.missed_packets,
            datagram_bytes: 1400,
            receive_buffer: Bytes::new(16 << 20),
            ..SessionStats::of(host, self.now, name)
        };
        let path = self.kind;
        let (sends, receives) = (at == GIVER, at == TAKER);
        let facts = SessionFacts {
            peer: address(1 - at),
            is_initiator: receives,
            sends,
            receives,
            path,
            declared: PathDeclarations::default(),
            is_plain: false,
            carrier: Carrier::Udp,
        };
        StatusSample { at: Instant::now(), sessions: vec![(Session::detached(facts).0, Arc::new(stats), None)] }
    }
}

fn address(at: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, at as u8 + 1], 1))
}

fn host(seed: u8, path: PathKind, capacity: Option<Rate>, room: u64) -> Host<Insecure> {
    let node = || {
        capacity.map(|capacity| NodeConfig {
            capacity,
            share: 1.0,
            interval: IntervalRule::Fixed(Span::from_millis(20)),
            phase: Span::from_millis(7 * u64::from(seed)),
            allocator: Box::new(Gtp::new(Reading::Adopted, &Options::default())),
            exchange: None,
        })
    };
    let config = HostConfig {
        lower_bytes: 28,
        piece_bytes: 1350,
        send_bytes: Bytes::new(1),
        sending: node(),
        receiving: node(),
        fair_start: true,
        room: Bytes::new(room),
        buffer: None,
        seed: [seed; 32],
        path,
        path_control: PathControl::default(),
        probes_mtu: false,
        is_plain: false,
        lasts: Lasts::default(),
        crypto: InsecureResponder::new(u64::from(seed), [TICKET]),
    };
    Host::new(Time::ZERO, config)
}

/// 60 ms there and back, and nothing wrong.
fn clean() -> Path {
    Path {
        delay: Span::from_millis(30),
        loses_one_in: u64::MAX,
        line: None,
        marks_above: None,
        others: None,
        bleaches: false,
        ends_at: Time::MAX,
    }
}

const ROOM: u64 = 1 << 30;

#[test]
fn loss__without_a_queue_is_told_at_both_ends_with_what_to_type() {
    let line = Some((Rate::mbps(30.0), Span::from_millis(60)));
    let path = Path { loses_one_in: 20, line, ..clean() };
    let mut pair = Pair::new(path, PathKind::Shared, Some(Rate::mbps(100.0)), ROOM);
    // Now and then a queue stands for some round trips, while the model looks for more.
    let advice = "`--path dedicated --capacity \"100.0 Mb/s\"` at both ends";
    let is_advised = |status: &SessionStatus| status.advice.as_ref().is_some_and(|text| text.contains(advice));
    let [giver, taker] = (12..25)
        .map(|second| {
            pair.run_to(Time::from_secs(second));
            [GIVER, TAKER].map(|at| pair.status(at))
        })
        .find(|status| status.iter().all(is_advised))
        .expect("no second in which both ends say what to type");
    assert_eq!(giver.limited_by, Some(LimitedBy::Path), "{giver:?}");
    let loss = |status: &SessionStatus| status.path.loss_share.unwrap();
    assert!((loss(&giver) - 0.05).abs() < 0.01 && (loss(&taker) - 0.05).abs() < 0.01, "{giver:?} {taker:?}");
    assert!(giver.because.contains("(minimum 60 ms), no queue, "), "{}", giver.because);
    assert!(giver.because.contains(" % lost"), "{}", giver.because);
    assert!(taker.because.contains(" % lost"), "{}", taker.because);
}

/// A line of 20 Mb/s whose router marks what waits for longer than 5 ms in a queue of 200 ms.
fn marking() -> Path {
    let (longest, above) = (Span::from_millis(200), Span::from_millis(5));
    Path { line: Some((Rate::mbps(20.0), longest)), marks_above: Some(above), ..clean() }
}

#[test]
fn marks__of_a_router_hold_the_rate_and_keep_its_queue_short() {
    let mut pair = Pair::new(marking(), PathKind::Shared, None, ROOM);
    pair.run_to(Time::from_secs(15));
    let [giver, taker] = [GIVER, TAKER].map(|at| pair.status(at));
    assert_eq!(giver.limited_by, Some(LimitedBy::Path), "{giver:?}");
    assert!(giver.path.marked_packets > 0 && giver.path.marked_share.unwrap() < 0.2, "{giver:?}");
    // The source does not know of packets in flight.
    let (here, there) = (giver.path.marked_packets, taker.path.marked_packets);
    assert!(here <= there && there < here + 100, "{here} {there}");
    assert_eq!(giver.path.loss_share, Some(0.0), "{giver:?}");
    assert!(giver.path.queueing_s.unwrap() < 0.05, "{giver:?}");
    assert!(giver.because.contains("no loss, ") && giver.because.contains(" marked by routers"), "{giver:?}");
}

#[test]
fn marks__of_a_path_that_takes_the_field_away_are_not_asked_for() {
    let mut pair = Pair::new(Path { bleaches: true, ..marking() }, PathKind::Shared, None, ROOM);
    pair.run_to(Time::from_secs(5));
    let giver = pair.status(GIVER);
    assert_eq!((giver.path.marked_packets, giver.path.marked_share), (0, Some(0.0)), "{giver:?}");
    assert!(!pair.hosts[GIVER].takes_marks(pair.sessions[GIVER].unwrap()));
    assert!(giver.path.delivery_rate_bps.unwrap() > 1e6, "{giver:?}");
}

#[test]
fn queue__of_others_is_told_at_the_source_with_what_to_type() {
    let others = Some((Time::from_secs(2), Span::from_millis(120)));
    let path = Path { others, line: Some((Rate::mbps(20.0), Span::from_millis(60))), ..clean() };
    let mut pair = Pair::new(path, PathKind::Shared, None, ROOM);
    pair.run_to(Time::from_secs(20));
    let giver = pair.status(GIVER);
    assert_eq!(giver.limited_by, Some(LimitedBy::Path), "{giver:?}");
    let queueing = giver.path.queueing_s.unwrap();
    assert!((0.119..0.2).contains(&queueing), "{giver:?}");
    assert!(
        giver.because.contains("ms (minimum 60 ms), 1") && giver.because.contains(" ms of it in queues"),
        "{giver:?}"
    );
    let advice = giver.advice.expect("there is some");
    assert!(advice.starts_with("packets wait 1") && advice.contains("`--limit \""), "{advice}");
}

#[test]
fn silence__of_a_path_that_ends_is_told() {
    let line = Some((Rate::mbps(20.0), Span::from_millis(60)));
    let path = Path { ends_at: Time::from_secs(3), line, ..clean() };
    let mut pair = Pair::new(path, PathKind::Shared, None, ROOM);
    // An idle peer asks each five seconds, and waits for two.
    pair.run_to(Time::from_secs(8));
    let taker = pair.status(TAKER);
    assert_eq!(taker.limited_by, Some(LimitedBy::Silence), "{taker:?}");
    assert!(taker.because.starts_with("no answer from 10.0.0.1:1 for "), "{taker:?}");
}

#[test]
fn window__of_a_sink_with_little_room_holds() {
    // 60 000 bytes each 60 ms are 8 Mb/s of 100.
    let mut pair = Pair::new(clean(), PathKind::Dedicated, Some(Rate::mbps(100.0)), 60_000);
    pair.run_to(Time::from_secs(5));
    let [giver, taker] = [GIVER, TAKER].map(|at| pair.status(at));
    assert_eq!(taker.limited_by, Some(LimitedBy::Window), "{taker:?}");
    assert!(taker.because.starts_with("one round trip delivers everything this end requests at a time"), "{taker:?}");
    assert_eq!(giver.limited_by, Some(LimitedBy::Idle), "{giver:?}");
    assert!(giver.because.ends_with("no more data is requested or ready"), "{giver:?}");
}

#[test]
fn breaker__of_a_dedicated_path_that_loses_a_third_is_told() {
    let mut pair = Pair::new(Path { loses_one_in: 3, ..clean() }, PathKind::Dedicated, Some(Rate::mbps(20.0)), ROOM);
    pair.run_to(Time::from_secs(4));
    let giver = pair.status(GIVER);
    assert_eq!(giver.limited_by, Some(LimitedBy::Breaker), "{giver:?}");
    assert!(giver.because.contains("each such second halves the rate"), "{giver:?}");
    assert!(giver.because.contains(" % lost"), "{giver:?}");
}
