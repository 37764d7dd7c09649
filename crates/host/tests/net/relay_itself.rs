//! What measures has to be right itself.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::relay::{Direction, Port, Relay, Report, Way, address, overflows};
use crate::space::Space;

/// Two hosts behind a relay, a socket on each.
struct Pair {
    relay: Relay,
    sockets: [UdpSocket; 2],
    to: SocketAddr,
    spaces: [Space; 2],
}

impl Pair {
    fn new(seed: u64, is_ipv6: bool) -> Self {
        let spaces = [0, 1].map(|_| Space::new().expect("checked before"));
        let ports = spaces.iter().enumerate().map(|(port, space)| Port::new(space, port, 1500).expect("root may"));
        let relay = Relay::start(ports.collect(), seed).expect("a thread is left");
        let bind = |port: usize| {
            let here = SocketAddr::new(address(port, 1, is_ipv6), 9000);
            let socket = spaces[port].run(|| UdpSocket::bind(here)).expect("the address is there");
            socket.set_read_timeout(Some(Duration::from_millis(700))).expect("no zero");
            // All that a test sends waits here until it is read.
            socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).expect("it is cut to what is allowed");
            socket
        };
        let sockets = [bind(0), bind(1)];
        Self { relay, sockets, to: SocketAddr::new(address(1, 1, is_ipv6), 9000), spaces }
    }

    fn send(&self, number: u64, bytes: usize) {
        let mut datagram = vec![0; bytes];
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        self.sockets[0].send_to(&datagram, self.to).expect("there is a route");
    }

    /// The numbers that arrive until nothing has come for a while.
    fn arrivals(&self) -> Vec<u64> {
        self.arrivals_until().0
    }

    /// And when the last one did.
    fn arrivals_until(&self) -> (Vec<u64>, Instant) {
        let mut buffer = [0; 2048];
        let (mut numbers, mut last) = (Vec::new(), Instant::now());
        while self.sockets[1].recv(&mut buffer).is_ok() {
            last = Instant::now();
            numbers.push(u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes")));
        }
        (numbers, last)
    }

    fn stop(self) -> Report {
        for (port, space) in self.spaces.iter().enumerate() {
            assert_eq!(overflows(space, port).expect("the device is there"), 0, "the relay is too slow");
        }
        self.relay.stop().expect("devices last")
    }
}

#[test]
fn relay__delays_each_way_as_told() {
    let Some(_turn) = crate::world() else { return };
    for is_ipv6 in [false, true] {
        let pair = Pair::new(1, is_ipv6);
        pair.relay.set(0, Direction::Up, Way::delay(Duration::from_millis(30)));
        pair.relay.set(1, Direction::Down, Way::delay(Duration::from_millis(15)));
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        pair.send(1, 100);
        let (arrived, last) = pair.arrivals_until();
        assert_eq!(arrived, [1]);
        let took = last.duration_since(begin);
        assert!(took >= Duration::from_millis(45), "{took:?}");
        println!("{}", pair.stop());
    }
}

#[test]
fn relay__the_same_seed_loses_the_same_packets() {
    let Some(_turn) = crate::world() else { return };
    let run = || {
        let pair = Pair::new(7, false);
        pair.relay.set(0, Direction::Up, Way { loss: 0.2, duplicate: 0.1, ..Way::default() });
        std::thread::sleep(Duration::from_millis(20));
        for number in 0..1000 {
            pair.send(number, 200);
        }
        pair.arrivals()
    };
    let (one, other) = (run(), run());
    assert_eq!(one, other);
    let mut kinds = one.clone();
    kinds.dedup();
    // 800 +- 5 standard deviations of 12.6; of them a tenth twice, +- 5 of 8.5.
    assert!((737..=863).contains(&kinds.len()), "{} arrived", kinds.len());
    assert!((31..=123).contains(&(one.len() - kinds.len())), "{} twice", one.len() - kinds.len());
}

