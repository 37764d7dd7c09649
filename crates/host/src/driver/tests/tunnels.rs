//! Sessions over tunnels, and floods of connections at a port that accepts tunnels.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use super::super::framing::frame_at;
use super::super::setup;
use super::super::socket::Socket;
use super::super::tunnel::Tunnel;
use super::super::tunnels::Tunnels;
use super::*;
use crate::carrier::{Carrier, Carriers};
use fairwave_proto::{Direction, Hold};
use fairwave_units::Rate;

const LENGTH: u64 = 4 << 20;

fn config() -> EndpointConfig {
    EndpointConfig { listen: Some(own_address()), ..EndpointConfig::default() }
}

/// A server that is also reachable over TCP, and admits holders of a ticket of the keyring.
fn server(keyring: &Arc<Keyring>) -> End {
    let server = End::with(&EndpointConfig { listens_tcp: true, ..config() });
    assert!(server.driver.shared().facts.listens_tcp);
    server.listen(keyring);
    server
}

fn client(carriers: Carriers) -> End {
    End::with(&EndpointConfig { carriers, ..config() })
}

fn ticket(keyring: &Keyring, place: SocketAddr) -> Ticket {
    keyring.issue(Validity { lasts_s: None, is_once: false }, vec![place]).unwrap()
}

/// A session from the first end, which takes, to the second, which gives.
fn over(carriers: Carriers) -> [End; 2] {
    let keyring = keyring();
    let mut ends = [client(carriers), server(&keyring)];
    ends[0].connect(ticket(&keyring, ends[1].place()));
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    ends
}

/// Drops all UDP datagrams to the address of an end.
fn block_udp(end: &mut End) -> UdpSocket {
    let place = end.place();
    end.driver.socket = Socket::bind(config().listen).unwrap();
    UdpSocket::bind(place).unwrap()
}

fn carrier(end: &End) -> Carrier {
    end.session.as_ref().expect("it is open").facts().carrier
}

fn take(ends: &mut [End; 2], length: u64) {
    let before = ends[0].bytes;
    ends[0].session.as_ref().unwrap().want(1, before..before + length);
    run(ends, |ends| ends[0].bytes >= before + length);
}

fn count(end: &End) -> usize {
    end.driver.tunnels.len()
}

#[test]
fn connect__where_udp_is_not_answered_goes_on_over_tcp_within_some_seconds() {
    let keyring = keyring();
    let mut ends = [client(Carriers::Any), server(&keyring)];
    let _blocked = block_udp(&mut ends[1]);
    let begin = ends[0].now();
    ends[0].connect(ticket(&keyring, ends[1].place()));
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    ends[0].session.as_ref().unwrap().want(1, 0..1);
    run(&mut ends, |ends| ends[0].bytes >= 1);
    let took = ends[0].now().since(begin);
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!([carrier(&ends[0]), carrier(&ends[1])], [Carrier::Tcp; 2]);
    let peer = ends[0].session.as_ref().unwrap().facts().peer;
    assert_eq!(peer, ends[1].place());
    let stats = ends[0].driver.host.received(ends[0].id()).unwrap();
    assert_eq!(stats.missed_packets, 0);
}

#[test]
fn connect__where_udp_is_answered_opens_no_tcp_connection() {
    let mut ends = over(Carriers::Any);
    take(&mut ends, LENGTH);
    assert_eq!([carrier(&ends[0]), carrier(&ends[1])], [Carrier::Udp; 2]);
    assert_eq!((count(&ends[0]), count(&ends[1])), (0, 0));
}

