//! A live endpoint under hostile input: invalid datagrams, hellos and sealed packets with bytes changed, also from the
//! address of a peer; and a peer with arbitrary requests and unrequested offers. `make fuzz` looks for inputs that
//! break it, `cargo test` tries some at random.
//!
//! For any input, the endpoint continues to serve, its sessions stay open, and no wrong byte arrives.

#![allow(missing_docs, non_snake_case)]

use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use fairwave_host::{
    CloseReason, ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, Lasts, PathKind, Session,
    ShareId, Terms, Ticket, Validity, VoidReason,
};
use fairwave_testing::LIMIT;
use fairwave_units::{Bytes, Rate};

#[allow(dead_code, reason = "the tests between namespaces use it, too, each a part")]
use crate::net::memory_content::Giver;

/// Random inputs in `cargo test`; set by BOLERO_RANDOM_ITERATIONS.
const ITERATIONS: usize = 1000;
const LARGEST: usize = 1500;
/// Datagrams between the two ends that are kept, to be changed and sent again.
const KEPT: usize = 256;
/// The peer's request that shows that it is answered: the first stream, since lower ones have priority.
const ECHO: u32 = 0;

/// An endpoint, a peer of it, and all that passes between them in hand.
struct Scene {
    server: SocketAddr,
    /// The peer's address as seen by the server.
    outside: UdpSocket,
    stranger: UdpSocket,
    passed: Arc<Mutex<Vec<Vec<u8>>>>,
    session: Session,
    events: Receiver<Event>,
    asked: u64,
    _ends: [Endpoint; 2],
}

enum Event {
    Echo,
    Closed(CloseReason),
}

/// The peer's own end.
struct Peer(std::sync::mpsc::Sender<Event>);

impl Handler for Peer {
    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        session.refuse(stream, range, VoidReason::Vanished);
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        Giver.lend(stream, range, take)
    }

    fn on_data(&mut self, _session: &Session, stream: u32, _offset: u64, _bytes: &[u8]) {
        if stream == ECHO {
            // The caller may have gone on.
            let _ = self.0.send(Event::Echo);
        }
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, _by_peer: bool) {
        let _ = self.0.send(Event::Closed(reason));
    }
}

fn config() -> EndpointConfig {
    let capacity = Some(Rate::mbps(20.0));
    let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
    EndpointConfig {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        send_capacity: capacity,
        receive_capacity: capacity,
        path: PathKind::Dedicated,
        // The peer asks for terabytes.
        room: Bytes::new(1 << 16),
        lasts: Lasts { silent: limit, opening: limit, ..Lasts::default() },
        ..EndpointConfig::default()
    }
}

impl Scene {
    fn new() -> Self {
        let server = Endpoint::bind(&config()).expect("a port is free");
        let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
            // A loss here would end the session eventually.
            socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).expect("it is cut to what is allowed");
            socket
        };
        let (inside, outside) = (bind(), bind());
        let address = inside.local_addr().expect("it is bound");
        let ticket: Ticket =
            keyring.issue(Validity { lasts_s: None, is_once: false }, vec![address]).expect("nothing is written");
        server.listen(keyring, Box::new(|_| Ok((Terms::default(), Box::new(Giver)))));
        let passed = Arc::new(Mutex::new(Vec::new()));
        carry(&inside, &outside, server.local_addr(), &passed);
        let client = Endpoint::bind(&config()).expect("a port is free");
        let (news, events) = channel();
        let request = ConnectOptions { sends: true, receives: true, greeting: Vec::new(), options: Terms::default() };
        let session = client.connect(&ticket, request, Box::new(Peer(news))).expect("it is let in");
        let mut scene = Self {
            server: server.local_addr(),
            outside,
            stranger: bind(),
            passed,
            session,
            events,
            asked: 0,
            _ends: [client, server],
        };
        scene.check();
        scene
    }

    /// The server still answers.
    fn check(&mut self) {
        self.session.want(ECHO, self.asked..self.asked + 1);
        self.asked += 1;
        match self.events.recv_timeout(LIMIT) {
            Ok(Event::Echo) => {}
            Ok(Event::Closed(reason)) => panic!("the session was closed: {reason}"),
            Err(error) => panic!("no answer: {error}"),
        }
    }

    /// Executes an input.
    fn act(&self, input: &[u8]) {
        let Some((what, rest)) = input.split_first() else { return };
        let socket = if what & 1 == 0 { &self.outside } else { &self.stranger };
        // The system may have no room; then it is lost, as anything may be.
        match what >> 1 & 7 {
            0 => drop(socket.send_to(rest, self.server)),
            1..=4 => {
                let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((index, rest)) = rest.split_first() else { return };
                let mut datagram = passed[usize::from(*index) % passed.len()].clone();
                for change in rest.chunks_exact(3) {
                    let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % datagram.len();
                    datagram[at] ^= change[2];
                }
                if rest.len() % 3 == 2 {
                    datagram.truncate(usize::from(u16::from_be_bytes([rest[rest.len() - 2], rest[rest.len() - 1]])));
                }
                drop(socket.send_to(&datagram, self.server));
            }
            what => self.ask(what, rest),
        }
    }

    /// A request by the peer's application.
    fn ask(&self, what: u8, rest: &[u8]) {
        let Some((numbers, _)) = rest.split_first_chunk::<13>() else { return };
        let stream = 1 + u32::from(numbers[0]) % 7;
        let start = u64::from_be_bytes(std::array::from_fn(|at| numbers[1 + at])) >> (numbers[12] & 63);
        let length = u64::from(u16::from_be_bytes([numbers[9], numbers[10]])) << (numbers[11] & 31);
        let range = start..start.saturating_add(length);
        match what {
            5 => self.session.want(stream, range),
            6 => self.session.serve(stream, range),
            _ => self.session.give_up(stream, range),
        }
    }
}

/// Carries between a client that thinks `inside` is the server, and the server, which thinks that `outside` is the
/// client.
fn carry(inside: &UdpSocket, outside: &UdpSocket, server: SocketAddr, passed: &Arc<Mutex<Vec<Vec<u8>>>>) {
    let client = Arc::new(Mutex::new(None));
    let clone = |socket: &UdpSocket| socket.try_clone().expect("a descriptor is left");
    let (there, kept) = ((clone(inside), clone(outside), Arc::clone(&client)), Arc::clone(passed));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((bytes, from)) = there.0.recv_from(&mut buffer) {
            *there.2.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < KEPT {
                kept.push(buffer[..bytes].to_vec());
            }
            drop(there.1.send_to(&buffer[..bytes], server));
        }
    });
    let back = (clone(outside), clone(inside));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((bytes, _)) = back.0.recv_from(&mut buffer) {
            let to = *client.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(to) = to {
                drop(back.1.send_to(&buffer[..bytes], to));
            }
        }
    });
}

#[test]
fn endpoint() {
    // A target may be called from one thread only; what it needs outlives each call.
    let scene = Mutex::new(Scene::new());
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(move |input: &[u8]| {
        let mut scene = scene.lock().unwrap_or_else(PoisonError::into_inner);
        scene.act(input);
        scene.check();
    });
}
