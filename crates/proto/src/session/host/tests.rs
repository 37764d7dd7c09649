use fairwave_node::NodeConfig;
use fairwave_units::Bytes;

use super::*;
use crate::handshake::HandshakeError;
use crate::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use crate::network::{Flow, Network, Setup, TICKET, address, ms};
use crate::session::lasts::Lasts;
use crate::wire::packet::frames;

mod ahead;
mod assigned;
mod closed_sessions;
mod exchanged_claims;
mod stray;

const STREAM: u32 = 1;
const OPTIONS: Terms =
    Terms { weight: 1.0, minimum: Rate::ZERO, maximum: None, desired: None, group: 0, alpha: 0.1, beta: 0.2 };
const PHASE: Duration = Duration::from_millis(7);

fn setup(mbps: f64) -> Setup {
    let (capacity_bps, room) = (Some(mbps * 1e6), Bytes::new(100_000_000));
    Setup { capacity_bps, fair_start: false, phase: Some(PHASE), room, ..Setup::default() }
}

fn node(mbps: f64) -> NodeConfig {
    setup(mbps).node(Rate::mbps(mbps), PHASE)
}

type TestHost = Host<Insecure>;

fn host(mbps: f64, seed: u8) -> TestHost {
    Host::new(Time::ZERO, config(mbps, seed))
}

fn config(mbps: f64, seed: u8) -> HostConfig<InsecureResponder> {
    setup(mbps).config(seed.into())
}

/// Hosts of these capacities with half a round trip between them.
fn between(mbps: [f64; 2], delay_ms: u64) -> Network {
    Network::of(1, mbps.map(setup), Duration::from_millis(delay_ms))
}

/// Two hosts of 100 Mb/s, set up like this, 5 ms apart.
fn set_up(setup: Setup) -> Network {
    Network::of(1, [setup.clone(), setup], Duration::from_millis(5))
}

/// The sink, host 1, requests `bytes` from its source; returns the sink's id of the session.
fn open_for(network: &mut Network, bytes: u64) -> SessionId {
    network.open(Flow { sizes: vec![bytes], ..Flow::endless(0, 1) })
}

/// Loses one packet in `one_in`, of all kinds or only of data, in both directions.
fn lose_one_in(network: &mut Network, one_in: u64, spares_control: bool) {
    for link in network.links.iter_mut().flatten() {
        (link.loses_one_in, link.spares_control) = (one_in, spares_control);
    }
}

/// Starts or stops losing the packets sent to these hosts.
fn cut(network: &mut Network, hosts: &[usize], is_cut: bool) {
    for host in hosts {
        network.hosts[*host].address.set_port(if is_cut { 2 } else { 1 });
    }
}

/// The source's view of its session.
fn opened(network: &Network) -> Opened {
    let Some(&Event::Open(opened)) = network.hosts[0].events.first() else { panic!("{}", network.describe()) };
    opened
}

/// Megabits a second on the wire that reach host 1 up to a time.
fn mbps_until(network: &mut Network, until: Time) -> f64 {
    let (begin, before) = (network.now, network.hosts[1].delivered);
    network.run_until(until);
    // 1000 B of data are 1077 B.
    (network.hosts[1].delivered - before) as f64 * 8.0 * 1.077 / until.since(begin).as_secs_f64() / 1e6
}

