use std::collections::BTreeMap;

use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::Bytes;

use super::*;
use crate::codec::TicketId;
use crate::end_node::IntervalRule;
use crate::handshake::HandshakeError;
use crate::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use crate::lasts::Lasts;
use crate::packet::frames;
use crate::path::PathControl;

mod ahead;
mod claims;
mod closing;
mod stray;
mod told;

const LOWER: u32 = 28;
const STREAM: u32 = 1;
const TICKET: (TicketId, u64) = (TicketId(1), 77);
const OPTIONS: SessionOptions = SessionOptions { weight: 1.0, alpha: 0.1, beta: 0.2, minimum: Rate::ZERO };

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn address(host: usize) -> SocketAddr {
    port(host, 1)
}

fn port(host: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8], port))
}

fn node(mbps: f64) -> NodeConfig {
    NodeConfig {
        capacity: Rate::mbps(mbps),
        share: 1.0,
        interval: IntervalRule::Fixed(Duration::from_millis(20)),
        phase: Duration::from_millis(7),
        allocator: Box::new(Gtp::new(Reading::Adopted, &Options::default())),
        exchange: None,
    }
}

type TestHost = Host<Insecure>;

fn host(mbps: f64, seed: u8) -> TestHost {
    Host::new(Time::ZERO, config(mbps, seed))
}

fn config(mbps: f64, seed: u8) -> HostConfig<InsecureResponder> {
    HostConfig {
        lower_bytes: LOWER,
        piece_bytes: 1000,
        send_bytes: Bytes::new(1),
        sending: Some(node(mbps)),
        receiving: Some(node(mbps)),
        fair_start: false,
        room: Bytes::new(100_000_000),
        buffer: None,
        seed: [seed; 32],
        path: PathKind::Dedicated,
        path_control: PathControl::Bbr,
        probes_mtu: false,
        is_plain: false,
        lasts: Lasts::default(),
        crypto: InsecureResponder::new(u64::from(seed), [TICKET]),
    }
}

/// Hosts with half a round trip between them.
struct Network {
    hosts: Vec<TestHost>,
    delay: Duration,
    /// By when they arrive, and the order in which they were sent.
    under_way: BTreeMap<(Time, u64), (SocketAddr, usize, Packet)>,
    order: u64,
    now: Time,
    delivered: Vec<u64>,
    events: Vec<Vec<Event>>,
    size: u64,
    /// By host: the port that its packets come from and are sent to.
    ports: Vec<u16>,
    /// Larger datagrams are lost.
    largest: u32,
    sizes: BTreeMap<u32, u64>,
    /// Each data packet of this many is lost.
    loses_one_in: u64,
    /// And each control packet, too.
    loses_control: bool,
    data: u64,
    /// By host: the control packets that it sent.
    control: Vec<u64>,
}

impl Network {
    fn new(mbps: &[f64], delay_ms: u64) -> Self {
        let hosts: Vec<_> = mbps.iter().enumerate().map(|(at, mbps)| host(*mbps, at as u8)).collect();
        Self {
            delivered: vec![0; hosts.len()],
            control: vec![0; hosts.len()],
            events: vec![Vec::new(); hosts.len()],
            size: 1 << 40,
            ports: vec![1; hosts.len()],
            largest: u32::MAX,
            sizes: BTreeMap::new(),
            hosts,
            delay: Duration::from_millis(delay_ms),
            under_way: BTreeMap::new(),
            order: 0,
            now: Time::ZERO,
            loses_one_in: u64::MAX,
            loses_control: false,
            data: 0,
        }
    }

