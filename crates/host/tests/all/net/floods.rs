//! Thousands of hellos during a transfer, which continues: their cost to the host in memory, and the answers that they
//! get.

use std::net::{SocketAddr, UdpSocket};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fairwave_host::{ConnectOptions, Endpoint, Handler, Terms, Ticket};
use fairwave_proto::codec::MAC_BYTES;
use fairwave_testing::{LIMIT, wait_some};

use crate::net::actor::Actor;
use crate::net::hosts::{Hosts, dedicated};
use crate::net::memory_content::{Taker, Tally};
use crate::net::parts::Part;
use fairwave_wan::address;

/// Min hellos of each flood.
const HELLOS: u64 = 5000;
/// Min bytes of the transfer that arrive during a flood.
const COMES: u64 = 1_000_000;
const MAX_MEMORY: u64 = 1 << 20;

/// Min duration of each flood: FAIRWAVE_FLOOD_S seconds, or 0.
fn span() -> Duration {
    let seconds = std::env::var("FAIRWAVE_FLOOD_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(0.0))
}

/// Pace of the concurrent transfer: FAIRWAVE_FLOOD_MBPS, or 20.
fn capacity_mbps() -> f64 {
    std::env::var("FAIRWAVE_FLOOD_MBPS").ok().and_then(|text| text.parse().ok()).unwrap_or(20.0)
}

/// A host that gives, one that takes, and one that attacks the first; it knows the ticket.
struct Scene {
    hosts: Hosts,
    giver: Actor,
    tally: std::sync::Arc<Tally>,
    ticket: Ticket,
    server: SocketAddr,
    _taker: Endpoint,
}

/// A handler of a session that never opens.
struct Nobody;

impl Handler for Nobody {}

impl Scene {
    fn new(seed: u64) -> Self {
        let hosts = Hosts::new(3, seed, Duration::from_millis(5));
        let server = SocketAddr::new(address(1, 1, false), 9000);
        let capacity_mbps = capacity_mbps();
        let mut giver = Actor::start(&hosts.spaces[1], &Part::Give { address: server, capacity_mbps });
        let ticket: Ticket = giver.hear().parse().expect("a ticket");
        // More than comes while the test lasts.
        let (taker, tally) = Taker::new(1 << 40);
        let client = hosts.endpoint(0, &dedicated(capacity_mbps));
        client.connect(&ticket, request(), Box::new(taker)).expect("the giver is there");
        tally.wait(COMES);
        Self { hosts, giver, tally, ticket, server, _taker: client }
    }

    /// The attacker's socket at a separate port.
    fn socket(&self, port: u16) -> UdpSocket {
        let at = SocketAddr::new(address(2, 1, false), port);
        let socket =
            self.hosts.spaces[2].run(|| UdpSocket::bind(at)).expect("a thread is left").expect("the port is free");
        socket.set_read_timeout(Some(LIMIT)).expect("it is not 0");
        socket
    }

    /// Two hellos of one who holds the ticket: without a cookie, and with the one that the server gave for it. They
    /// come from `outside`, and the second is not sent.
    fn hellos(&self, outside: &UdpSocket) -> [Vec<u8>; 2] {
        let inside = self.socket(0);
        let ticket = Ticket { addresses: vec![inside.local_addr().expect("it is bound")], ..self.ticket.clone() };
        let config = dedicated(capacity_mbps());
        let client = self.hosts.endpoint(2, &config);
        std::thread::scope(|scope| {
            // It will not open; closing the endpoint ends it.
            scope.spawn(|| client.connect(&ticket, request(), Box::new(Nobody)).map(drop));
            let mut buffer = [0; 2048];
            let (bytes, from) = inside.recv_from(&mut buffer).expect("a client says hello");
            let first = buffer[..bytes].to_vec();
            outside.send_to(&first, self.server).expect("there is a route");
            let bytes = outside.recv(&mut buffer).expect("a cookie");
            assert!(bytes < first.len(), "an answer of {bytes} bytes to {} of an unproven address", first.len());
            inside.send_to(&buffer[..bytes], from).expect("there is a route");
            let second = loop {
                let bytes = inside.recv(&mut buffer).expect("it says hello again");
                if buffer[..bytes] != first {
                    break buffer[..bytes].to_vec();
                }
            };
            client.close();
            [first, second]
        })
    }

    /// Sends what `hello` writes, from all `sockets` in turn, and looks at what that does to the host and its transfer.
    fn flood(&self, what: &str, sockets: &[UdpSocket], hello: &(dyn Fn(u64) -> Vec<u8> + Sync)) {
        let memory = self.giver.resident_bytes();
        let (before, until) = (self.tally.bytes(), Instant::now() + span());
        let is_over = AtomicBool::new(false);
        let sent = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for _ in 0..10 {
                        let number = sent.fetch_add(1, Ordering::Relaxed);
                        let socket = &sockets[(number % sockets.len() as u64) as usize];
                        socket.send_to(&hello(number), self.server).expect("there is a route");
                    }
                    // At most 10 000 a second: the transfer also needs the processors.
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let goes_on = || {
                let (came, sent) = (self.tally.bytes() - before, sent.load(Ordering::Relaxed));
                (came >= COMES && sent >= HELLOS && Instant::now() >= until).then_some(())
            };
            let went_on = std::panic::catch_unwind(AssertUnwindSafe(|| wait_some("the transfer goes on", goes_on)));
            // A panic must not leave the attacker behind, for which the scope would wait.
            is_over.store(true, Ordering::Relaxed);
            went_on.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        let (sent, grown) = (sent.into_inner(), self.giver.resident_bytes().saturating_sub(memory));
        println!("{what}: {sent} hellos, {} KiB more memory", grown / 1024);
        assert!(grown < MAX_MEMORY, "{what}: {grown} bytes more memory");
    }

    /// Bytes that the attacker sent to the host, and bytes that it received.
    fn end(self) -> (u64, u64) {
        let report = self.hosts.relay.stop().expect("devices last");
        println!("{report}");
        (report.flows[2][1].bytes, report.flows[1][2].bytes)
    }
}

fn request() -> ConnectOptions {
    ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() }
}