/// Frames of a control packet fit into 1200 bytes; a probe of the path's size has padding after them, and the rest of a
/// hostile peer's packet of 64 KiB is not read.
#[test]
fn handle_control__reads_what_a_packet_of_1200_bytes_holds() {
    let mut network = between([100.0, 100.0], 1);
    network.open(Flow::endless(0, 1));
    network.run_until(ms(30));
    let Opened { session, .. } = opened(&network);
    let request = frames(&[Frame::Request { stream: 1, offset: 0, length: 1 }]);
    for (at, heard) in [(MAX_FRAME_BYTES - request.len(), 1), (MAX_FRAME_BYTES, 0)] {
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
    let mut network = between([100.0, 100.0], 5);
    network.open(Flow::endless(0, 1));
    network.run_until(ms(3000));
    let before = network.hosts[1].delivered;
    network.run_until(ms(4000));
    // 100 Mb/s of packets of 1000 B in 1077 B.
    let rate = (network.hosts[1].delivered - before) as f64 * 8.0 * 1077.0 / 1000.0;
    assert!((rate / 100e6 - 1.0).abs() < 0.005, "{rate}");
}

#[test]
fn handle_control__hears_what_the_packet_says_that_opens_a_session() {
    let mut network = between([100.0, 100.0], 25);
    network.open(Flow::endless(0, 1));
    // Three round trips: a cookie, an answer, and the first data for what the first packet asks for; and a tick at each
    // end.
    network.run_until(ms(150 + 2 * 20));
    assert!(network.hosts[1].delivered > 0);
}

#[test]
fn host__repairs_losses_to_the_last_byte() {
    let mut network = between([100.0, 100.0], 5);
    lose_one_in(&mut network, 7, true);
    let sink = open_for(&mut network, 5_000_000);
    network.run_until(ms(3000));
    assert_eq!(network.hosts[1].delivered, 5_000_000);
    assert!(network.hosts[1].inbound.is_complete(sink));
    let opened = opened(&network);
    let counts = network.hosts[0].outbound.counts(opened.session).unwrap();
    assert!(counts.sent < 5000 * 7 / 6 + 100, "{counts:?}");
    assert_eq!(network.hosts[0].outbound.under_way(opened.session), 0);
    // And both hear of the end.
    network.hosts[1].close(ms(3000), sink, CloseReason::Done);
    network.run_until(ms(3200));
    assert_eq!(network.hosts[0].ends(), [(opened.session, CloseReason::Done, true)]);
    assert_eq!(network.hosts[1].ends(), [(sink, CloseReason::Done, false)]);
}

#[test]
fn host__tells_an_idle_source_less_often() {
    let mut network = between([100.0, 100.0], 5);
    let sink = open_for(&mut network, 1_000_000);
    let control_until = |network: &mut Network, seconds: u64| {
        let before = [0, 1].map(|host| network.hosts[host].control_packets);
        network.run_until(ms(1000 * seconds));
        [0, 1].map(|host| network.hosts[host].control_packets - before[host])
    };
    control_until(&mut network, 2);
    assert_eq!(network.hosts[1].delivered, 1_000_000);
    // Its rate is reported every 200 ms to a source that has just sent, and is measured in the last interval.
    let [_, soon] = control_until(&mut network, 8);
    assert!(soon >= 6 * 5, "{soon} packets in 6 s");
    control_until(&mut network, 14);
    // Then each 600 ms, and each end asks for the round trip every 5 s and answers the other.
    let [source, idle] = control_until(&mut network, 74);
    assert!((100..=100 + 2 * 13).contains(&idle), "{idle} packets of the sink in a minute");
    // Reports are frequent enough that the source asks for nothing more.
    assert!(source <= 2 * 13, "{source} packets of the source in a minute");
    // And as often as before when it sends again.
    network.hosts[1].want(network.now, sink, STREAM, 2_000_000..3_000_000);
    let [_, again] = control_until(&mut network, 80);
    assert_eq!(network.hosts[1].delivered, 2_000_000);
    assert!(again >= 6 * 5, "{again} packets in 6 s");
}

#[test]
fn close__tells_what_both_ends_have_counted() {
    let mut network = between([100.0, 100.0], 5);
    lose_one_in(&mut network, 50, true);
    let sink = open_for(&mut network, 5_000_000);
    network.run_until(ms(3000));
    let data = network.links[0][1].counts.counted;
    let lost = data / 50;
    assert!(lost >= 100, "{lost}");
    network.hosts[1].close(ms(3000), sink, CloseReason::Done);
    network.run_until(ms(3200));
    let Some(Event::Closed { counts: (sent, _), .. }) = network.hosts[0].events.last() else { panic!("it is open") };
    let Some(Event::Closed { counts: (_, received), .. }) = network.hosts[1].events.last() else {
        panic!("it is open")
    };
    assert_eq!((sent.sent, sent.lost), (data, lost), "{sent:?}");
    assert_eq!((received.bytes, received.missed_packets), (5_000_000, lost), "{received:?}");
}

#[test]
fn host__closes_a_session_whose_keys_are_old() {
    let lasts = Lasts { keys: Duration::from_secs(2), ..Lasts::default() };
    let mut network = set_up(Setup { lasts, ..setup(100.0) });
    let sink = network.open(Flow::endless(0, 1));
    network.run_until(ms(2000));
    let opened = opened(&network);
    assert_eq!((network.hosts[0].events.len(), network.hosts[1].events.len()), (1, 0), "it is not that old yet");
    // The handshake took two round trips; it is looked after each 200 ms.
    network.run_until(ms(2000 + 20 + 200 + 10));
    // The sink opened it, and is the first whose keys are so old.
    assert_eq!(network.hosts[0].ends(), [(opened.session, CloseReason::Keys, true)]);
    assert_eq!(network.hosts[1].ends(), [(sink, CloseReason::Keys, false)]);
    let there = network.hosts[1].delivered;
    network.run_until(ms(4000));
    assert_eq!(network.hosts[1].delivered, there);
}

#[test]
fn host__is_as_patient_with_a_silent_peer_as_it_is_told() {
    for seconds in [1, 5] {
        let lasts = Lasts { silent: Duration::from_secs(seconds), ..Lasts::default() };
        let mut network = set_up(Setup { lasts, ..setup(100.0) });
        let sink = network.open(Flow::endless(0, 1));
        network.run_until(ms(1000));
        // From now on nothing arrives anywhere.
        cut(&mut network, &[0, 1], true);
        network.run_until(ms(1000 + seconds * 1000 - 100));
        assert_eq!(network.hosts[1].events, []);
        network.run_until(ms(1000 + seconds * 1000 + 500));
        assert_eq!(network.hosts[1].ends(), [(sink, CloseReason::Silence, false)]);
        let is_silence = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Silence, .. });
        assert!(network.hosts[0].events.iter().any(is_silence), "{:?}", network.hosts[0].events);
    }
}