#[test]
fn connect__tries_tcp_as_soon_as_was_said_where_no_cookie_came_and_else_after_two_seconds() {
    for has_cookie in [false, true] {
        let keyring = keyring();
        let soon = Duration::from_millis(300);
        let mut ends = [End::with(&EndpointConfig { tunnels_after: soon, ..config() }), server(&keyring)];
        // The server knows its tickets before anything arrives.
        ends[1].turn();
        ends[0].connect(ticket(&keyring, ends[1].place()));
        ends[0].turn();
        if has_cookie {
            ends[1].turn();
            ends[0].turn();
        }
        // Loopback delivers at once: the server has the first hello or none, and nothing later.
        ends[1].lose_what_came();
        let begun = ends[0].driver.clock.now();
        let mut tunnels_at = |ms: u64| {
            let Driver { attempts, host, tunnels, .. } = &mut ends[0].driver;
            attempts.handle_timeout(begun.saturating_add(Duration::from_millis(ms)), host, tunnels);
            tunnels.len()
        };
        assert_eq!(tunnels_at(100), 0);
        assert_eq!(tunnels_at(310), usize::from(!has_cookie), "{has_cookie}");
        assert_eq!(tunnels_at(2010), 1, "{has_cookie}");
    }
}

#[test]
fn connect__without_tcp_there_says_what_the_system_says() {
    let keyring = keyring();
    let mut ends = [client(Carriers::Only(Carrier::Tcp)), End::new()];
    let to = ticket(&keyring, ends[1].place());
    let answer = ends[0].connect(to);
    run(&mut ends, |_| !answer.is_empty());
    let error = answer.recv().unwrap().err().unwrap().to_string();
    assert!(error.starts_with("no reply: TCP: ") && error.contains("refused"), "{error}");
}

#[test]
fn tunnel__loses_nothing_and_keeps_to_no_path_rate() {
    let mut ends = over(Carriers::Only(Carrier::Tcp));
    take(&mut ends, 8 * LENGTH);
    let sent = ends[1].driver.host.sent(ends[1].id()).unwrap();
    println!("{sent:?}");
    assert_eq!((sent.lost, carrier(&ends[0])), (0, Carrier::Tcp));
    // Datagrams grow to what both ends take, and no more.
    assert!(sent.sent < 8 * LENGTH / 4000, "{sent:?}");
}

/// A session whose tunnel is full waits for its own tunnel only, uses no memory for it, and loses nothing.
#[test]
fn tunnel__that_is_full_holds_its_own_session_and_no_other() {
    let keyring = keyring();
    let mut slow = client(Carriers::Only(Carrier::Tcp));
    let mut ends = [client(Carriers::Only(Carrier::Udp)), server(&keyring)];
    slow.connect(ticket(&keyring, ends[1].place()));
    let deadline = Deadline::new();
    while slow.session.is_none() || ends[1].session.is_none() {
        slow.turn();
        ends[1].turn();
        deadline.check("a session by a tunnel");
    }
    let of_slow = ends[1].id();
    for end in [&slow, &ends[1]] {
        end.driver.tunnels.shrink();
    }
    ends[0].connect(ticket(&keyring, ends[1].place()));
    run(&mut ends, |ends| ends[0].session.is_some() && ends[1].id() != of_slow);
    // It reads a little now and then.
    slow.session.as_ref().unwrap().want(1, 0..1 << 30);
    ends[0].session.as_ref().unwrap().want(1, 0..2 * LENGTH);
    let (mut most, mut turns, mut limited, mut reported) = (0, 0_u32, None, None);
    // The path's rate is what was sent, also if no end node measures it.
    while ends[0].bytes < 2 * LENGTH || turns < 3000 || reported.is_none() {
        turns += 1;
        if turns.is_multiple_of(20) {
            slow.turn();
        }
        ends.iter_mut().for_each(End::turn);
        most = ends[1].driver.tunnels.waiting().into_iter().fold(most, usize::max);
        let now = ends[1].driver.clock.now();
        limited = ends[1].driver.host.held_by(now, of_slow, Direction::Sending);
        let slows = ends[1].driver.entries.iter().find(|entry| entry.session.id() == of_slow);
        let path_rate = slows.and_then(|entry| entry.session.stats().path_rate);
        reported = reported.or(path_rate.filter(|rate| *rate > Rate::ZERO));
        deadline.check("a session by UDP beside a tunnel that is full");
    }
    let sent = ends[1].driver.host.sent(of_slow).unwrap();
    println!("at most {most} bytes waited; {reported:?}; the slow one had {} bytes, {sent:?}", slow.bytes);
    assert!((60 << 10..=256 << 10).contains(&most), "{most}");
    assert_eq!((limited, sent.lost), (Some(Hold::Path), 0));
    assert!((1..1 << 30).contains(&slow.bytes), "{}", slow.bytes);
}