    /// The sink asks its source for data; its name for the session.
    fn open(&mut self, from: usize, to: usize) -> SessionId {
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, self.order);
        let wish = OpenRequest { sends: false, receives: true, greeting: b"", options: OPTIONS };
        self.hosts[to].connect(self.now, address(from), crypto, &wish).unwrap()
    }

    /// How a host's sessions ended, and whether their peers said so.
    fn ends(&self, host: usize) -> Vec<(SessionId, CloseReason, bool)> {
        let end = |event: &Event| match *event {
            Event::Closed { session, reason, by_peer, .. } => Some((session, reason, by_peer)),
            _ => None,
        };
        self.events[host].iter().filter_map(end).collect()
    }

    /// Megabits a second on the wire that reach host 1 up to a time.
    fn mbps_until(&mut self, until: Time) -> f64 {
        let (begin, before) = (self.now, self.delivered[1]);
        self.run(until);
        // 1000 B of data are 1077 B.
        (self.delivered[1] - before) as f64 * 8.0 * 1.077 / until.since(begin).as_secs_f64() / 1e6
    }

    fn run(&mut self, until: Time) {
        loop {
            self.drain();
            let timers = self.hosts.iter().filter_map(TestHost::poll_timeout);
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let next = timers.chain(arrival).min().filter(|next| *next <= until);
            let Some(next) = next else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (from, to, packet) = entry.remove();
                match packet {
                    Packet::Data(data) => {
                        self.delivered[to] += self.hosts[to].handle_data(self.now, from, Ecn::NotCapable, &data).bytes;
                    }
                    Packet::Control(control) => _ = self.hosts[to].handle_control(self.now, from, &control),
                    Packet::Handshake(bytes) => {
                        self.hosts[to].handle_handshake(self.now, from, &bytes, &mut |_| Ok(OPTIONS));
                    }
                }
            }
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
        }
    }

    fn drain(&mut self) {
        for at in 0..self.hosts.len() {
            while let Some(event) = self.hosts[at].poll_event() {
                match event {
                    Event::Requested { session, stream, range } => {
                        self.hosts[at].serve(self.now, session, stream, range);
                    }
                    Event::Open(opened) if opened.receives => {
                        self.hosts[at].want(self.now, opened.session, STREAM, 0..self.size);
                    }
                    event => self.events[at].push(event),
                }
            }
            while let Some(transmit) = self.hosts[at].poll_transmit(self.now) {
                self.control[at] += u64::from(matches!(transmit.packet, Packet::Control(_)));
                if matches!(transmit.packet, Packet::Data(_)) || self.loses_control {
                    self.data += 1;
                    if self.data.is_multiple_of(self.loses_one_in) {
                        continue;
                    }
                }
                let SocketAddr::V4(to) = transmit.to else { unreachable!("all are of IPv4") };
                let bytes = transmit.packet.datagram_bytes();
                let host = usize::from(to.ip().octets()[3]);
                if bytes > self.largest || self.ports[host] != to.port() {
                    continue;
                }
                *self.sizes.entry(bytes).or_default() += 1;
                self.order += 1;
                let arrives = self.now.saturating_add(self.delay);
                self.under_way.insert((arrives, self.order), (port(at, self.ports[at]), host, transmit.packet));
            }
        }
    }
}

/// Frames of a control packet fit into 1200 bytes; a probe of the path's size has padding behind them, and a hostile
/// peer's packet of 64 KiB says no more than others.
#[test]
fn handle_control__reads_what_a_packet_of_1200_bytes_holds() {
    let mut network = Network::new(&[100.0, 100.0], 1);
    network.open(0, 1);
    network.run(ms(30));
    let Some(&Event::Open(Opened { session, .. })) = network.events[0].first() else { panic!("{:?}", network.events) };
    let request = frames(&[Frame::Request { stream: 1, offset: 0, length: 1 }]);
    for (at, heard) in [(MOST_FRAME_BYTES - request.len(), 1), (MOST_FRAME_BYTES, 0)] {
        let mut body = vec![0; 60_000];
        body[at..at + request.len()].copy_from_slice(&request);
        let packet = ControlPacket { session, number: 100 + at as u64, frames: body };
        network.hosts[0].handle_control(network.now, address(1), &packet);
        let asked = std::iter::from_fn(|| network.hosts[0].poll_event());
        assert_eq!(asked.filter(|event| matches!(event, Event::Requested { .. })).count(), heard, "at byte {at}");
    }
}

