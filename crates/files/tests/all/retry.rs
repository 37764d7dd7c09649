//! Transfers that outlive their sessions, through the public interface.

#![allow(non_snake_case)]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use fairwave_files::{
    Ended, GetOptions, Outcome, Pause, PutOptions, Share, ShareOptions, Transfer, TransferError, get, put,
};
use fairwave_host::{
    ConnectError, Endpoint, EndpointConfig, HandshakeError, Identity, Keyring, Lasts, PathKind, Refusal, ShareId,
    StateDir, Ticket, Validity,
};
use fairwave_testing::{LIMIT, wait_for, wait_some};
use fairwave_units::{Duration, Rate};

const LASTS: Option<Duration> = Some(Duration::from_secs(LIMIT.as_secs()));
const MB: usize = 1_000_000;

/// A server that can go and come again, and a client.
struct Hosts {
    place: tempfile::TempDir,
    config: EndpointConfig,
    keyring: Arc<Keyring>,
    server: Option<Endpoint>,
    client: Endpoint,
    ticket: Ticket,
}

impl Hosts {
    fn new(lasts: Lasts, validity: Validity, bytes: usize) -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["data", "to", "incoming"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("data/large"), content(1, bytes)).unwrap();
        for i in 0..20 {
            fs::write(place.path().join("data").join(i.to_string()), content(i, i * 70)).unwrap();
        }
        let capacity = Some(Rate::mbps(500.0));
        let config = EndpointConfig {
            listen: Some(([127, 0, 0, 1], 0).into()),
            send_capacity: capacity,
            receive_capacity: capacity,
            path: PathKind::Dedicated,
            lasts,
            ..EndpointConfig::default()
        };
        let client = Endpoint::bind(&config).unwrap();
        let server = Endpoint::bind(&config).unwrap();
        let at = server.local_addr();
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
        let ticket = keyring.issue(validity, vec![at]).unwrap();
        let config = EndpointConfig { listen: Some(at), ..config };
        let mut hosts = Self { place, config, keyring, server: None, client, ticket };
        hosts.serve(server);
        hosts
    }

    fn serve(&mut self, server: Endpoint) {
        let options = ShareOptions { writable_into: Some(self.path("incoming")), ..ShareOptions::default() };
        let share = Arc::new(Share::new(vec![self.path("data")], options).unwrap());
        server.listen(Arc::clone(&self.keyring), share.accept());
        self.server = Some(server);
    }

    /// The server ends, and sends a close.
    fn leave(&mut self) {
        self.server.take().unwrap().close();
    }

    /// It is there again, at the same port, which another test may have in between.
    fn come_back(&mut self) {
        let server = wait_some("the port", || Endpoint::bind(&self.config).ok());
        self.serve(server);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn get(&self, options: GetOptions) -> Transfer {
        get(&self.client, &self.ticket, GetOptions { destination: self.path("to"), ..options }).unwrap()
    }

    /// A get, or a put, at this rate.
    fn begin(&self, is_put: bool, rate: Rate, retry: Duration) -> Transfer {
        if !is_put {
            return self.get(GetOptions { limit: Some(rate), retry, ..GetOptions::default() });
        }
        let options = PutOptions { limit: Some(rate), retry, ..PutOptions::default() };
        put(&self.client, &self.ticket, &[self.path("data")], &options).unwrap()
    }

    fn assert_same(&self, is_put: bool) {
        let there = self.path(if is_put { "incoming/data" } else { "to/data" });
        for entry in fs::read_dir(self.path("data")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            assert!(fs::read(&path).unwrap() == fs::read(there.join(name)).unwrap(), "{}", path.display());
        }
        assert_eq!(fs::read_dir(&there).unwrap().count(), 21);
    }
}

fn content(seed: usize, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut content);
    content
}

fn end(transfer: &Transfer) -> Outcome {
    transfer.wait(LASTS).unwrap_or_else(|| panic!("it does not end: {:?}", transfer.progress()))
}

fn reach(transfer: &Transfer, bytes: usize) {
    wait_for("its bytes", || {
        assert_eq!(transfer.wait(Some(Duration::ZERO)), None, "it ends too early");
        transfer.progress().bytes_done >= bytes as u64
    });
}