#[test]
fn tunnel__that_is_cut_ends_its_session_at_once_at_both_ends() {
    for cuts in [0, 1] {
        let mut ends = over(Carriers::Only(Carrier::Tcp));
        take(&mut ends, LENGTH);
        let begin = ends[0].now();
        ends[cuts].driver.tunnels.shut_down();
        run(&mut ends, |ends| ends.iter().all(|end| end.closed.is_some()));
        assert_eq!(ends.each_ref().map(|end| end.closed), [Some((CloseReason::Cut, false)); 2]);
        let took = ends[0].now().since(begin);
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!((count(&ends[0]), count(&ends[1])), (0, 0));
    }
}

#[test]
fn tunnel__brings_the_last_word_of_who_closes() {
    let mut ends = over(Carriers::Only(Carrier::Tcp));
    take(&mut ends, LENGTH);
    ends[0].session.as_ref().unwrap().close(CloseReason::Stopped);
    run(&mut ends, |ends| ends.iter().all(|end| end.closed.is_some()));
    assert_eq!(ends[1].closed, Some((CloseReason::Stopped, true)));
}

#[test]
fn add_tunnel__two_pipes_carry_a_session_where_udp_is_not_answered() {
    let keyring = keyring();
    let mut ends = [client(Carriers::Any), server(&keyring)];
    let _blocked = block_udp(&mut ends[1]);
    let [(here, there), (back, forth)] = [(); 2].map(|()| rustix::pipe::pipe().unwrap());
    let gone = [(); 2].map(|()| Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let peer = "192.0.2.7:8642".parse().unwrap();
    for (end, pair, is_gone) in [(0, (here, forth), &gone[0]), (1, (back, there), &gone[1])] {
        let order = EndpointOrder::Tunnel { ends: pair, peer, is_gone: Arc::clone(is_gone) };
        ends[end].orders.send(order).unwrap();
    }
    // Before it, nobody is waited for.
    ends[0].turn();
    let begin = ends[0].now();
    ends[0].connect(ticket(&keyring, ends[1].place()));
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    let took = ends[0].now().since(begin);
    assert!(took < Duration::from_secs(6), "{took:?}");
    take(&mut ends, 2 * LENGTH);
    assert_eq!([carrier(&ends[0]), carrier(&ends[1])], [Carrier::Ssh; 2]);
    assert_eq!(ends[0].session.as_ref().unwrap().facts().peer, peer);
    // It stays for another session, and its end is the end of the other.
    ends[0].session.as_ref().unwrap().close(CloseReason::Done);
    run(&mut ends, |ends| ends.iter().all(|end| end.closed.is_some()));
    assert_eq!((count(&ends[0]), count(&ends[1])), (1, 1));
    let [client, mut server] = ends;
    drop(client);
    let deadline = Deadline::new();
    while !gone[1].load(std::sync::atomic::Ordering::SeqCst) {
        server.turn();
        deadline.check("the end of a tunnel");
    }
}

/// One direction of a stream through an attacker who changes a bit of each seventh long frame.
struct Tampering {
    from: OwnedFd,
    to: OwnedFd,
    came: Vec<u8>,
    goes: Vec<u8>,
    frames: u64,
    changed: u64,
}

impl Tampering {
    /// With the descriptors that the two ends write to and read from.
    fn new() -> (Self, OwnedFd, OwnedFd) {
        let [(from, writes), (reads, to)] = [(); 2].map(|()| rustix::pipe::pipe().unwrap());
        for fd in [&from, &to] {
            rustix::io::ioctl_fionbio(fd, true).unwrap();
        }
        (Self { from, to, came: Vec::new(), goes: Vec::new(), frames: 0, changed: 0 }, writes, reads)
    }

    fn turn(&mut self) {
        let mut room = [0; 1 << 13];
        while let Ok(bytes @ 1..) = rustix::io::read(&self.from, &mut room) {
            self.came.extend_from_slice(&room[..bytes]);
        }
        while let Ok(Some(range)) = frame_at(&self.came, 0, 1 << 16) {
            let mut frame: Vec<u8> = self.came.drain(..range.end).collect();
            if range.len() > 100 {
                self.frames += 1;
                if self.frames.is_multiple_of(7) {
                    self.changed += 1;
                    let at = range.start + self.changed as usize % range.len();
                    frame[at] ^= 1 << (self.changed % 8);
                }
            }
            self.goes.extend(frame);
        }
        while let Ok(bytes @ 1..) = rustix::io::write(&self.to, &self.goes) {
            self.goes.drain(..bytes);
        }
    }
}

/// Changed frames count as lost: they are sent again, and nothing else arrives.
#[test]
fn tunnel__of_changed_bytes_brings_what_was_given() {
    let keyring = keyring();
    let mut ends = [client(Carriers::Any), server(&keyring)];
    let _blocked = block_udp(&mut ends[1]);
    let (mut there, writes, hears) = Tampering::new();
    let (mut back, answers, reads) = Tampering::new();
    let peer = "192.0.2.7:8642".parse().unwrap();
    for (end, pair) in [(0, (reads, writes)), (1, (hears, answers))] {
        let order = EndpointOrder::Tunnel { ends: pair, peer, is_gone: Arc::default() };
        ends[end].orders.send(order).unwrap();
    }
    ends[0].turn();
    ends[0].connect(ticket(&keyring, ends[1].place()));
    let deadline = Deadline::new();
    let mut until = |ends: &mut [End; 2], is_done: &dyn Fn(&[End; 2]) -> bool| {
        while !is_done(ends) {
            ends.iter_mut().for_each(End::turn);
            there.turn();
            back.turn();
            deadline.check("what was given, through somebody's hands");
        }
    };
    until(&mut ends, &|ends| ends.iter().all(|end| end.session.is_some()));
    ends[0].session.as_ref().unwrap().want(1, 0..LENGTH);
    until(&mut ends, &|ends| ends[0].bytes >= LENGTH);
    let sent = ends[1].driver.host.sent(ends[1].id()).unwrap();
    assert!(back.changed > 50 && sent.lost >= back.changed / 2, "{} changed, {sent:?}", back.changed);
    assert_eq!((ends[0].closed, ends[1].closed), (None, None));
}

#[test]
fn tunnels__of_strangers_are_few_and_do_not_last() {
    let keyring = keyring();
    let mut ends = [client(Carriers::Only(Carrier::Udp)), server(&keyring)];
    let place = ends[1].place();
    let mut strangers = Vec::new();
    for _ in 0..100 {
        strangers.push(TcpStream::connect(place).unwrap());
        ends[1].turn();
    }
    for _ in 0..10 {
        ends[1].turn();
    }
    // All of one prefix. Those beyond were closed.
    assert_eq!(count(&ends[1]), 64);
    let mut last = strangers.pop().unwrap();
    assert_eq!(last.read(&mut [0]).unwrap_or(0), 0);
    // Visitors by UDP are still admitted.
    let begin = ends[0].now();
    ends[0].connect(ticket(&keyring, place));
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    let took = ends[0].now().since(begin);
    assert!(took < Duration::from_secs(1), "{took:?}");
    // A byte now and then does not keep them open.
    let half = strangers.len() / 2;
    strangers[..half].iter_mut().for_each(|stranger| _ = stranger.write(&[4]));
    ends[1].turn();
    let later = ends[1].driver.clock.now().saturating_add(Duration::from_secs(6));
    ends[1].driver.tunnels.handle_timeout(later);
    assert_eq!(count(&ends[1]), 0);
}

#[test]
fn tunnels__are_opened_so_often_a_second_and_no_more() {
    let keyring = keyring();
    let mut server = server(&keyring);
    let place = server.place();
    let begin = server.now();
    let mut came = 0_u64;
    while server.now().since(begin) < Duration::from_millis(1500) {
        // Without waiting: where the system has no place for one, it goes away unseen. Each leaves at once, so that
        // there is always room for the next tunnel.
        let stranger = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        stranger.set_nonblocking(true).unwrap();
        let _ = stranger.connect(&place.into());
        came += 1;
        drop(stranger);
        server.turn();
        server.wait(Duration::from_millis(1));
    }
    // In 1.5 s, which start anywhere in a second.
    let let_in = server.driver.tunnels.seen();
    assert!(came > 1000 && (256..=3 * 256).contains(&let_in), "{let_in} of {came}");
}

#[test]
fn tunnel__of_who_says_something_else_is_closed() {
    let keyring = keyring();
    let mut server = server(&keyring);
    let framed = |datagram: &[u8]| [&(datagram.len() as u16).to_be_bytes()[..], datagram].concat();
    let hello = framed(&[0x20; 1200]);
    for (says, what) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), "another protocol"),
        (vec![0, 0], "nothing"),
        (framed(&[0x29; 100]), "data before a hello"),
        (hello.repeat(65), "hellos without end"),
    ] {
        let mut stranger = TcpStream::connect(server.place()).unwrap();
        let deadline = Deadline::new();
        while count(&server) == 0 {
            server.turn();
            deadline.check(what);
        }
        let _ = stranger.write_all(&says);
        // Long before a tunnel without a session is given up, after 5 s.
        let begin = server.now();
        while count(&server) > 0 {
            server.turn();
            assert!(server.now().since(begin) < Duration::from_secs(3), "{what}");
        }
    }
    // Within the bound, it may stay.
    let mut stranger = TcpStream::connect(server.place()).unwrap();
    stranger.write_all(&hello.repeat(3)).unwrap();
    for _ in 0..50 {
        server.turn();
        server.wait(Duration::from_millis(1));
    }
    assert_eq!(count(&server), 1);
}