#[test]
fn host__delivers_all_and_fills_its_capacity() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.open(0, 1);
    network.run(ms(3000));
    let before = network.delivered[1];
    network.run(ms(4000));
    // 100 Mb/s of packets of 1000 B in 1077 B.
    let rate = (network.delivered[1] - before) as f64 * 8.0 * 1077.0 / 1000.0;
    assert!((rate / 100e6 - 1.0).abs() < 0.005, "{rate}");
}

#[test]
fn handle_control__hears_what_the_packet_says_that_opens_a_session() {
    let mut network = Network::new(&[100.0, 100.0], 25);
    network.open(0, 1);
    // Three round trips: a cookie, an answer, and the first data for what the first packet asks for; and a tick at each
    // end.
    network.run(ms(150 + 2 * 20));
    assert!(network.delivered[1] > 0);
}

#[test]
fn host__repairs_losses_to_the_last_byte() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    (network.loses_one_in, network.size) = (7, 5_000_000);
    let sink = network.open(0, 1);
    network.run(ms(3000));
    assert_eq!(network.delivered[1], 5_000_000);
    assert!(network.hosts[1].inbound.is_complete(sink));
    let Some(&Event::Open(opened)) = network.events[0].first() else { panic!("{:?}", network.events) };
    let counts = network.hosts[0].outbound.counts(opened.session).unwrap();
    assert!(counts.sent < 5000 * 7 / 6 + 100, "{counts:?}");
    assert_eq!(network.hosts[0].outbound.under_way(opened.session), 0);
    // And both hear of the end.
    network.hosts[1].close(ms(3000), sink, CloseReason::Done);
    network.run(ms(3200));
    assert_eq!(network.ends(0), [(opened.session, CloseReason::Done, true)]);
    assert_eq!(network.ends(1), [(sink, CloseReason::Done, false)]);
}

#[test]
fn host__tells_an_idle_source_less_often() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.size = 1_000_000;
    let sink = network.open(0, 1);
    let control_until = |network: &mut Network, seconds: u64| {
        let before = network.control.clone();
        network.run(ms(1000 * seconds));
        [network.control[0] - before[0], network.control[1] - before[1]]
    };
    control_until(&mut network, 2);
    assert_eq!(network.delivered[1], 1_000_000);
    // Its rate is told each 200 ms to a source that has just sent, and is measured in the last interval.
    let [_, soon] = control_until(&mut network, 8);
    assert!(soon >= 6 * 5, "{soon} packets in 6 s");
    control_until(&mut network, 14);
    // Then each 600 ms, and each end asks for the round trip every 5 s and answers the other.
    let [source, idle] = control_until(&mut network, 74);
    assert!((100..=100 + 2 * 13).contains(&idle), "{idle} packets of the sink in a minute");
    // It is told often enough that it asks for nothing more.
    assert!(source <= 2 * 13, "{source} packets of the source in a minute");
    // And as often as before when it sends again.
    network.hosts[1].want(network.now, sink, STREAM, 2_000_000..3_000_000);
    let [_, again] = control_until(&mut network, 80);
    assert_eq!(network.delivered[1], 2_000_000);
    assert!(again >= 6 * 5, "{again} packets in 6 s");
}

#[test]
fn close__tells_what_both_ends_have_counted() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    (network.loses_one_in, network.size) = (50, 5_000_000);
    let sink = network.open(0, 1);
    network.run(ms(3000));
    let lost = network.data / 50;
    assert!(lost >= 100, "{lost}");
    network.hosts[1].close(ms(3000), sink, CloseReason::Done);
    network.run(ms(3200));
    let Some(Event::Closed { counts: (sent, _), .. }) = network.events[0].last() else { panic!("it is open") };
    let Some(Event::Closed { counts: (_, received), .. }) = network.events[1].last() else { panic!("it is open") };
    assert_eq!((sent.sent, sent.lost), (network.data, lost), "{sent:?}");
    assert_eq!((received.bytes, received.missed_packets), (5_000_000, lost), "{received:?}");
}