/// The first pause in which this holds.
fn pause_in(transfer: &Transfer, is_it: impl Fn(&Pause) -> bool) -> Pause {
    wait_some("the pause", || {
        let pause = transfer.pause().filter(&is_it);
        assert!(pause.is_some() || transfer.wait(Some(Duration::ZERO)).is_none(), "it ends without it");
        pause
    })
}

fn forever() -> Validity {
    Validity { lasts_s: None, is_once: false }
}

/// All of it is there, and what came in the first sessions was not moved once more.
fn assert_went_on(hosts: &Hosts, transfer: &Transfer, is_put: bool, bytes: usize) {
    let outcome = end(transfer);
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!((outcome.files, outcome.blake3), (21, None));
    hosts.assert_same(is_put);
    let progress = transfer.progress();
    let small: usize = (0..20).map(|i| i * 70).sum();
    assert_eq!(progress.bytes_done, (bytes + small) as u64);
    // Nothing existed at the start. Bytes that a giver has sent and its taker has not written are sent again, and count
    // once.
    assert_eq!(progress.bytes_resumed, 0, "{progress:?}");
    assert!(transfer.reconnects() >= 1);
    assert_eq!(transfer.pause(), None);
}

#[test]
fn get_and_put__go_on_when_the_server_comes_back() {
    for is_put in [false, true] {
        let mut hosts = Hosts::new(Lasts::default(), forever(), 20 * MB);
        let transfer = hosts.begin(is_put, Rate::mbps(50.0), Duration::from_secs(600));
        reach(&transfer, 8 * MB);
        hosts.leave();
        let pause = pause_in(&transfer, |pause| pause.attempt == 2);
        assert!(pause.reason.starts_with("no reply"), "{pause:?}");
        assert!(pause.gives_up_in <= Duration::from_secs(600), "{pause:?}");
        let there = transfer.progress();
        assert!(there.bytes_done >= 8 * MB as u64, "{there:?}");
        hosts.come_back();
        assert_went_on(&hosts, &transfer, is_put, 20 * MB);
        assert_eq!(transfer.reconnects(), 1);
        // All pauses are there for one who looks at the end.
        let pauses = transfer.pauses((0, 0));
        let number = |pause: &Pause| (pause.reconnects, pause.attempt);
        assert!(pauses.iter().map(number).eq((1..=pauses.len() as u32).map(|attempt| (0, attempt))), "{pauses:?}");
        assert_eq!(
            (pauses[0].reason.as_str(), pauses[1].reason.as_str()),
            ("the peer shut down", pause.reason.as_str())
        );
        assert_eq!(transfer.pauses(number(&pauses[1])).len(), pauses.len() - 2);
    }
}

/// A UDP path to a server that brings back one datagram, and more once it is open.
struct OneReply {
    place: SocketAddr,
    is_open: Arc<AtomicBool>,
}

impl OneReply {
    fn new(server: SocketAddr) -> Self {
        let [near, far] = [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()));
        far.connect(server).unwrap();
        let path = Self { place: near.local_addr().unwrap(), is_open: Arc::default() };
        let (tell, from) = channel();
        // The threads wait on their sockets as long as the process lives.
        thread::spawn({
            let (near, far) = (Arc::clone(&near), Arc::clone(&far));
            move || {
                let mut room = vec![0; 1 << 16];
                while let Ok((bytes, from)) = near.recv_from(&mut room) {
                    let _ = tell.send(from);
                    let _ = far.send(&room[..bytes]);
                }
            }
        });
        let is_open = Arc::clone(&path.is_open);
        thread::spawn(move || {
            let (client, mut room) = (from.recv().unwrap(), vec![0; 1 << 16]);
            for count in 0.. {
                let Ok(bytes) = far.recv(&mut room) else { continue };
                if count == 0 || is_open.load(Ordering::SeqCst) {
                    let _ = near.send_to(&room[..bytes], client);
                }
            }
        });
        path
    }
}

#[test]
fn get__waits_for_a_server_that_replied_once() {
    let hosts = Hosts::new(Lasts::default(), forever(), MB);
    let path = OneReply::new(hosts.ticket.addresses[0]);
    let ticket = Ticket { addresses: vec![path.place], ..hosts.ticket.clone() };
    let options = |retry| GetOptions { destination: hosts.path("to"), retry, ..GetOptions::default() };
    let transfer = get(&hosts.client, &ticket, options(Duration::from_secs(600))).unwrap();
    let pause = pause_in(&transfer, |_| true);
    assert_eq!(pause.reason, "the server replied once, then stopped responding");
    path.is_open.store(true, Ordering::SeqCst);
    assert_went_on(&hosts, &transfer, false, MB);
}

