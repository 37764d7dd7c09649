//! Datagrams that neither end of a session sent: forged, repeated, or nothing but noise.

#![allow(non_snake_case)]

use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use fairwave_host::{
    CloseReason, ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, PathKind, Session,
    SessionOptions, ShareId, Ticket, Validity, VoidReason,
};
use fairwave_proto::codec::{HEADER_BYTES, Header, PIECE_BYTES, PacketKind, Reader, TAG_BYTES};
use fairwave_units::Rate;

const PATIENCE: Duration = Duration::from_secs(30);
const CAPACITY_MBPS: f64 = 80.0;

enum Seen {
    Data(u64, Vec<u8>),
    Closed(CloseReason, bool),
}

/// Gives the bytes that `byte_at` says, takes what comes, and holds the network thread up as it is told.
struct End {
    seen: Sender<Seen>,
    stalls: Receiver<Duration>,
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
        if let Ok(stall) = self.stalls.try_recv() {
            std::thread::sleep(stall);
        }
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        let _ = self.seen.send(Seen::Closed(reason, by_peer));
    }
}

/// One scene at a time: each measures, and some take a whole processor.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A giver and a taker on the loopback device, with somebody between them.
struct Scene {
    session: Session,
    seen: Receiver<Seen>,
    stall: Sender<Duration>,
    client: Endpoint,
    server: Endpoint,
    path: Path,
}

