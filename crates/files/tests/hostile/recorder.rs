//! An attacker without keys: he listens between a client and its server, and sends the client's hellos again, from
//! anywhere and as often as he likes.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairwave_proto::codec::{HELLO_BYTES, Handshake, MAC_BYTES, is_handshake};

/// Range of a hello's cookie.
pub(crate) const COOKIE: Range<usize> = 11..11 + MAC_BYTES;
/// Ports of the attacker that are open at a time.
const MAX_PORTS: usize = 64;
const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// A relay between a client and a server that keeps all datagrams which the client sends.
pub(crate) struct Recorder {
    address: SocketAddr,
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Whether only handshakes pass.
    is_cut: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// In front of a server.
    pub(crate) fn new(server: SocketAddr) -> Self {
        let [inside, outside] = [(); 2].map(|()| UdpSocket::bind(SocketAddr::from(LOOPBACK)).expect("a port is free"));
        for socket in [&inside, &outside] {
            socket.set_read_timeout(Some(Duration::from_millis(1))).expect("it is not 0");
        }
        outside.connect(server).expect("it is on this machine");
        let address = inside.local_addr().expect("it is bound");
        let kept = Arc::<Mutex<Vec<_>>>::default();
        let [is_cut, is_over] = [(); 2].map(|()| Arc::<AtomicBool>::default());
        let (keeps, cuts, ends) = (Arc::clone(&kept), Arc::clone(&is_cut), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let (mut client, mut buffer) = (None, vec![0; 1 << 16]);
            while !ends.load(Ordering::Relaxed) {
                while let Ok((bytes, from)) = inside.recv_from(&mut buffer) {
                    client = Some(from);
                    keeps.lock().unwrap_or_else(PoisonError::into_inner).push(buffer[..bytes].to_vec());
                    if !cuts.load(Ordering::Relaxed) || is_handshake(&buffer[..bytes]) {
                        // A server that is gone is the test's to notice.
                        let _ = outside.send(&buffer[..bytes]);
                    }
                }
                while let (Ok(bytes), Some(client)) = (outside.recv(&mut buffer), client) {
                    let _ = inside.send_to(&buffer[..bytes], client);
                }
            }
        });
        Self { address, kept, is_cut, is_over, thread: Some(thread) }
    }

    /// From now on nothing of the client's passes but handshakes; or all of it again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Packets of sessions that the client sent.
    pub(crate) fn session_packets(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|datagram| !is_handshake(datagram)).count()
    }

    /// The address at which a client reaches the server through it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The hellos that it has seen, each once, in order.
    pub(crate) fn hellos(&self) -> Vec<Vec<u8>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hellos: Vec<Vec<u8>> = Vec::new();
        for datagram in kept.iter().filter(|datagram| is_handshake(datagram)) {
            if !hellos.contains(datagram) {
                hellos.push(datagram.clone());
            }
        }
        hellos
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Replays hellos, each from another port; those answered with a cookie are sent once more with it.
pub(crate) struct Replayer {
    is_over: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// Packets that a replayer has sent and received.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Hellos from fresh ports.
    pub(crate) sent: AtomicU64,
    /// Cookies that came back.
    pub(crate) cookies: AtomicU64,
    /// Other answers: each is a session that is half open, or a refusal that took a handshake.
    pub(crate) others: AtomicU64,
}

impl Replayer {
    /// So many a second.
    pub(crate) fn start(server: SocketAddr, hellos: Vec<Vec<u8>>, per_s: f64) -> Self {
        let (is_over, counts) = (Arc::<AtomicBool>::default(), Arc::<Counts>::default());
        let (ends, counting) = (Arc::clone(&is_over), Arc::clone(&counts));
        let thread = std::thread::spawn(move || replay(server, &hellos, per_s, &ends, &counting));
        Self { is_over, counts, thread: Some(thread) }
    }

    /// Packets sent and received so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Replayer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn replay(server: SocketAddr, hellos: &[Vec<u8>], per_s: f64, is_over: &AtomicBool, counts: &Counts) {
    let (begin, mut ports) = (Instant::now(), VecDeque::new());
    while !is_over.load(Ordering::Relaxed) {
        let due = (begin.elapsed().as_secs_f64() * per_s) as u64;
        for number in counts.sent.load(Ordering::Relaxed)..due {
            let hello = &hellos[number as usize % hellos.len()];
            let socket = UdpSocket::bind(SocketAddr::from(LOOPBACK)).expect("a port is free");
            socket.set_nonblocking(true).expect("it is a socket");
            socket.connect(server).expect("it is on this machine");
            let _ = socket.send(hello);
            counts.sent.fetch_add(1, Ordering::Relaxed);
            ports.push_back((socket, hello));
            if ports.len() > MAX_PORTS {
                ports.pop_front();
            }
        }
        ports.retain(|(socket, hello)| answer(socket, hello, counts));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes what came to a port: whether something more may come.
fn answer(socket: &UdpSocket, hello: &[u8], counts: &Counts) -> bool {
    let mut buffer = [0; HELLO_BYTES];
    let Ok(bytes) = socket.recv(&mut buffer) else { return true };
    let Ok(Handshake::Cookie { cookie, .. }) = Handshake::read(&buffer[..bytes]) else {
        counts.others.fetch_add(1, Ordering::Relaxed);
        return false;
    };
    counts.cookies.fetch_add(1, Ordering::Relaxed);
    let mut with_cookie = hello.to_vec();
    if with_cookie[COOKIE] == cookie {
        return false;
    }
    with_cookie[COOKIE].copy_from_slice(&cookie);
    let _ = socket.send(&with_cookie);
    true
}