#[test]
fn get_and_put__get_new_keys_without_waiting() {
    let lasts = Lasts { keys: Duration::from_secs(1), ..Lasts::default() };
    for is_put in [false, true] {
        let hosts = Hosts::new(lasts, forever(), 30 * MB);
        let began = Instant::now();
        // Not even a transfer that does not come back ends with its keys.
        let transfer = hosts.begin(is_put, Rate::mbps(100.0), Duration::ZERO);
        let first = transfer.session().unwrap().id();
        assert_went_on(&hosts, &transfer, is_put, 30 * MB);
        // 30 MB take 2.4 s or longer, in which the keys change twice; on a slow machine they take longer, and each session
        // but the last one lasts as long as its keys.
        let (reconnects, took) = (transfer.reconnects(), began.elapsed());
        assert!((2..=took.as_secs()).contains(&reconnects), "{reconnects} in {took:?}");
        assert_ne!(transfer.session().unwrap().id(), first);
    }
}

#[test]
fn get__goes_on_with_a_ticket_that_expires_meanwhile() {
    let lasts = Lasts { keys: Duration::from_secs(1), ..Lasts::default() };
    let mut hosts = Hosts::new(lasts, forever(), 30 * MB);
    hosts.leave();
    let state = hosts.path("state");
    hosts.keyring = Arc::new(Keyring::open(StateDir::at(&state).unwrap(), ShareId(1)).unwrap());
    hosts.ticket = hosts.keyring.issue(forever(), hosts.ticket.addresses.clone()).unwrap();
    hosts.come_back();
    // All of it would take 48 s.
    let transfer = hosts.begin(false, Rate::mbps(5.0), Duration::ZERO);
    reach(&transfer, MB / 10);
    // Its end comes in the file, which is read again each second.
    let keyring = fs::read_to_string(state.join("keyring")).unwrap();
    fs::write(state.join("keyring"), keyring.replace(r#""expires_unix_s":0"#, r#""expires_unix_s":1"#)).unwrap();
    wait_for("the ticket's end", || hosts.keyring.refusal(hosts.ticket.id) == Some(Refusal::Expired));
    let (before, came) = (transfer.reconnects(), transfer.progress().bytes_there());
    // A new client is refused.
    let other = get(&hosts.client, &hosts.ticket, GetOptions { destination: hosts.path("x"), ..GetOptions::default() });
    let Err(TransferError::Connect(ConnectError::Handshake(HandshakeError::Refused(refusal)))) = other else {
        panic!("it is let in");
    };
    assert_eq!(refusal, Refusal::Expired);
    wait_for("bytes of another session", || {
        assert_eq!(transfer.wait(Some(Duration::ZERO)), None, "it ends too early");
        transfer.reconnects() > before + 1 && transfer.progress().bytes_there() > came
    });
    transfer.stop();
    assert_eq!(end(&transfer).ended, Ended::Stopped);
}

#[test]
fn get__ends_at_once_when_its_ticket_is_no_good_any_more() {
    for is_revoked in [true, false] {
        let mut hosts = Hosts::new(Lasts::default(), forever(), 30 * MB);
        let transfer = hosts.begin(false, Rate::mbps(80.0), Duration::from_secs(600));
        reach(&transfer, 5 * MB);
        hosts.leave();
        pause_in(&transfer, |_| true);
        if is_revoked {
            assert!(hosts.keyring.revoke(hosts.ticket.id).unwrap());
        } else {
            // Somebody else is at its address who has never heard of it.
            hosts.keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
        }
        hosts.come_back();
        if is_revoked {
            let Ended::Failed(reason) = end(&transfer).ended else { panic!("it goes on") };
            assert_eq!(reason, "the peer shut down; then: the server refused: the ticket has been revoked");
        } else {
            // That is indistinguishable from an absent server: the client waits until it is stopped.
            pause_in(&transfer, |pause| pause.attempt == 2);
            transfer.stop();
            assert_eq!(end(&transfer).ended, Ended::Stopped);
        }
    }
}

#[test]
fn get__gives_up_when_its_patience_is_over() {
    for (retry_s, says) in [(0, "the peer shut down"), (3, "the peer shut down; ")] {
        let mut hosts = Hosts::new(Lasts::default(), forever(), 30 * MB);
        let transfer = hosts.begin(false, Rate::mbps(80.0), Duration::from_secs(retry_s));
        reach(&transfer, 5 * MB);
        hosts.leave();
        let outcome = end(&transfer);
        let Ended::Failed(reason) = outcome.ended else { panic!("it goes on") };
        assert!(reason.starts_with(says), "{reason}");
        assert_eq!(reason.contains("to reconnect failed: no reply"), retry_s > 0, "{reason}");
        assert_eq!((transfer.reconnects(), transfer.pause()), (0, None));
        // The next call goes on.
        hosts.come_back();
        let again = hosts.get(GetOptions::default());
        assert!(end(&again).is_complete());
        assert!(again.progress().bytes_resumed >= 4 * MB as u64, "{:?}", again.progress());
    }
}

#[test]
fn stop__while_it_waits_or_connects_ends_it() {
    let mut hosts = Hosts::new(Lasts::default(), forever(), 30 * MB);
    let transfers = [0, 1].map(|at| {
        let destination = hosts.path(&format!("to{at}"));
        let options = GetOptions { destination, limit: Some(Rate::mbps(40.0)), ..GetOptions::default() };
        get(&hosts.client, &hosts.ticket, options).unwrap()
    });
    for transfer in &transfers {
        reach(transfer, 5 * MB);
    }
    hosts.leave();
    for (transfer, is_waiting) in transfers.iter().zip([true, false]) {
        pause_in(transfer, |pause| pause.next_in.is_some() == is_waiting);
        transfer.stop();
        assert_eq!(end(transfer).ended, Ended::Stopped);
    }
}

#[test]
fn get__of_an_endpoint_that_is_closed_does_not_come_back() {
    let hosts = Hosts::new(Lasts::default(), forever(), 30 * MB);
    let transfer = hosts.begin(false, Rate::mbps(80.0), Duration::from_secs(600));
    reach(&transfer, 5 * MB);
    hosts.client.close();
    assert_eq!(end(&transfer).ended, Ended::Stopped);
}

#[test]
fn get_and_put__what_came_of_a_block_is_kept_and_counts_as_progress() {
    const BYTES: usize = 1_500_000;
    for is_put in [false, true] {
        // A file of one block, which takes 6 s.
        let mut hosts = Hosts::new(Lasts::default(), forever(), BYTES);
        let transfer = hosts.begin(is_put, Rate::mbps(2.0), Duration::from_secs(600));
        for cut in 1..=2 {
            let (far, begun) = (cut * 450_000, Instant::now());
            wait_for("a part of the block", || {
                assert_eq!(transfer.wait(Some(Duration::ZERO)), None, "it ends too early");
                transfer.progress().bytes_there() >= far
            });
            let came = begun.elapsed();
            hosts.leave();
            let pause = pause_in(&transfer, |_| true);
            // No block is verified yet, but bytes came: patience counts from the last of them, however long the server took
            // to leave.
            let gives_up_s = begun.elapsed().as_secs_f64() + pause.gives_up_in.as_secs_f64();
            assert!(gives_up_s > 600.0 + 0.5 * came.as_secs_f64(), "{pause:?}, {came:?}");
            let waits = pause.next_in.unwrap_or(Duration::ZERO);
            assert!(waits < Duration::from_secs(2), "{pause:?}");
            hosts.come_back();
            wait_for("another session", || {
                assert_eq!(transfer.wait(Some(Duration::ZERO)), None, "it ends too early");
                transfer.reconnects() >= cut
            });
        }
        assert_went_on(&hosts, &transfer, is_put, BYTES);
        // Bytes received in the last session: the rest, and headers, lists and hashes.
        let stats = transfer.session().unwrap().stats();
        let wire = if is_put { stats.sent_wire_bytes } else { stats.received_wire_bytes };
        assert!((300_000..850_000).contains(&wire), "{wire} bytes in the last session");
        assert_eq!((transfer.progress().bytes_held, transfer.progress().bytes_kept), (0, 0));
    }
}
