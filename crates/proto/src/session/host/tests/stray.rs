//! Packets of sessions that a host does not know: stateless resets.

use proptest::prelude::*;

use super::*;
use crate::handshake::MAX_RESETS;
use crate::network::Load;
use crate::wire::codec::{Header, MAX_RESET_BYTES, MIN_RESET_BYTES, PacketKind, Reader, TOKEN_BYTES, Writer};

const IDENTITY: u64 = 4711;

/// A host that can reset sessions of those that had its identity before.
fn known(seed: u8, identity: u64) -> TestHost {
    let config = config(100.0, seed);
    let crypto = config.crypto.clone().with_resets(identity);
    Host::new(Time::ZERO, HostConfig { crypto, ..config })
}

/// A network whose first host listens with an identity, and sends to the second one, which does not have one.
fn network() -> Network {
    let mut network = between([100.0, 100.0], 5);
    network.hosts[0].host = known(0, IDENTITY);
    network
}

/// A session that is open: its names at the first host, which sends, and at the second one.
fn open(network: &mut Network) -> (SessionId, SessionId) {
    let sink = network.open(Flow::endless(0, 1));
    network.run_until(network.now.saturating_add(Duration::from_millis(500)));
    let Some(&Event::Open(opened)) = network.hosts[0].events.last() else { panic!("{}", network.describe()) };
    (opened.session, sink)
}

/// A host's answer to a packet of a session for which it has no keys.
fn answer(host: &mut TestHost, now: Time, from: SocketAddr, session: SessionId, bytes: usize) -> Option<Vec<u8>> {
    let mut datagram = vec![0; bytes.max(17)];
    let header = Header { kind: PacketKind::Data, session, number: 3 };
    header.write(&mut Writer::new(&mut datagram)).unwrap();
    hears(host, now, from, &datagram[..bytes.max(17)])
}

fn hears(host: &mut TestHost, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
    let header = Header::read(&mut Reader::new(datagram)).unwrap();
    host.handle_stray(now, from, &header, datagram)
}