#[test]
fn host__closes_a_session_whose_keys_are_old() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    let keys = Duration::from_secs(2);
    let lasts = Lasts { keys, ..Lasts::default() };
    for (seed, host) in network.hosts.iter_mut().enumerate() {
        *host = Host::new(Time::ZERO, HostConfig { lasts, ..config(100.0, seed as u8) });
    }
    let sink = network.open(0, 1);
    network.run(ms(2000));
    let Some(&Event::Open(opened)) = network.events[0].first() else { panic!("{:?}", network.events) };
    assert_eq!((network.events[0].len(), network.events[1].len()), (1, 0), "it is not that old yet");
    // The handshake took two round trips; it is looked after each 200 ms.
    network.run(ms(2000 + 20 + 200 + 10));
    // The sink opened it, and is the first whose keys are so old.
    assert_eq!(network.ends(0), [(opened.session, CloseReason::Keys, true)]);
    assert_eq!(network.ends(1), [(sink, CloseReason::Keys, false)]);
    let there = network.delivered[1];
    network.run(ms(4000));
    assert_eq!(network.delivered[1], there);
}

#[test]
fn host__is_as_patient_with_a_silent_peer_as_it_is_told() {
    for seconds in [1, 5] {
        let mut network = Network::new(&[100.0, 100.0], 5);
        let lasts = Lasts { silent: Duration::from_secs(seconds), ..Lasts::default() };
        for (seed, host) in network.hosts.iter_mut().enumerate() {
            *host = Host::new(Time::ZERO, HostConfig { lasts, ..config(100.0, seed as u8) });
        }
        let sink = network.open(0, 1);
        network.run(ms(1000));
        // From now on nothing arrives anywhere.
        network.ports = vec![2, 2];
        network.run(ms(1000 + seconds * 1000 - 100));
        assert_eq!(network.events[1], []);
        network.run(ms(1000 + seconds * 1000 + 500));
        assert_eq!(network.ends(1), [(sink, CloseReason::Silence, false)]);
        let is_silence = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Silence, .. });
        assert!(network.events[0].iter().any(is_silence), "{:?}", network.events[0]);
    }
}

#[test]
fn connect__without_a_ticket_fails_after_a_while() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.hosts[0].control.crypto().clone_from(&InsecureResponder::new(1, []));
    let session = network.open(0, 1);
    network.run(Time::from_secs(6));
    assert_eq!(network.events[1], [Event::Failed { session, error: HandshakeError::NoAnswer }]);
    assert_eq!(network.events[0], []);
}

#[test]
fn host__lets_a_session_be_that_sends_nothing() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    for (seed, host) in network.hosts.iter_mut().enumerate() {
        *host = Host::new(Time::ZERO, HostConfig { fair_start: true, ..config(100.0, seed as u8) });
    }
    // It may start with all, wants nothing, and shares with three others later.
    network.size = 0;
    network.open(0, 1);
    network.run(ms(200));
    network.size = 1 << 40;
    for _ in 0..3 {
        network.open(0, 1);
    }
    network.run(ms(3000));
    let closed = |event: &Event| matches!(event, Event::Closed { .. });
    assert!(!network.events.iter().flatten().any(closed), "{:?}", network.events);
    // And the others have what it does not use.
    let before = network.delivered[1];
    network.run(ms(4000));
    let rate = (network.delivered[1] - before) as f64 * 8.0 * 1077.0 / 1000.0;
    assert!(rate > 98e6, "{rate}");
}

#[test]
fn host__without_a_capacity_asks_for_more_than_the_least_window() {
    let mut network = Network::new(&[1.0, 1.0], 100);
    for (seed, host) in network.hosts.iter_mut().enumerate() {
        let (sending, receiving, room) = (None, None, Bytes::new(1 << 30));
        let config = HostConfig { sending, receiving, room, ..config(1.0, seed as u8) };
        *host = Host::new(Time::ZERO, config);
    }
    network.open(0, 1);
    network.run(ms(3500));
    let before = network.delivered[1];
    network.run(ms(4000));
    // 2 MB a round trip of 200 ms are 5 MB in half a second.
    let bytes = network.delivered[1] - before;
    assert!(bytes > 10_000_000, "{bytes}");
}