#[test]
fn flood__of_hellos_without_the_secret_is_met_with_silence() {
    let Some(_turn) = crate::net::world() else { return };
    let scene = Scene::new(31);
    let outside = scene.socket(0);
    let [first, _] = scene.hellos(&outside);
    // The MAC at the end is keyed with the ticket's secret: any byte before it that is not as it was breaks it. The
    // kind stays.
    let forge = |number: u64| {
        let mut hello = first.clone();
        let at = 1 + (number as usize % (hello.len() - 1 - MAC_BYTES));
        hello[at] ^= 1 + (number % 255) as u8;
        hello
    };
    scene.flood("wrong MAC", &[outside], &forge);
    let (_, got) = scene.end();
    // The one answer is the cookie for the right hello: kind, the hello's MAC, the cookie, in UDP over IPv4.
    assert_eq!(got, (1 + 2 * MAC_BYTES + 28) as u64, "bytes for whom nothing is known of");
}

#[test]
fn flood__of_hellos_without_a_cookie_leaves_nothing_behind() {
    let Some(_turn) = crate::net::world() else { return };
    let scene = Scene::new(32);
    let outside = scene.socket(0);
    let [first, _] = scene.hellos(&outside);
    let sockets: Vec<_> = (0..64).map(|_| scene.socket(0)).collect();
    scene.flood("no cookie", &sockets, &|_| first.clone());
    let (sent, got) = scene.end();
    assert!(got > 0 && got < sent / 2, "{got} bytes for {sent}");
}

#[test]
fn flood__of_one_hello_with_its_cookie_is_one_session_at_the_most() {
    let Some(_turn) = crate::net::world() else { return };
    let scene = Scene::new(33);
    let outside = scene.socket(0);
    // A cookie lasts for ten seconds.
    let [_, second] = scene.hellos(&outside);
    scene.flood("a cookie", std::slice::from_ref(&outside), &|_| second.clone());
    let (sent, got) = scene.end();
    assert!(got < sent, "{got} bytes for {sent}");
}