#[test]
fn connect__without_a_ticket_fails_after_a_while() {
    let mut network = between([100.0, 100.0], 5);
    network.hosts[0].control.handshakes.crypto().clone_from(&InsecureResponder::new(1, []));
    let session = network.open(Flow::endless(0, 1));
    network.run_until(Time::from_secs(6));
    assert_eq!(network.hosts[1].events, [Event::Failed { session, error: HandshakeError::NoAnswer }]);
    assert_eq!(network.hosts[0].events, []);
}

#[test]
fn host__lets_a_session_be_that_sends_nothing() {
    let mut network = set_up(Setup { fair_start: true, ..setup(100.0) });
    // It may start with all, wants nothing, and shares with three others later.
    open_for(&mut network, 0);
    network.run_until(ms(200));
    for _ in 0..3 {
        network.open(Flow::endless(0, 1));
    }
    network.run_until(ms(3000));
    let closed = |event: &Event| matches!(event, Event::Closed { .. });
    assert!(!network.hosts.iter().flat_map(|host| &host.events).any(closed), "{}", network.describe());
    // And the others have what it does not use.
    let before = network.hosts[1].delivered;
    network.run_until(ms(4000));
    let rate = (network.hosts[1].delivered - before) as f64 * 8.0 * 1077.0 / 1000.0;
    assert!(rate > 98e6, "{rate}");
}

#[test]
fn host__without_a_capacity_asks_for_more_than_the_least_window() {
    let setup = Setup { capacity_bps: None, room: Bytes::new(1 << 30), ..setup(1.0) };
    let mut network = Network::of(1, [setup.clone(), setup], Duration::from_millis(100));
    network.open(Flow::endless(0, 1));
    network.run_until(ms(3500));
    let before = network.hosts[1].delivered;
    network.run_until(ms(4000));
    // 2 MB a round trip of 200 ms are 5 MB in half a second.
    let bytes = network.hosts[1].delivered - before;
    assert!(bytes > 10_000_000, "{bytes}");
}

#[test]
fn host__follows_an_initiator_that_moves() {
    let mut network = between([100.0, 100.0], 5);
    let sink = open_for(&mut network, 20_000_000);
    network.run_until(ms(1000));
    assert!(!network.hosts[1].inbound.is_complete(sink));
    cut(&mut network, &[1], true);
    network.run_until(ms(5000));
    assert_eq!(network.hosts[1].delivered, 20_000_000);
    assert!(network.hosts[1].inbound.is_complete(sink));
}