#[test]
fn host__follows_an_initiator_that_moves() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.size = 20_000_000;
    let sink = network.open(0, 1);
    network.run(ms(1000));
    assert!(!network.hosts[1].inbound.is_complete(sink));
    network.ports[1] = 2;
    network.run(ms(5000));
    assert_eq!(network.delivered[1], 20_000_000);
    assert!(network.hosts[1].inbound.is_complete(sink));
}

#[test]
fn host__finds_the_size_that_a_path_takes_and_notices_when_it_shrinks() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    for (seed, host) in network.hosts.iter_mut().enumerate() {
        *host = Host::new(Time::ZERO, HostConfig { piece_bytes: 8000, probes_mtu: true, ..config(100.0, seed as u8) });
    }
    network.largest = 1472;
    network.open(0, 1);
    network.run(ms(9000));
    network.sizes.clear();
    network.run(ms(9500));
    let most = network.sizes.iter().max_by_key(|(_, count)| **count).map(|(bytes, _)| *bytes);
    assert!(most.is_some_and(|most| (1456..=1472).contains(&most)), "{:?}", network.sizes);
    let before = network.delivered[1];
    (network.largest, network.sizes) = (1300, BTreeMap::new());
    network.run(ms(15_500));
    // One second of silence and recovery at the most; then full speed with 1200 bytes a datagram.
    assert!(network.delivered[1] - before > 5 * 11_000_000, "{}", network.delivered[1] - before);
    let most = network.sizes.iter().max_by_key(|(_, count)| **count).map(|(bytes, _)| *bytes);
    assert_eq!(most, Some(1200), "{:?}", network.sizes);
}

#[test]
fn host__keeps_its_rate_while_packets_of_all_kinds_get_lost() {
    for mbps in [4.0, 40.0] {
        let mut network = Network::new(&[100.0, mbps], 25);
        (network.loses_one_in, network.loses_control) = (11, true);
        network.open(0, 1);
        network.run(ms(5000));
        for second in 5..40 {
            let before = network.delivered[1];
            network.run(ms(1000 * (second + 1)));
            let rate = (network.delivered[1] - before) as f64 * 8.0 / 1e6;
            assert!(rate > 0.75 * mbps, "{rate} of {mbps} Mb/s in second {second}");
        }
    }
}

#[test]
fn set_desired__is_not_exceeded_after_a_stall() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.open(0, 1);
    network.run(ms(500));
    let Some(&Event::Open(opened)) = network.events[0].first() else { panic!("{:?}", network.events) };
    network.hosts[0].set_desired(ms(500), opened.session, Rate::mbps(30.0));
    network.run(ms(2000));
    // No thread runs for 60 ms, which is no silence yet. The sink takes it for a pause, and grants less for an interval
    // or two.
    network.now = ms(2060);
    network.run(ms(2070));
    let rate = network.mbps_until(ms(2310));
    assert!((25.0..30.4).contains(&rate), "{rate} Mb/s, and 30 are desired");
}

#[test]
fn set_ceiling__holds_whatever_is_granted_and_whatever_stalls() {
    for has_node in [true, false] {
        let mut network = Network::new(&[100.0, 100.0], 5);
        for (seed, host) in network.hosts.iter_mut().enumerate().filter(|_| !has_node) {
            *host = Host::new(Time::ZERO, HostConfig { receiving: None, ..config(100.0, seed as u8) });
        }
        let sink = network.open(0, 1);
        network.run(ms(1000));
        network.hosts[1].set_ceiling(ms(1000), sink, Some(Rate::mbps(30.0)));
        network.run(ms(1200));
        let rate = network.mbps_until(ms(2200));
        assert!((29.5..30.3).contains(&rate), "{rate} Mb/s, {has_node}");
        // For two seconds nothing arrives anywhere.
        network.ports = vec![2, 2];
        network.run(ms(4200));
        network.ports = vec![1, 1];
        let mut most: f64 = 0.0;
        for half in 0..8 {
            most = most.max(network.mbps_until(ms(4700 + 500 * half)));
        }
        assert!((29.5..30.6).contains(&most), "{most} Mb/s, {has_node}");
        network.hosts[1].set_ceiling(ms(8200), sink, None);
        network.run(ms(10_000));
        let rate = network.mbps_until(ms(10_500));
        assert!(rate > 90.0, "{rate} Mb/s, {has_node}");
    }
}

