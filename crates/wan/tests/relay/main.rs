//! The measuring instrument has to be correct. Root is needed; without it these tests print a message and do nothing.

#![allow(non_snake_case)]

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fairwave_testing::{LIMIT, wait_for};
use fairwave_wan::{Direction, Port, Relay, Report, Space, Way, address, overflows, world};

/// Two hosts behind a relay, a socket on each.
struct Pair {
    relay: Relay,
    sockets: [UdpSocket; 2],
    to: SocketAddr,
    spaces: [Space; 2],
    /// Packets sent, and bytes of IP packets received.
    sent: Cell<u64>,
    received_bytes: Cell<u64>,
}

/// Maximum packets that wait for the relay in its device, which has room for 500.
const AHEAD: u64 = 100;

impl Pair {
    fn new(seed: u64, is_ipv6: bool) -> Self {
        Self::with(seed, is_ipv6, Port::new)
    }

    /// A pair with devices of that kind.
    fn with(seed: u64, is_ipv6: bool, device: fn(&Space, usize, u32) -> std::io::Result<Port>) -> Self {
        let spaces = [0, 1].map(|_| Space::new().expect("checked before"));
        let ports = spaces.iter().enumerate().map(|(port, space)| device(space, port, 1500).expect("root may"));
        let relay = Relay::start(ports.collect(), seed).expect("a thread is left");
        let bind = |port: usize| {
            let here = SocketAddr::new(address(port, 1, is_ipv6), 9000);
            let socket =
                spaces[port].run(|| UdpSocket::bind(here)).expect("a thread is left").expect("the address is there");
            socket.set_read_timeout(Some(LIMIT)).expect("no zero");
            // All packets of a test wait here until they are read.
            socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).expect("it is cut to what is allowed");
            socket
        };
        let sockets = [bind(0), bind(1)];
        let to = SocketAddr::new(address(1, 1, is_ipv6), 9000);
        Self { relay, sockets, to, spaces, sent: Cell::new(0), received_bytes: Cell::new(0) }
    }

    /// Changes a way, and waits until that is in force.
    fn set(&self, port: usize, direction: Direction, way: Way) {
        self.relay.set(port, direction, way);
        wait_for("the change is in force", || self.relay.is_up_to_date());
    }

    /// Counts packets that were sent, and waits while the relay is too far behind.
    fn count(&self, packets: u64) {
        self.sent.set(self.sent.get() + packets);
        wait_for("the relay takes packets", || self.relay.taken() + AHEAD >= self.sent.get());
    }

    fn send(&self, number: u64, bytes: usize) {
        let mut datagram = vec![0; bytes];
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        self.sockets[0].send_to(&datagram, self.to).expect("there is a route");
        self.count(1);
    }

    /// Sends packets with the numbers from zero on as one large one; returns false, after printing the reason, if that
    /// is not possible.
    fn send_together(&self, packets: u64, bytes: usize, ecn: Option<quinn_udp::EcnCodepoint>) -> bool {
        let state = quinn_udp::UdpSocketState::new((&self.sockets[0]).into()).expect("a UDP socket");
        if state.max_gso_segments() < packets as usize {
            println!("skipped: no GSO here");
            return false;
        }
        let mut content = Vec::new();
        for number in 0..packets {
            content.extend(number.to_be_bytes());
            content.resize(content.len() + bytes - 8, 0);
        }
        let (contents, segment_size) = (content.as_slice(), Some(bytes));
        let transmit = quinn_udp::Transmit { destination: self.to, ecn, contents, segment_size, src_ip: None };
        state.try_send((&self.sockets[0]).into(), &transmit).expect("there is room");
        self.count(packets);
        true
    }

    /// The ECN codes of the next `packets` arrivals.
    fn codes(&self, packets: usize) -> Vec<Option<quinn_udp::EcnCodepoint>> {
        let state = quinn_udp::UdpSocketState::new((&self.sockets[1]).into()).expect("a UDP socket");
        self.sockets[1].set_nonblocking(false).expect("a socket");
        let mut codes = Vec::new();
        while codes.len() < packets {
            let mut content = vec![0; 1 << 16];
            let mut meta = [quinn_udp::RecvMeta::default()];
            let mut slices = [std::io::IoSliceMut::new(&mut content)];
            state.recv((&self.sockets[1]).into(), &mut slices, &mut meta).expect("it comes");
            codes.extend((0..meta[0].len.div_ceil(meta[0].stride)).map(|_| meta[0].ecn));
        }
        codes
    }

    /// The numbers that have arrived when the relay has carried all packets.
    fn arrivals(&self) -> Vec<u64> {
        wait_for("the relay has carried all", || self.relay.has_carried(self.sent.get()));
        let header_bytes = if self.to.is_ipv6() { 48 } else { 28 };
        let mut buffer = [0; 2048];
        let mut numbers = Vec::new();
        while self.received_bytes.get() < self.relay.delivered(0, 1) {
            let bytes = self.sockets[1].recv(&mut buffer).expect("the relay has handed it over");
            self.received_bytes.set(self.received_bytes.get() + bytes as u64 + header_bytes);
            numbers.push(u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes")));
        }
        numbers
    }

    fn stop(self) -> Report {
        for (port, space) in self.spaces.iter().enumerate() {
            assert_eq!(overflows(space, port).expect("the device is there"), 0, "the relay is too slow");
        }
        self.relay.stop().expect("devices last")
    }
}