impl Scene {
    fn new(is_plain: bool) -> Self {
        let capacity = Some(Rate::mbps(CAPACITY_MBPS));
        let config = EndpointConfig {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            send_capacity: capacity,
            receive_capacity: capacity,
            path: PathKind::Dedicated,
            is_plain,
            ..EndpointConfig::default()
        };
        let (server, client) = (Endpoint::bind(&config).unwrap(), Endpoint::bind(&config).unwrap());
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
        let end = || {
            let ((seen, see), (stall, stalls)) = (unbounded(), unbounded());
            (Box::new(End { seen, stalls }), see, stall)
        };
        server.listen(Arc::clone(&keyring), Box::new(move |_| Ok((SessionOptions::default(), end().0))));
        let path = Path::new(server.local_addr());
        let ticket: Ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![path.address()]).unwrap();
        let ((seen, see), (stall, stalls)) = (unbounded(), unbounded());
        let wish =
            ConnectOptions { sends: false, receives: true, greeting: vec![], options: SessionOptions::default() };
        let session = client.connect(&ticket, wish, Box::new(End { seen, stalls })).unwrap();
        Self { session, seen: see, stall, client, server, path }
    }

    /// Fetches so many bytes from an offset on, and looks at each: in which time they came.
    fn fetch(&self, offset: u64, length: u64) -> Duration {
        let begin = Instant::now();
        self.session.want(1, offset..offset + length);
        let mut count = 0;
        while count < length {
            match self.seen.recv_timeout(PATIENCE).expect("data come") {
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
        begin.elapsed()
    }
}

/// The way between client and server, on which somebody listens.
struct Path {
    /// Where the client sends to.
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
    /// Everything goes to the client so often more.
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

    /// Sends what `forge` makes of the newest data packet to the client, 1000 times a second while `meanwhile` runs:
    /// how often.
    fn inject<T>(&self, forge: impl Fn(u64, &[u8]) -> Vec<u8> + Sync, meanwhile: impl FnOnce() -> T) -> (u64, T) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let injector = scope.spawn(|| {
                let (begin, mut sent) = (Instant::now(), 0);
                while !is_over.load(Ordering::Relaxed) {
                    let template = self.heard.data.lock().unwrap().clone();
                    while sent < begin.elapsed().as_millis() as u64 && !template.is_empty() {
                        self.front.send_to(&forge(sent, &template), self.client()).unwrap();
                        sent += 1;
                    }
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
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &packet[..body]) as u32;
    packet[body..body + 4].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn plain__forged_packets_cost_no_more_than_themselves() {
    const LENGTH: u64 = 5_000_000;
    let _turn = turn();
    let scene = Scene::new(true);
    scene.fetch(0, LENGTH);
    // In turns, and the best of each: what else the machine does is not to be measured.
    let (mut quiet, mut crowded, mut injected) = (Duration::MAX, Duration::MAX, 0);
    for round in 1..=3 {
        quiet = quiet.min(scene.fetch(2 * round * LENGTH, LENGTH));
        let (sent, time) = scene.path.inject(forged, || scene.fetch((2 * round + 1) * LENGTH, LENGTH));
        (injected, crowded) = (injected + sent, crowded.min(time));
    }
    let mbps = |time: Duration| 8e-6 * LENGTH as f64 / time.as_secs_f64();
    println!("{:.1} Mb/s alone, {:.1} Mb/s beside {injected} injected packets", mbps(quiet), mbps(crowded));
    assert!(injected > 500, "{injected}");
    // It is paced: what is injected takes a little of the processor, and nothing of the rate.
    assert!(mbps(crowded) > 0.8 * mbps(quiet));
    // None of them was taken for one of the session's.
    std::thread::sleep(Duration::from_millis(200));
    let received = scene.session.stats().received_packets;
    let sent: u64 = scene.server.sessions().iter().map(|session| session.stats().sent_packets).sum();
    assert!(received <= sent, "{received} packets of {sent}");
    scene.session.close(CloseReason::Done);
    assert!(matches!(scene.seen.recv_timeout(PATIENCE), Ok(Seen::Closed(CloseReason::Done, false))));
}

#[test]
fn replay__of_sealed_packets_counts_for_nothing() {
    const LENGTH: u64 = 10_000_000;
    let _turn = turn();
    let scene = Scene::new(false);
    *scene.path.heard.repeats.lock().unwrap() = 4;
    scene.fetch(0, LENGTH);
    std::thread::sleep(Duration::from_millis(200));
    let received = scene.session.stats().received_wire_bytes;
    let sent: u64 = scene.server.sessions().iter().map(|session| session.stats().sent_wire_bytes).sum();
    println!("{received} bytes received of {sent} that were sent, each five times");
    assert!(received <= sent && received > LENGTH, "{received} bytes of {sent}");
    let rate = scene.session.stats().sink.expect("it receives").measured.as_mbps();
    assert!(rate < 1.1 * CAPACITY_MBPS, "{rate} Mb/s");
}

#[test]
fn replay__of_sealed_packets_is_no_sign_of_life() {
    let _turn = turn();
    let scene = Scene::new(false);
    scene.fetch(0, 1_000_000);
    scene.path.heard.is_cut.store(true, Ordering::Relaxed);
    let control = scene.path.heard.control.lock().unwrap().clone();
    let repeat = |turn: u64, data: &[u8]| if turn.is_multiple_of(2) { data.to_vec() } else { control.clone() };
    let (repeated, ()) = scene.path.inject(repeat, || std::thread::sleep(Duration::from_secs(3)));
    let silent_s = scene.session.stats().silent_for.as_secs_f64();
    println!("silent for {silent_s:.1} s, beside {repeated} repeated packets");
    // Else a session with nothing to do hears of its peer each second.
    assert!(repeated > 500 && silent_s > 2.5, "{silent_s} s");
}

/// The least that a session's end node led it to in so long a time.
fn least_target(session: &Session, span: Duration) -> f64 {
    let begin = Instant::now();
    let mut least = f64::MAX;
    while begin.elapsed() < span {
        least = least.min(session.stats().sink.expect("it receives").target.as_mbps());
        std::thread::sleep(Duration::from_millis(5));
    }
    least
}

#[test]
fn flood__of_one_byte_datagrams_takes_no_capacity() {
    let _turn = turn();
    let scene = Scene::new(false);
    // More than comes while the test lasts.
    scene.session.want(1, 0..1 << 40);
    std::thread::sleep(Duration::from_secs(1));
    let before = least_target(&scene.session, Duration::from_millis(300));
    let (to, is_over) = (scene.client.local_addr(), AtomicBool::new(false));
    let during = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let _ = socket.send_to(&[0x18], to);
                }
            });
        }
        // A machine that has other things to do: what comes meanwhile fills the socket, sooner or later.
        for round in 0..20 {
            scene.stall.send(Duration::from_millis(400)).unwrap();
            std::thread::sleep(Duration::from_millis(500));
            if round >= 3 && scene.client.overflows() > 1000 {
                break;
            }
        }
        let during = least_target(&scene.session, Duration::from_millis(500));
        is_over.store(true, Ordering::Relaxed);
        during
    });
    let after = least_target(&scene.session, Duration::from_millis(500));
    let overflows = scene.client.overflows();
    println!(
        "capacity {before:.1} Mb/s before, {during:.1} during, {after:.1} after; {overflows} datagrams had no room"
    );
    assert!(overflows > 1000, "the flood was none: {overflows}");
    assert!(during > 0.95 * before && after > 0.95 * before);
}
