//! Datagrams that neither end of a session sent: forged, repeated, or nothing but noise.

#![allow(non_snake_case)]

use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use fairwave_host::{
    CloseReason, ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, Lasts, PathKind, Session,
    ShareId, Terms, Ticket, Validity, VoidReason,
};
use fairwave_proto::codec::{HEADER_BYTES, Header, PIECE_BYTES, PacketKind, Reader, TAG_BYTES};
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::Rate;

const CAPACITY_MBPS: f64 = 80.0;

enum Seen {
    Data(u64, Vec<u8>),
    Closed(CloseReason, bool),
}

/// Lends the bytes of `byte_at`, and accepts what arrives.
struct End {
    seen: Sender<Seen>,
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Handler for End {
    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        session.serve(stream, range);
    }

    fn lend(&mut self, _stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        take(&range.map(byte_at).collect::<Vec<u8>>());
        Ok(())
    }

    fn on_data(&mut self, _session: &Session, _stream: u32, offset: u64, bytes: &[u8]) {
        let _ = self.seen.send(Seen::Data(offset, bytes.to_vec()));
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        let _ = self.seen.send(Seen::Closed(reason, by_peer));
    }
}

/// A giver and a taker on the loopback device, with somebody between them.
struct Scene {
    session: Session,
    seen: Receiver<Seen>,
    _client: Endpoint,
    server: Endpoint,
    path: Path,
}

impl Scene {
    fn new(is_plain: bool) -> Self {
        let capacity = Some(Rate::mbps(CAPACITY_MBPS));
        let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
        let config = EndpointConfig {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            send_capacity: capacity,
            receive_capacity: capacity,
            path: PathKind::Dedicated,
            is_plain,
            lasts: Lasts { silent: limit, opening: limit, ..Lasts::default() },
            ..EndpointConfig::default()
        };
        let (server, client) = (Endpoint::bind(&config).unwrap(), Endpoint::bind(&config).unwrap());
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
        let tell = unbounded().0;
        server.listen(
            Arc::clone(&keyring),
            Box::new(move |_| Ok((Terms::default(), Box::new(End { seen: tell.clone() })))),
        );
        let path = Path::new(server.local_addr());
        let ticket: Ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![path.address()]).unwrap();
        let (seen, see) = unbounded();
        let request = ConnectOptions { sends: false, receives: true, greeting: vec![], options: Terms::default() };
        let session = client.connect(&ticket, request, Box::new(End { seen })).unwrap();
        Self { session, seen: see, _client: client, server, path }
    }

    /// Fetches this many bytes from an offset on, and checks each.
    fn fetch(&self, offset: u64, length: u64) {
        self.session.want(1, offset..offset + length);
        let mut count = 0;
        while count < length {
            match self.seen.recv_timeout(LIMIT).expect("data come") {
                Seen::Data(at, data) => {
                    let is_right = data.iter().zip(at..).all(|(byte, at)| *byte == byte_at(at));
                    assert!(is_right, "wrong bytes at {at} after {count} of {length}");
                    count += data.len() as u64;
                }
                Seen::Closed(reason, by_peer) => {
                    panic!("closed after {count} of {length} bytes: {reason:?}, by the peer: {by_peer}")
                }
            }
        }
        assert_eq!(count, length, "a byte came twice");
    }

    /// The giver's count of what it has sent.
    fn sent(&self, count: impl Fn(&Session) -> u64) -> u64 {
        self.server.sessions().iter().map(count).sum()
    }
}

/// The way between client and server, on which somebody listens.
struct Path {
    /// The destination of the client's datagrams.
    front: Arc<UdpSocket>,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    client: Mutex<Option<SocketAddr>>,
    /// The newest data packet of the server, and its newest control packet.
    data: Mutex<Vec<u8>>,
    control: Mutex<Vec<u8>>,
    /// Nothing passes any more.
    is_cut: AtomicBool,
    /// Number of extra copies of each datagram to the client.
    repeats: Mutex<u32>,
    is_over: AtomicBool,
}

impl Path {
    fn new(server: SocketAddr) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            Arc::new(socket)
        };
        let (front, back, heard) = (socket(), socket(), Arc::new(Heard::default()));
        carry(&front, &heard, {
            let (back, heard) = (Arc::clone(&back), Arc::clone(&heard));
            move |from, datagram| {
                *heard.client.lock().unwrap() = Some(from);
                let _ = back.send_to(datagram, server);
            }
        });
        carry(&back, &heard, {
            let (front, heard) = (Arc::clone(&front), Arc::clone(&heard));
            move |_, datagram| {
                let Some(client) = *heard.client.lock().unwrap() else { return };
                if heard.is_cut.load(Ordering::Relaxed) {
                    return;
                }
                match kind(datagram) {
                    Some(PacketKind::Data) => datagram.clone_into(&mut heard.data.lock().unwrap()),
                    Some(PacketKind::Control) => datagram.clone_into(&mut heard.control.lock().unwrap()),
                    None => {}
                }
                for _ in 0..=*heard.repeats.lock().unwrap() {
                    let _ = front.send_to(datagram, client);
                }
            }
        });
        Self { front, heard }
    }

    fn address(&self) -> SocketAddr {
        self.front.local_addr().unwrap()
    }

    fn client(&self) -> SocketAddr {
        self.heard.client.lock().unwrap().expect("the client has spoken")
    }

    /// Sends the output of `forge` on the newest data packet to the client, in small bursts, until `meanwhile` has
    /// ended and 500 were sent. Returns their number.
    fn inject<T>(&self, forge: impl Fn(u64, &[u8]) -> Vec<u8> + Sync, meanwhile: impl FnOnce() -> T) -> (u64, T) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let injector = scope.spawn(|| {
                let mut sent = 0;
                while sent < 500 || !is_over.load(Ordering::Relaxed) {
                    let template = self.heard.data.lock().unwrap().clone();
                    for _ in 0..5 {
                        self.front.send_to(&forge(sent, &template), self.client()).unwrap();
                        sent += 1;
                    }
                    // Only to leave the processor to others.
                    std::thread::sleep(Duration::from_millis(1));
                }
                sent
            });
            // A panic must not leave the injector behind, for which the scope would wait.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
            is_over.store(true, Ordering::Relaxed);
            let sent = injector.join().unwrap();
            (sent, result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.heard.is_over.store(true, Ordering::Relaxed);
    }
}