#[test]
fn unanswered_for__counts_only_while_the_peer_owes_an_answer() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.size = 0;
    let sink = network.open(0, 1);
    let (mut silent, mut unanswered) = (Duration::ZERO, Duration::ZERO);
    for tenth in 10..300 {
        network.run(ms(100 * tenth));
        let control = &network.hosts[1].control;
        silent = silent.max(control.silent_for(network.now, sink).unwrap());
        unanswered = unanswered.max(control.unanswered_for(network.now, sink).unwrap());
    }
    // Nothing flows, and each asks the other every 5 s: an answer takes a round trip of 10 ms.
    assert!(silent >= Duration::from_secs(2), "{silent}");
    assert!(unanswered <= Duration::from_millis(10), "{unanswered}");
    network.ports = vec![2, 2];
    network.run(ms(38_000));
    let unanswered = network.hosts[1].control.unanswered_for(network.now, sink).unwrap();
    assert!(unanswered >= Duration::from_millis(2900), "{unanswered}");
}

#[test]
fn unheard_for__grows_where_the_peer_is_heard_and_nothing_gets_there() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    let sink = network.open(0, 1);
    network.run(ms(6000));
    let waits = |network: &Network| {
        let control = &network.hosts[1].control;
        let [silent, unanswered] = [control.silent_for(network.now, sink), control.unanswered_for(network.now, sink)];
        [silent, unanswered, control.unheard_for(network.now, sink)].map(Option::unwrap)
    };
    assert_eq!(waits(&network)[2], Duration::ZERO);
    // What is sent to the source is lost, and what it sends arrives.
    network.ports[0] = 2;
    network.run(ms(14_000));
    let [silent, unanswered, unheard] = waits(&network);
    assert!(silent < Duration::from_secs(2) && unanswered < Duration::from_secs(2), "{silent} {unanswered}");
    // Since the first probe that was lost.
    assert!((Duration::from_millis(7700)..=Duration::from_millis(8000)).contains(&unheard), "{unheard}");
    network.ports[0] = 1;
    network.run(ms(16_000));
    assert_eq!(waits(&network)[2], Duration::ZERO);
}

/// Where many packets get lost both ways, data go on, and that this end is heard is known for all but some of the time.
#[test]
fn unheard_for__says_little_where_packets_get_lost() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    (network.loses_one_in, network.loses_control) = (6, true);
    let sink = network.open(0, 1);
    let (mut looks, mut unheard) = (0_u32, 0_u32);
    for tenth in 10..300 {
        network.run(ms(100 * tenth));
        let Some(span) = network.hosts[1].control.unheard_for(network.now, sink) else { continue };
        looks += 1;
        unheard += u32::from(span > Duration::from_secs(2));
    }
    assert!(looks > 280 && unheard * 20 < looks, "{unheard} of {looks}");
}

/// Who is asked seldom is asked again soon where it does not answer.
#[test]
fn unheard_for__is_known_within_some_seconds_where_little_flows() {
    let mut network = Network::new(&[100.0, 100.0], 5);
    network.size = 0;
    let sink = network.open(0, 1);
    network.run(ms(6000));
    network.ports[0] = 2;
    // The next question is up to 5 s away, and three more follow.
    network.run(ms(14_100));
    let unheard = network.hosts[1].control.unheard_for(network.now, sink).unwrap();
    assert!(unheard >= Duration::from_secs(3), "{unheard}");
}