#[test]
fn relay__veths_carry_the_same_packets_as_tun() {
    let Some(_turn) = world() else { return };
    for is_ipv6 in [false, true] {
        for (kind, device) in [("tun", Port::by_tun as fn(&Space, usize, u32) -> _), ("veth", Port::by_veth)] {
            let pair = Pair::with(7, is_ipv6, device);
            // Some of the ten that come as one are lost: the others are cut out, with correct checksums.
            pair.set(0, Direction::Up, Way { loss: 0.3, ..Way::delay(Duration::from_millis(5)) });
            if !pair.send_together(10, 1200, None) {
                return;
            }
            let arrived = pair.arrivals();
            let report = pair.stop();
            println!("{kind}, IPv6 {is_ipv6}: {arrived:?}; {report}");
            assert_eq!((report.packets, report.reads), (10, 1), "{kind}: they come to the relay as one");
            assert_eq!(report.lost as usize + arrived.len(), 10, "{kind}");
            assert!(report.lost > 0 && arrived.len() > 1, "{kind}: both happen with this seed");
            assert!(arrived.is_sorted(), "{kind}: {arrived:?}");
        }
    }
}

#[test]
fn relay__delays_each_way() {
    let Some(_turn) = world() else { return };
    for is_ipv6 in [false, true] {
        let pair = Pair::new(1, is_ipv6);
        pair.set(0, Direction::Up, Way::delay(Duration::from_millis(30)));
        pair.set(1, Direction::Down, Way::delay(Duration::from_millis(15)));
        let begin = Instant::now();
        pair.send(1, 100);
        assert_eq!(pair.arrivals(), [1]);
        assert!(begin.elapsed() >= Duration::from_millis(45), "{:?}", begin.elapsed());
        println!("{}", pair.stop());
    }
}