#[test]
fn host__finds_the_size_that_a_path_takes_and_notices_when_it_shrinks() {
    let mut network = set_up(Setup { piece_bytes: 8000, probes_mtu: true, ..setup(100.0) });
    let limit = |network: &mut Network, largest| {
        for link in network.links.iter_mut().flatten() {
            link.largest = largest;
            link.counts.sizes.clear();
        }
    };
    let most = |network: &Network| {
        let sizes = &network.links[0][1].counts.sizes;
        sizes.iter().max_by_key(|(_, count)| **count).map(|(bytes, _)| *bytes)
    };
    limit(&mut network, 1472);
    network.open(Flow::endless(0, 1));
    network.run_until(ms(9000));
    limit(&mut network, 1472);
    network.run_until(ms(9500));
    let found = most(&network);
    assert!(found.is_some_and(|most| (1456..=1472).contains(&most)), "{found:?}");
    let before = network.hosts[1].delivered;
    limit(&mut network, 1300);
    network.run_until(ms(15_500));
    // One second of silence and recovery at most; then full speed with 1200 bytes a datagram.
    assert!(network.hosts[1].delivered - before > 5 * 11_000_000, "{}", network.hosts[1].delivered - before);
    assert_eq!(most(&network), Some(1200));
}

#[test]
fn host__keeps_its_rate_while_packets_of_all_kinds_get_lost() {
    for mbps in [4.0, 40.0] {
        let mut network = between([100.0, mbps], 25);
        lose_one_in(&mut network, 11, false);
        network.open(Flow::endless(0, 1));
        network.run_until(ms(5000));
        for second in 5..40 {
            let before = network.hosts[1].delivered;
            network.run_until(ms(1000 * (second + 1)));
            let rate = (network.hosts[1].delivered - before) as f64 * 8.0 / 1e6;
            assert!(rate > 0.75 * mbps, "{rate} of {mbps} Mb/s in second {second}");
        }
    }
}

#[test]
fn set_desired__is_not_exceeded_after_a_stall() {
    let mut network = between([100.0, 100.0], 5);
    network.open(Flow::endless(0, 1));
    network.run_until(ms(500));
    let opened = opened(&network);
    network.hosts[0].set_desired(ms(500), opened.session, Rate::mbps(30.0));
    network.run_until(ms(2000));
    // No thread runs for 60 ms, which is shorter than a silence. The sink treats it as a pause, and grants less for an
    // interval or two.
    network.hosts.iter_mut().for_each(|host| host.pauses.push(ms(2000)..ms(2060)));
    network.run_until(ms(2070));
    let rate = mbps_until(&mut network, ms(2310));
    assert!((25.0..30.4).contains(&rate), "{rate} Mb/s, and 30 are desired");
}

#[test]
fn set_ceiling__holds_whatever_is_granted_and_whatever_stalls() {
    for has_node in [true, false] {
        let mut network = between([100.0, 100.0], 5);
        for (seed, host) in network.hosts.iter_mut().enumerate().filter(|_| !has_node) {
            host.host = Host::new(Time::ZERO, HostConfig { receiving: None, ..config(100.0, seed as u8) });
        }
        let sink = network.open(Flow::endless(0, 1));
        network.run_until(ms(1000));
        network.hosts[1].set_ceiling(ms(1000), sink, Some(Rate::mbps(30.0)));
        network.run_until(ms(1200));
        let rate = mbps_until(&mut network, ms(2200));
        assert!((29.5..30.3).contains(&rate), "{rate} Mb/s, {has_node}");
        // For two seconds nothing arrives anywhere.
        cut(&mut network, &[0, 1], true);
        network.run_until(ms(4200));
        cut(&mut network, &[0, 1], false);
        let mut most: f64 = 0.0;
        for half in 0..8 {
            most = most.max(mbps_until(&mut network, ms(4700 + 500 * half)));
        }
        assert!((29.5..30.6).contains(&most), "{most} Mb/s, {has_node}");
        network.hosts[1].set_ceiling(ms(8200), sink, None);
        network.run_until(ms(10_000));
        let rate = mbps_until(&mut network, ms(10_500));
        assert!(rate > 90.0, "{rate} Mb/s, {has_node}");
    }
}

