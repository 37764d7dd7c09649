//! The first claim and the first grant, sent with the handshake.

use fairwave_node::ExchangeConfig;
use fairwave_schemes::node::tally::TallyOptions;

use super::*;
use crate::handshake::{AttemptProgress, HandshakeTerms, Initiator};
use crate::path::path_kind::PathDeclaration;
use crate::wire::codec::Ahead;
use crate::wire::features::Features;

/// A host of 100 Mb/s that exchanges claims and grants.
fn claiming(seed: u8) -> TestHost {
    let options = TallyOptions { packet: Bytes::new(1105), ..TallyOptions::default() };
    let exchange = Some(ExchangeConfig { options, react: Some(Duration::from_millis(1)) });
    let node = || Some(NodeConfig { exchange, ..super::node(100.0) });
    Host::new(Time::ZERO, HostConfig { sending: node(), receiving: node(), ..config(100.0, seed) })
}

fn network(delay_ms: u64) -> Network {
    let mut network = between([100.0, 100.0], delay_ms);
    (0..2).for_each(|at| network.hosts[at].host = claiming(at as u8));
    network
}

/// Mb/s of packets that carry `bytes` of stream in `ms` milliseconds.
fn mbps(bytes: u64, ms: u64) -> f64 {
    bytes as f64 * 1.077 * 8.0 / 1e3 / ms as f64
}

/// A sink asks a source for a session: the source's answer carries its claim, and the grant goes with the packet that
/// opens the session. Otherwise the source would receive the grant a round trip later.
#[test]
fn open__a_lone_source_that_answers_sends_at_its_full_rate_from_the_first_packet_on() {
    let mut network = network(25);
    network.open(Flow::endless(0, 1));
    // Hello, cookie, hello, answer: 100 ms; the session is open at the source at 125 ms, and its first data come at 150.
    network.run_until(ms(150));
    assert_eq!(network.hosts[1].delivered, 0);
    network.run_until(ms(200));
    let rate = mbps(network.hosts[1].delivered, 50);
    assert!((95.0..102.0).contains(&rate), "{rate} Mb/s");
}

/// If the source asks, the sink promises with its answer. Its requests still come a round trip later.
#[test]
fn open__a_lone_source_that_asks_sends_at_its_full_rate_from_the_first_packet_on() {
    let mut network = network(25);
    let session = network.open(Flow { is_fetched: false, ..Flow::endless(0, 1) });
    network.run_until(ms(100));
    let limit = |network: &Network, term| network.hosts[0].limit(session, term).map(Rate::as_mbps);
    let limits = [RateTerm::Source, RateTerm::Sink].map(|term| limit(&network, term));
    assert_eq!(limits, [Some(100.0), Some(100.0)]);
    assert_eq!(network.hosts[1].reserved().map(Rate::as_mbps), Some(100.0));
    // The session is open at the sink at 125 ms; what it asks for comes at 175.
    network.run_until(ms(225));
    let rate = mbps(network.hosts[1].delivered, 50);
    assert!((95.0..102.0).contains(&rate), "{rate} Mb/s");
}

/// A hello with its cookie that nobody will follow up, and what the host promised in its answer, bit/s.
fn never_confirmed(host: &mut TestHost, now: Time, nonce: u64) -> (SocketAddr, Vec<u8>, u64) {
    let from = SocketAddr::from(([10, 1, (nonce >> 8) as u8, nonce as u8], 9));
    let terms = HandshakeTerms {
        session: SessionId(nonce + 1),
        declared: PathDeclaration::Dedicated,
        is_plain: false,
        weight: 1.0,
        send_end: Some((Rate::ZERO, 1.0)),
        receive_end: None,
        largest_packet: 1500,
        features: Features { claims: true, grants: true },
        ahead: Ahead::default(),
    };
    let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, nonce);
    let mut initiator = Initiator::new(now, crypto, terms, (true, false), b"").unwrap();
    let mut last = Vec::new();
    for _ in 0..2 {
        last = initiator.poll_transmit(now).unwrap().to_vec();
        for answer in answers(host, now, from, &last) {
            if let AttemptProgress::Established(established) = initiator.handle(now, &answer) {
                return (from, last, established.ahead.promise_bps);
            }
        }
    }
    (from, last, 0)
}

fn answers(host: &mut TestHost, now: Time, from: SocketAddr, hello: &[u8]) -> Vec<Vec<u8>> {
    host.handle_handshake(now, from, hello, &mut |_| Ok(OPTIONS));
    let sent = std::iter::from_fn(|| host.poll_transmit(now));
    let of_handshake = sent.filter_map(|transmit| match transmit.packet {
        Packet::Handshake(bytes) => Some(bytes),
        Packet::Data(_) | Packet::Control(_) => None,
    });
    of_handshake.collect()
}

fn reserved_mbps(host: &TestHost) -> f64 {
    host.reserved().map_or(0.0, Rate::as_mbps)
}

#[test]
fn promise__one_hello_is_promised_once_however_often_it_comes() {
    let mut host = claiming(1);
    let (from, hello, promised) = never_confirmed(&mut host, ms(0), 0);
    assert_eq!((promised, reserved_mbps(&host)), (100_000_000, 100.0));
    let first = answers(&mut host, ms(1), from, &hello);
    for again in 2..4990 {
        assert_eq!(answers(&mut host, ms(again), from, &hello), first);
        assert!(reserved_mbps(&host) <= 100.0);
    }
    // From somewhere else the cookie is not good, and nothing is promised.
    let elsewhere = SocketAddr::from(([10, 2, 0, 1], 9));
    assert_ne!(answers(&mut host, ms(4990), elsewhere, &hello), first);
    assert_eq!(reserved_mbps(&host), 100.0);
}

/// Hellos of a holder of the ticket that are never followed up, for 20 s, one each 100 ms.
#[test]
fn promise__a_flood_of_hellos_leaves_nearly_all_to_those_who_come() {
    let mut network = network(5);
    let mut promised = Vec::new();
    for nonce in 0..200 {
        network.run_until(ms(nonce * 100));
        promised.push(never_confirmed(&mut network.hosts[1], ms(nonce * 100), nonce).2);
        assert!(reserved_mbps(&network.hosts[1]) <= 100.0);
    }
    // In the first 5 s one of them was promised the whole capacity, then one a half of it, a quarter, an eighth.
    let most = |from: usize| promised[from..from + 50].iter().sum::<u64>() as f64 / 1e6;
    assert_eq!([0, 50, 100, 150].map(most), [100.0, 50.0, 25.0, 12.5]);
    network.open(Flow::endless(0, 1));
    network.run_until(ms(20_500));
    let before = network.hosts[1].delivered;
    network.run_until(ms(21_000));
    let rate = mbps(network.hosts[1].delivered - before, 500);
    assert!(rate > 87.0, "{rate} Mb/s");
}

/// A host that shares by plain GTP is promised nothing, and promises nothing.
#[test]
fn promise__nothing_beside_plain_gtp() {
    for plain in [0, 1] {
        let mut network = network(5);
        network.hosts[plain].host = host(100.0, plain as u8);
        let session = network.open(Flow { is_fetched: false, ..Flow::endless(0, 1) });
        network.run_until(ms(20));
        assert_eq!(network.hosts[0].limit(session, RateTerm::Sink), Some(Rate::ZERO));
        network.run_until(ms(3000));
        let before = network.hosts[1].delivered;
        network.run_until(ms(4000));
        let rate = mbps(network.hosts[1].delivered - before, 1000);
        assert!(rate > 98.0, "{plain}: {rate} Mb/s");
    }
}