#[test]
fn tunnels__without_the_port_everything_else_goes_on() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = EndpointConfig { listen: Some(taken.local_addr().unwrap()), listens_tcp: true, ..config() };
    let end = End::with(&config);
    let shared = end.driver.shared();
    assert!(!shared.facts.listens_tcp);
    assert!(shared.facts.tcp_error.as_ref().unwrap().contains("in use"), "{:?}", shared.facts.tcp_error);
}

#[test]
fn bind__passes_over_ports_that_tcp_has_not() {
    let taken = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let mut places: Vec<_> = taken.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let config = EndpointConfig { listens_tcp: true, ..config() };
    let mut tunnels = Tunnels::new(config.largest_datagram);
    let (_, facts) = setup::bind(&config, &mut tunnels, || Socket::bind(places.pop().or(config.listen))).unwrap();
    assert_eq!((facts.listens_tcp, facts.tcp_error), (true, None));
    assert!(taken.iter().all(|listener| listener.local_addr().unwrap() != facts.local));
}

impl Tunnels {
    /// Bytes that wait in each.
    fn waiting(&self) -> Vec<usize> {
        self.iter().map(Tunnel::waiting).collect()
    }

    /// The system keeps less for them.
    fn shrink(&self) {
        self.iter().for_each(Tunnel::shrink);
    }

    /// As somebody on the way can.
    fn shut_down(&self) {
        self.iter().for_each(Tunnel::shut_down);
    }
}