#[test]
fn unanswered_for__counts_only_while_the_peer_owes_an_answer() {
    let mut network = between([100.0, 100.0], 5);
    let sink = open_for(&mut network, 0);
    let (mut silent, mut unanswered) = (Duration::ZERO, Duration::ZERO);
    for tenth in 10..300 {
        network.run_until(ms(100 * tenth));
        let control = &network.hosts[1].control;
        silent = silent.max(control.peers.get(sink).map(|peer| network.now.since(peer.heard)).unwrap());
        unanswered = unanswered.max(control.peers.get(sink).map(|peer| peer.unanswered_for(network.now)).unwrap());
    }
    // Nothing flows, and each asks the other every 5 s: an answer takes a round trip of 10 ms.
    assert!(silent >= Duration::from_secs(2), "{silent}");
    assert!(unanswered <= Duration::from_millis(10), "{unanswered}");
    cut(&mut network, &[0, 1], true);
    network.run_until(ms(38_000));
    let unanswered = network.hosts[1].control.peers.get(sink).map(|peer| peer.unanswered_for(network.now)).unwrap();
    assert!(unanswered >= Duration::from_millis(2900), "{unanswered}");
}

#[test]
fn unheard_for__grows_where_the_peer_is_heard_and_nothing_gets_there() {
    let mut network = between([100.0, 100.0], 5);
    let sink = network.open(Flow::endless(0, 1));
    network.run_until(ms(6000));
    let waits = |network: &Network| {
        let control = &network.hosts[1].control;
        let [silent, unanswered] = [
            control.peers.get(sink).map(|peer| network.now.since(peer.heard)),
            control.peers.get(sink).map(|peer| peer.unanswered_for(network.now)),
        ];
        [silent, unanswered, control.peers.get(sink).map(|peer| peer.unheard_for(network.now))].map(Option::unwrap)
    };
    assert_eq!(waits(&network)[2], Duration::ZERO);
    // Packets to the source are lost, and packets from it arrive.
    cut(&mut network, &[0], true);
    network.run_until(ms(14_000));
    let [silent, unanswered, unheard] = waits(&network);
    assert!(silent < Duration::from_secs(2) && unanswered < Duration::from_secs(2), "{silent} {unanswered}");
    // Since the first probe that was lost.
    assert!((Duration::from_millis(7700)..=Duration::from_millis(8000)).contains(&unheard), "{unheard}");
    cut(&mut network, &[0], false);
    network.run_until(ms(16_000));
    assert_eq!(waits(&network)[2], Duration::ZERO);
}

/// If many packets get lost both ways, data still flow, and the source knows almost all of the time that it is heard.
#[test]
fn unheard_for__says_little_where_packets_get_lost() {
    let mut network = between([100.0, 100.0], 5);
    lose_one_in(&mut network, 6, false);
    let sink = network.open(Flow::endless(0, 1));
    let (mut looks, mut unheard) = (0_u32, 0_u32);
    for tenth in 10..300 {
        network.run_until(ms(100 * tenth));
        let Some(span) = network.hosts[1].control.peers.get(sink).map(|peer| peer.unheard_for(network.now)) else {
            continue;
        };
        looks += 1;
        unheard += u32::from(span > Duration::from_secs(2));
    }
    assert!(looks > 280 && unheard * 20 < looks, "{unheard} of {looks}");
}

/// A peer that is seldom asked is soon asked again if it does not answer.
#[test]
fn unheard_for__is_known_within_some_seconds_where_little_flows() {
    let mut network = between([100.0, 100.0], 5);
    let sink = open_for(&mut network, 0);
    network.run_until(ms(6000));
    cut(&mut network, &[0], true);
    // The next question is up to 5 s away, and three more follow.
    network.run_until(ms(14_100));
    let unheard = network.hosts[1].control.peers.get(sink).map(|peer| peer.unheard_for(network.now)).unwrap();
    assert!(unheard >= Duration::from_secs(3), "{unheard}");
}