#[test]
fn relay__large_packets_and_a_blackhole_vanish() {
    let Some(_turn) = crate::world() else { return };
    let pair = Pair::new(3, false);
    pair.relay.set_both(1, Way { mtu: Some(1000), ..Way::default() });
    std::thread::sleep(Duration::from_millis(20));
    pair.send(1, 1000 - 28);
    pair.send(2, 1001 - 28);
    assert_eq!(pair.arrivals(), [1]);
    pair.relay.set_both(1, Way { is_blackhole: true, ..Way::default() });
    std::thread::sleep(Duration::from_millis(20));
    pair.send(3, 100);
    assert!(pair.arrivals().is_empty());
    assert_eq!(pair.stop().lost, 2);
}

#[test]
fn relay__a_rate_holds_and_its_queue_overflows() {
    let Some(_turn) = crate::world() else { return };
    let pair = Pair::new(4, false);
    // 100 packets of 1000 bytes wait at the most, one leaves each millisecond.
    let way = Way { rate_bps: Some(8e6), queue_bytes: 100_000, ..Way::default() };
    pair.relay.set(1, Direction::Down, way);
    std::thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    for number in 0..400 {
        pair.send(number, 1000 - 28);
    }
    let sent = begin.elapsed();
    let (arrived, last) = pair.arrivals_until();
    let (arrived, took) = (arrived.len(), last.duration_since(begin));
    let report = pair.stop();
    assert_eq!(arrived as u64 + report.queue_drops, 400);
    // The last one leaves when all before it have.
    assert!(took >= Duration::from_millis(arrived as u64), "{arrived} packets in {took:?}");
    // What waited at the end of sending, and one for each millisecond until then.
    assert!(arrived <= 101 + sent.as_millis() as usize, "{arrived} packets, sent in {sent:?}");
    assert!(arrived >= 100, "{arrived} packets");
}

#[test]
fn relay__segments_of_one_large_packet_have_fates_of_their_own() {
    let Some(_turn) = crate::world() else { return };
    for is_ipv6 in [false, true] {
        let pair = Pair::new(5, is_ipv6);
        let way = Way { loss: 0.1, late: 0.1, late_by: Duration::from_millis(3), ..Way::default() };
        pair.relay.set(0, Direction::Up, way);
        std::thread::sleep(Duration::from_millis(20));
        let socket = socket2::SockRef::from(&pair.sockets[0]).try_clone().expect("a descriptor is left");
        let state = quinn_udp::UdpSocketState::new(quinn_udp::UdpSockRef::from(&socket)).expect("a UDP socket");
        if state.max_gso_segments() == 1 {
            println!("skipped: no GSO here");
            return;
        }
        for send in 0..50_u64 {
            let mut content = Vec::new();
            for segment in 0..40_u64 {
                let number = send * 40 + segment;
                content.extend((0..1000_u64).map(|at| (number * 31 + at) as u8));
                let begin = content.len() - 1000;
                content[begin..begin + 8].copy_from_slice(&number.to_be_bytes());
            }
            // The last one is shorter.
            content.truncate(content.len() - 500);
            let transmit = quinn_udp::Transmit {
                destination: pair.to,
                ecn: None,
                contents: &content,
                segment_size: Some(1000),
                src_ip: None,
            };
            state.try_send((&socket).into(), &transmit).expect("there is room");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut buffer = [0; 2048];
        let mut arrived = Vec::new();
        while let Ok(bytes) = pair.sockets[1].recv(&mut buffer) {
            let number = u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes"));
            assert_eq!(bytes, if number % 40 == 39 { 500 } else { 1000 });
            // The kernel has checked the checksums; the right bytes stand in the right segment.
            assert!((8..bytes as u64).all(|at| buffer[at as usize] == (number * 31 + at) as u8), "packet {number}");
            arrived.push(number);
        }
        let report = pair.stop();
        assert!(report.packets as f64 / report.reads as f64 > 20.0, "GSO packets were cut before the relay: {report}");
        // 1800 +- 5 standard deviations of 13.4.
        assert!((1733..=1867).contains(&arrived.len()), "{} arrived", arrived.len());
        assert!(!arrived.is_sorted(), "none came late");
        arrived.sort_unstable();
        arrived.dedup();
        assert_eq!(arrived.len() as u64 + report.lost, 2000);
    }
}