fn carry(from: &Arc<UdpSocket>, heard: &Arc<Heard>, pass: impl Fn(SocketAddr, &[u8]) + Send + 'static) {
    let (from, heard) = (Arc::clone(from), Arc::clone(heard));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while !heard.is_over.load(Ordering::Relaxed) {
            if let Ok((length, sender)) = from.recv_from(&mut buffer) {
                pass(sender, &buffer[..length]);
            }
        }
    });
}

fn kind(datagram: &[u8]) -> Option<PacketKind> {
    Header::read(&mut Reader::new(datagram)).ok().map(|header| header.kind)
}

/// A data packet as somebody without keys makes it: the session's name, and a checksum that is right.
fn forged(turn: u64, template: &[u8]) -> Vec<u8> {
    let mut packet = template.to_vec();
    let number = u64::from_be_bytes(template[9..17].try_into().unwrap());
    let chance = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let put = |packet: &mut Vec<u8>, at: usize, value: u64| packet[at..at + 8].copy_from_slice(&value.to_be_bytes());
    match turn % 6 {
        // Numbers that were never sent, that come soon, and any.
        0 => put(&mut packet, 9, u64::MAX - 1 - turn),
        1 => put(&mut packet, 9, number + 1 + turn % 200),
        2 => put(&mut packet, 9, chance),
        // Offsets, streams and stamps that are not those of the number.
        3 => put(&mut packet, HEADER_BYTES + 8, chance % 100_000_000),
        4 => put(&mut packet, HEADER_BYTES, chance),
        // A packet that was sent.
        _ => return packet,
    }
    let body = packet.len() - TAG_BYTES;
    for byte in &mut packet[HEADER_BYTES + PIECE_BYTES..body] {
        *byte ^= 0x55;
    }
    let sum = crc_fast::crc32_iscsi(&packet[..body]);
    packet[body..body + 4].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn plain__forged_packets_are_none_of_the_session() {
    const LENGTH: u64 = 5_000_000;
    let scene = Scene::new(true);
    scene.fetch(0, LENGTH);
    let (injected, ()) = scene.path.inject(forged, || scene.fetch(LENGTH, 2 * LENGTH));
    assert!(injected >= 500, "{injected}");
    // One more fetch comes behind all that was injected.
    scene.fetch(3 * LENGTH, LENGTH);
    let received = || scene.session.stats().received_packets;
    let sent = || scene.sent(|session| session.stats().sent_packets);
    wait_for("the taker's counts are reported", || scene.session.stats().received_bytes >= 4 * LENGTH);
    let before = received();
    wait_for("the giver's counts are reported", || sent() >= before);
    scene.session.close(CloseReason::Done);
    assert!(matches!(scene.seen.recv_timeout(LIMIT), Ok(Seen::Closed(CloseReason::Done, false))));
}

#[test]
fn replay__of_sealed_packets_counts_for_nothing() {
    const LENGTH: u64 = 10_000_000;
    let scene = Scene::new(false);
    *scene.path.heard.repeats.lock().unwrap() = 4;
    scene.fetch(0, LENGTH);
    wait_for("the taker's counts are reported", || scene.session.stats().received_bytes >= LENGTH);
    let received = scene.session.stats().received_wire_bytes;
    assert!(received > LENGTH, "{received}");
    // Each came five times. Had two of them counted, the giver would never have sent as much.
    wait_for("the giver's counts are reported", || scene.sent(|session| session.stats().sent_wire_bytes) >= received);
}

#[test]
fn replay__of_sealed_packets_is_no_sign_of_life() {
    let scene = Scene::new(false);
    scene.fetch(0, 1_000_000);
    wait_for("a control packet", || !scene.path.heard.control.lock().unwrap().is_empty());
    scene.path.heard.is_cut.store(true, Ordering::Relaxed);
    let control = scene.path.heard.control.lock().unwrap().clone();
    let repeat = |turn: u64, data: &[u8]| if turn.is_multiple_of(2) { data.to_vec() } else { control.clone() };
    // A session with nothing to do hears of its peer each second.
    let is_silent = || scene.session.stats().silent_for > fairwave_units::Duration::from_millis(2500);
    let (repeated, ()) = scene.path.inject(repeat, || wait_for("the session counts as silent", is_silent));
    assert!(repeated >= 500, "{repeated}");
}