/// The sessions that have ended since the last call, the reason, and whether the close came from the peer. No other
/// event occurs here.
fn ends(host: &mut TestHost) -> Vec<(SessionId, CloseReason, bool)> {
    let end = |event| match event {
        Event::Closed { session, reason, by_peer, .. } => (session, reason, by_peer),
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(|| host.poll_event()).map(end).collect()
}

fn is_reset(session: SessionId) -> (SessionId, CloseReason, bool) {
    (session, CloseReason::Reset, true)
}

#[test]
fn handle_stray__a_host_that_began_anew_ends_its_sessions() {
    let mut network = network();
    let (source, sink) = open(&mut network);
    let now = network.now;
    network.hosts[0].host = known(9, IDENTITY);
    let reset = answer(&mut network.hosts[0], now, address(1), source, 42).unwrap();
    assert_eq!(hears(&mut network.hosts[1], now, address(0), &reset), None);
    assert_eq!(ends(&mut network.hosts[1]), [is_reset(sink)]);
    // A recorded reset that is sent again ends nothing more, and the host that it was for does not answer it.
    assert_eq!(hears(&mut network.hosts[1], now, address(0), &reset), None);
    assert_eq!(ends(&mut network.hosts[1]), []);
    // Another session there is not concerned.
    let (_, other) = open(&mut network);
    assert_eq!(hears(&mut network.hosts[1], network.now, address(0), &reset), None);
    assert_eq!(ends(&mut network.hosts[1]), []);
    assert!(network.hosts[1].control.peers.get(other).and_then(|peer| peer.rtt.known()).is_some());
}

#[test]
fn handle_stray__no_other_reset_ends_a_session() {
    let mut network = network();
    let [(one, _), (other, sink)] = [open(&mut network), open(&mut network)];
    let now = network.now;
    let mut anew = known(9, IDENTITY);
    let mut of = |session| answer(&mut anew, now, address(1), session, 100).unwrap();
    let (mine, right) = (of(one), of(other));
    // The token of `one`, the attacker's session, after the id of `other`, a session of another peer.
    let front = right.len() - TOKEN_BYTES;
    let foreign = [&right[..front], &mine[mine.len() - TOKEN_BYTES..]].concat();
    let stranger = answer(&mut known(9, IDENTITY + 1), now, address(1), other, 100).unwrap();
    let host = &mut network.hosts[1];
    for (datagram, from) in [
        (&foreign, address(0)),
        (&stranger, address(0)),
        // Cut off, as the smallest control packet is.
        (&[&right[..17], &right[front..]].concat(), address(0)),
        // Of elsewhere.
        (&right, address(3)),
    ] {
        assert_eq!(hears(host, now, from, datagram), None);
        assert_eq!(ends(host), []);
    }
    for bit in 0..8 * TOKEN_BYTES {
        let mut forged = right.clone();
        forged[front + bit / 8] ^= 1 << (bit % 8);
        hears(host, now, address(0), &forged);
        assert_eq!(ends(host), [], "bit {bit}");
    }
    hears(host, now, address(0), &right);
    assert_eq!(ends(host), [is_reset(sink)]);
}

#[test]
fn handle_stray__a_session_that_is_known_is_never_reset() {
    let mut network = network();
    network.open(Flow::endless(0, 1));
    // Two round trips, and then the first packet of the session is under way: it is half open.
    network.run_until(ms(22));
    let first = network.under_way.values().find_map(|datagram| match &datagram.load {
        Load::Packet(Packet::Control(packet)) => Some(packet.session),
        _ => None,
    });
    let half_open = first.expect("it goes at once");
    assert!(network.hosts[0].keys(half_open).is_some());
    assert_eq!(answer(&mut network.hosts[0], ms(22), address(1), half_open, 1000), None);
    let (source, _) = open(&mut network);
    let now = network.now;
    assert_eq!(answer(&mut network.hosts[0], now, address(1), source, 1000), None);
    network.hosts[0].close(now, source, CloseReason::Done);
    assert_eq!(answer(&mut network.hosts[0], now, address(1), source, 1000), None, "it is closing");
    network.run_until(now.saturating_add(Duration::from_secs(1)));
    assert!(answer(&mut network.hosts[0], network.now, address(1), source, 1000).is_some(), "it is forgotten");
}

#[test]
fn handle_stray__ends_a_closing_session_in_silence() {
    let mut network = network();
    let (source, sink) = open(&mut network);
    let now = network.now;
    let reset = answer(&mut known(9, IDENTITY), now, address(1), source, 100).unwrap();
    let host = &mut network.hosts[1];
    host.close(now, sink, CloseReason::Stopped);
    ends(host);
    hears(host, now, address(0), &reset);
    assert_eq!((ends(host), host.keys(sink).is_none()), (vec![], true));
}

#[test]
fn handle_stray__who_does_not_listen_resets_nothing() {
    let mut host = host(100.0, 0);
    assert_eq!(answer(&mut host, ms(0), address(1), SessionId(77), 1000), None);
}

#[test]
fn handle_stray__resets_dwindle_between_hosts_that_both_answer() {
    let mut hosts = [known(1, 1), known(2, 2)];
    for bytes in [MIN_RESET_BYTES - 1, MIN_RESET_BYTES] {
        assert_eq!(answer(&mut hosts[0], ms(0), address(1), SessionId(77), bytes), None);
    }
    let mut datagram = answer(&mut hosts[0], ms(0), address(1), SessionId(77), 1200).unwrap();
    assert!(datagram.len() <= MAX_RESET_BYTES);
    let mut times = 1;
    while let Some(next) = hears(&mut hosts[times % 2], ms(0), address(times % 2), &datagram) {
        assert!(next.len() < datagram.len());
        (datagram, times) = (next, times + 1);
    }
    assert!(times <= MAX_RESET_BYTES - MIN_RESET_BYTES + 1, "{times}");
}

#[test]
fn handle_stray__a_flood_gets_so_many_answers_a_second() {
    let mut host = known(1, 1);
    let [of_prefix, all] = MAX_RESETS.map(usize::from);
    let mut answers = |second: u64, from: &dyn Fn(u64) -> SocketAddr| {
        let at = |index: u64| ms(1000 * second + index / 100);
        let answered = |index: &u64| answer(&mut host, at(*index), from(*index), SessionId(*index), 1200).is_some();
        (0..50_000).filter(answered).count()
    };
    // From one prefix, with many addresses.
    assert_eq!(answers(1, &|index| SocketAddr::from(([10, 0, 0, (index % 200) as u8], index as u16))), of_prefix);
    // From everywhere: at random all places of the table are in use.
    assert_eq!(
        answers(2, &|index| SocketAddr::from((((index as u32).wrapping_mul(0x9e37_79b9)).to_be_bytes(), 1))),
        all
    );
    // That was then.
    assert_eq!(answers(3, &|_| address(1)), of_prefix);
}

proptest! {
    // Each case opens a session first.
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever comes, to whatever name: no session ends of it, and what goes back is smaller.
    #[test]
    fn handle_stray__of_anything(
        strays in proptest::collection::vec((0_u8..4, any::<u64>(), 0_usize..8, 0_usize..200), 1..40),
    ) {
        let mut network = network();
        let (source, sink) = open(&mut network);
        let now = network.now;
        let reset = answer(&mut known(9, IDENTITY), now, address(1), source, 100).unwrap();
        let id = Header::read(&mut Reader::new(&reset)).unwrap().session;
        for (kind, number, name, bytes) in strays {
            let session = [source, sink, id, SessionId(number)][name % 4];
            let header = Header { kind: if kind < 2 { PacketKind::Data } else { PacketKind::Control }, session, number };
            let mut datagram = vec![number as u8; 17 + bytes];
            header.write(&mut Writer::new(&mut datagram)).unwrap();
            let (to, from) = (name / 4, 1 - name / 4);
            let back = network.hosts[to].handle_stray(now, address(from), &header, &datagram);
            prop_assert!(back.is_none_or(|back| back.len() < datagram.len()));
        }
        for host in &mut network.hosts {
            prop_assert_eq!(ends(host), []);
        }
    }
}
