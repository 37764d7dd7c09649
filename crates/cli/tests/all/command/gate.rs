//! A path on which a transfer stands still where a test wants it to, however fast or slow the machine is.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fairwave_proto::codec::is_handshake;

use super::user::{Host, Serving, place};

/// Control packets are smaller, data packets larger.
const CONTROL_BYTES: usize = 500;

/// A UDP path to a server. It carries some bytes of data from or to the first client, and then none until more may pass.
/// Control passes all the time, so both ends know that the other is there. Further clients notice nothing.
pub(crate) struct Gate {
    /// The clients' address of the server.
    place: SocketAddr,
    /// The server's listening address.
    server: SocketAddr,
    /// Bytes of data that may pass.
    left: Arc<AtomicI64>,
}

impl Gate {
    pub(crate) fn new(bytes: i64) -> Self {
        let (near, server) = (UdpSocket::bind("127.0.0.1:0").expect("a port is free"), place());
        let gate = Self { place: near.local_addr().expect("it is bound"), server, left: Arc::new(bytes.into()) };
        let (near, left) = (Arc::new(near), Arc::clone(&gate.left));
        std::thread::spawn(move || {
            let mut clients = HashMap::<SocketAddr, Client>::new();
            let mut room = vec![0; 1 << 16];
            // The socket lives as long as the process does: at its end nobody waits for the thread.
            loop {
                let Ok((bytes, from)) = near.recv_from(&mut room) else { continue };
                let is_first = clients.is_empty();
                let client = clients.entry(from).or_insert_with(|| {
                    Client::new(server, Arc::clone(&near), from, is_first.then(|| Arc::clone(&left)))
                });
                if client.passes(&room[..bytes]) {
                    // A server that is not there is the client's to notice.
                    let _ = client.far.send(&room[..bytes]);
                }
            }
        });
        gate
    }

    /// Starts a server behind it: the same one each time.
    pub(crate) fn serve(&self, host: &Host, args: &[&str]) -> Serving {
        let (listen, advertise) = (self.server.to_string(), self.place.to_string());
        host.serve(&[args, &["--listen", &listen, "--advertise", &advertise, "--carrier", "udp"]].concat())
    }

    /// Allows this many more bytes of data.
    pub(crate) fn pass(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// From now on all passes.
    pub(crate) fn open(&self) {
        self.pass(i64::MAX);
    }
}

/// One client's way.
struct Client {
    far: Arc<UdpSocket>,
    /// Bytes of data that may pass, if there is a limit.
    left: Option<Arc<AtomicI64>>,
}

impl Client {
    fn new(server: SocketAddr, near: Arc<UdpSocket>, client: SocketAddr, left: Option<Arc<AtomicI64>>) -> Self {
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port is free"));
        far.connect(server).expect("it is on this machine");
        let (back, way) = (Arc::clone(&far), Self { far: Arc::clone(&far), left: left.clone() });
        std::thread::spawn(move || {
            let mut room = vec![0; 1 << 16];
            loop {
                // While no server listens the system reports an error once for each datagram.
                let Ok(bytes) = back.recv(&mut room) else { continue };
                if way.passes(&room[..bytes]) {
                    let _ = near.send_to(&room[..bytes], client);
                }
            }
        });
        Self { far, left }
    }

    fn passes(&self, datagram: &[u8]) -> bool {
        let Some(left) = &self.left else { return true };
        let bytes = i64::try_from(datagram.len()).expect("lengths fit");
        let take = |left: i64| (left > 0).then(|| left.saturating_sub(bytes));
        datagram.len() <= CONTROL_BYTES
            || is_handshake(datagram)
            || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }
}