#[test]
fn relay__the_same_seed_loses_the_same_packets() {
    let Some(_turn) = world() else { return };
    let run = || {
        let pair = Pair::new(7, false);
        pair.set(0, Direction::Up, Way { loss: 0.2, duplicate: 0.1, ..Way::default() });
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
    let Some(_turn) = world() else { return };
    let pair = Pair::new(3, false);
    pair.set(1, Direction::Down, Way { mtu: Some(1000), ..Way::default() });
    pair.send(1, 1000 - 28);
    pair.send(2, 1001 - 28);
    assert_eq!(pair.arrivals(), [1]);
    pair.set(1, Direction::Down, Way { is_blackhole: true, ..Way::default() });
    pair.send(3, 100);
    assert!(pair.arrivals().is_empty());
    assert_eq!(pair.stop().lost, 2);
}

#[test]
fn relay__a_rate_holds_and_its_queue_overflows() {
    let Some(_turn) = world() else { return };
    let pair = Pair::new(4, false);
    // At most 100 packets of 1000 bytes wait, one leaves each millisecond.
    pair.set(1, Direction::Down, Way { rate_bps: Some(8e6), queue_bytes: 100_000, ..Way::default() });
    let begin = Instant::now();
    for number in 0..400 {
        pair.send(number, 1000 - 28);
    }
    wait_for("the relay takes the last one", || pair.relay.taken() >= 400);
    let taken = begin.elapsed();
    let arrived = pair.arrivals().len();
    let took = begin.elapsed();
    let report = pair.stop();
    assert_eq!(arrived as u64 + report.queue_drops, 400);
    // The last one leaves when all before it have.
    assert!(took >= Duration::from_millis(arrived as u64), "{arrived} packets in {took:?}");
    // The full queue when the relay read the last one, and one for each millisecond until then.
    assert!(arrived <= 101 + taken.as_millis() as usize, "{arrived} packets, taken in {taken:?}");
    assert!(arrived >= 100, "{arrived} packets");
}

#[test]
fn relay__segments_of_one_large_packet_have_fates_of_their_own() {
    let Some(_turn) = world() else { return };
    for is_ipv6 in [false, true] {
        let pair = Pair::new(5, is_ipv6);
        let way = Way { loss: 0.1, late: 0.1, late_by: Duration::from_millis(3), ..Way::default() };
        pair.set(0, Direction::Up, way);
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
            pair.count(40);
        }
        wait_for("the relay has carried all", || pair.relay.has_carried(2000));
        let mut buffer = [0; 2048];
        let (mut arrived, mut received_bytes) = (Vec::new(), 0);
        while received_bytes < pair.relay.delivered(0, 1) {
            let bytes = pair.sockets[1].recv(&mut buffer).expect("the relay has handed it over");
            received_bytes += bytes as u64 + if is_ipv6 { 48 } else { 28 };
            let number = u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes"));
            assert_eq!(bytes, if number % 40 == 39 { 500 } else { 1000 });
            // The kernel has checked the checksums; the correct bytes are in the correct segment.
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

/// The unit tests of the backlog have the exact departures.
#[test]
fn relay__is_no_faster_than_its_rate_also_after_a_change() {
    let Some(_turn) = world() else { return };
    let way = Way { rate_bps: Some(8e6), queue_bytes: 1_000_000, ..Way::default() };
    let pair = Pair::new(0, false);
    pair.set(1, Direction::Down, way);
    // 250 packets of 1000 bytes take 250 ms at 8 Mb/s.
    let begin = Instant::now();
    (0..250).for_each(|number| pair.send(number, 1000 - 28));
    assert_eq!(pair.arrivals().len(), 250);
    assert!(begin.elapsed() >= Duration::from_millis(250), "{:?}", begin.elapsed());
    // 100 ms wait at 8 Mb/s. Packets that still wait when the rate falls take twice as long.
    let begin = Instant::now();
    (0..100).for_each(|number| pair.send(number, 1000 - 28));
    pair.set(1, Direction::Down, Way { rate_bps: Some(4e6), ..way });
    let before = begin.elapsed();
    assert_eq!(pair.arrivals(), (0..100).collect::<Vec<_>>());
    let took = begin.elapsed();
    assert!(took + before >= Duration::from_millis(200), "{took:?}, changed after {before:?}");
    pair.stop();
}

#[test]
fn relay__queue_is_bounded_and_reports_waiting_times() {
    let Some(_turn) = world() else { return };
    let pair = Pair::new(8, false);
    pair.set(1, Direction::Down, Way { rate_bps: Some(8e6), queue_bytes: 30_000, ..Way::default() });
    for number in 0..200 {
        pair.send(number, 1000 - 28);
    }
    let arrived = pair.arrivals().len();
    let report = pair.stop();
    let flow = &report.flows[0][1];
    assert_eq!((flow.packets, flow.queue_drops), (arrived as u64, 200 - arrived as u64), "{report}");
    assert!(flow.queue_drops > 50, "{report}");
    // A packet of 1 ms finds at most 29 of them before it that leave room for one more; a dropped one finds 30.
    let longest = *report.waits[1][Direction::Down as usize].iter().max().expect("some waited");
    assert!((29..=30).contains(&longest.as_millis()), "{longest:?}");
    assert!(report.waits[1][Direction::Up as usize].is_empty(), "that way has no rate");
}

#[test]
fn relay__late_packets_are_overtaken_without_loss() {
    let Some(_turn) = world() else { return };
    let pair = Pair::new(0, false);
    pair.set(0, Direction::Up, Way { late: 0.05, late_by: Duration::from_millis(20), ..Way::default() });
    (0..2000).for_each(|number| pair.send(number, 200));
    let arrived = pair.arrivals();
    let held_back = pair.stop().flows[0][1].held_back as usize;
    // 100 +- 5 standard deviations of 9.7.
    assert!((51..=149).contains(&held_back), "{held_back} were late");
    assert_eq!(arrived.len(), 2000);
    // A packet is overtaken if it arrives after one with a larger number.
    let mut largest = 0;
    let mut overtaken = 0;
    for number in arrived {
        overtaken += usize::from(number < largest);
        largest = largest.max(number);
    }
    // Packets that were late while this test stood still are not overtaken.
    assert!((held_back / 2..=held_back).contains(&overtaken), "{overtaken} of {held_back} were overtaken");
}

#[test]
fn relay__even_ways_send_segments_one_by_one() {
    let Some(_turn) = world() else { return };
    for is_even in [true, false] {
        let pair = Pair::new(0, false);
        pair.set(1, Direction::Down, Way { rate_bps: Some(8e6), queue_bytes: 1_000_000, is_even, ..Way::default() });
        // From here on the socket receives a large packet whole.
        let state = quinn_udp::UdpSocketState::new((&pair.sockets[1]).into()).expect("a UDP socket");
        if state.gro_segments() < 40 || !pair.send_together(40, 1000 - 28, None) {
            println!("skipped: no GSO or GRO here");
            return;
        }
        wait_for("the relay has carried all", || pair.relay.has_carried(40));
        // A large packet is received whole.
        let mut reads = Vec::new();
        while reads.iter().sum::<usize>() < 40 {
            reads.push(pair.codes(1).len());
        }
        assert_eq!(reads, if is_even { vec![1; 40] } else { vec![40] });
        pair.stop();
    }
}

#[test]
fn relay__marks_ecn_capable_packets_at_a_long_queue() {
    let Some(_turn) = world() else { return };
    for is_ipv6 in [false, true] {
        for ecn in [Some(quinn_udp::EcnCodepoint::Ect0), None] {
            let pair = Pair::new(10, is_ipv6);
            let (rate_bps, queue_bytes) = (Some(8e6), 1_000_000);
            let way = Way { rate_bps, queue_bytes, mark_bytes: 20_000, is_even: true, ..Way::default() };
            pair.set(1, Direction::Down, way);
            if !pair.send_together(40, 1000 - if is_ipv6 { 48 } else { 28 }, ecn) {
                return;
            }
            let codes = pair.codes(40);
            let marked = codes.iter().filter(|code| **code == Some(quinn_udp::EcnCodepoint::Ce)).count();
            let report = pair.stop();
            assert_eq!(report.flows[0][1].marked, marked as u64);
            // Twenty packets find at most 20 kB before them (one more by the elapsed time), and are not marked.
            assert_eq!(codes[..20], [ecn; 20]);
            assert!(if ecn.is_some() { (18..=19).contains(&marked) } else { marked == 0 }, "{marked} were marked");
        }
    }
}

#[test]
fn relay__detour_delays_packets_between_its_addresses() {
    let Some(_turn) = world() else { return };
    let pair = Pair::new(0, false);
    let other = address(0, 2, false);
    pair.spaces[0].add_address(&fairwave_wan::device(0), other, 32).expect("root may");
    pair.relay.set_detour(other, pair.to.ip(), Duration::from_millis(40));
    wait_for("the change is in force", || pair.relay.is_up_to_date());
    let here = SocketAddr::new(other, 9000);
    let socket = pair.spaces[0].run(|| UdpSocket::bind(here)).expect("a thread is left").expect("the address is there");
    let begin = Instant::now();
    socket.send_to(&1_u64.to_be_bytes(), pair.to).expect("there is a route");
    pair.count(1);
    assert_eq!(pair.arrivals(), [1]);
    let took = begin.elapsed();
    pair.send(2, 100);
    assert_eq!(pair.arrivals(), [2]);
    let report = pair.stop();
    assert!(took >= Duration::from_millis(40), "{took:?}, {report}");
}

#[test]
fn relay__way_changes_at_the_given_time() {
    let Some(_turn) = world() else { return };
    let pair = Pair::new(12, false);
    let begin = Instant::now();
    let (from, to) = (Duration::from_millis(100), Duration::from_millis(200));
    pair.relay.set_at(begin + from, 0, Direction::Up, Way { is_blackhole: true, ..Way::default() });
    pair.relay.set_at(begin + to, 0, Direction::Up, Way::default());
    // The send time of each packet, and the time when the relay had read it.
    let mut spans = Vec::new();
    while spans.last().is_none_or(|(sent, _)| *sent < to + Duration::from_millis(100)) {
        let (number, sent) = (spans.len() as u64, begin.elapsed());
        pair.send(number, 100);
        wait_for("the relay takes it", || pair.relay.taken() > number);
        spans.push((sent, begin.elapsed()));
    }
    let arrived = pair.arrivals();
    let report = pair.stop();
    // The relay may have read the time just before it stood still and a packet arrived: that packet belongs to either
    // side of the change, and the next one does not.
    let is_next = |number: usize, at: Duration| number > 0 && spans[number - 1].0 >= at;
    for (number, (sent, taken)) in spans.iter().enumerate() {
        let is_there = arrived.contains(&(number as u64));
        if *taken < from || is_next(number, to) {
            assert!(is_there, "packet {number}, sent after {sent:?}, {report}");
        }
        if is_next(number, from) && *taken < to {
            assert!(!is_there, "packet {number}, sent after {sent:?}, {report}");
        }
    }
}
