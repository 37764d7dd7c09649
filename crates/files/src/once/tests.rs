use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fairwave_host::{
    ConnectError, ConnectOptions, Endpoint, EndpointConfig, Identity, Keyring, ShareId, Ticket, Validity,
};
use fairwave_proto::Terms;

use super::super::share::Share;
use super::*;
use crate::format::greeting::{Greeting, Look, Walk};
use crate::format::streams::{MANIFEST, TREE};
use crate::give::put::{PutOptions, put};
use crate::take::disk::durable::Durable;
use crate::take::get::{GetOptions, get};
use crate::take::share_options::ShareOptions;
use fairwave_proto::handshake::HandshakeError;

const TICKET: TicketId = TicketId(7);
const ONE: Proof = [1; 16];
const TWO: Proof = [2; 16];
const THREE: Proof = [3; 16];

#[test]
fn claims__belong_to_the_first_who_opens_and_to_who_follows() {
    let (claims, now) = (TicketUses::default(), Instant::now());
    assert_eq!(claims.refusal(now, TICKET, None), None);
    assert!(claims.begin(now, TICKET, None, ONE) && claims.is_held(now, TICKET));
    // Another one asked before the first had opened.
    assert!(!claims.begin(now, TICKET, None, TWO));
    for wrong in [None, Some(&TWO)] {
        assert_eq!(claims.refusal(now, TICKET, wrong), Some(Refusal::InUse));
    }
    assert_eq!(claims.refusal(now, TICKET, Some(&ONE)), None);
    assert_eq!(claims.refusal(now, TicketId(8), None), None);
    // The next session of the same, and then the end of the one before it.
    assert!(claims.begin(now, TICKET, Some(&ONE), TWO));
    claims.end(now, TICKET, &ONE, false);
    assert_eq!(claims.refusal(now, TICKET, None), Some(Refusal::InUse));
    assert_eq!(claims.refusal(now, TICKET, Some(&ONE)), Some(Refusal::InUse));
    claims.end(now, TICKET, &TWO, false);
    assert_eq!(claims.refusal(now, TICKET, None), None);
}

#[test]
fn claims__of_who_was_lost_last_as_long_as_it_tries_to_come_back() {
    let (claims, now) = (TicketUses::default(), Instant::now());
    assert!(claims.begin(now, TICKET, None, ONE));
    claims.end(now, TICKET, &ONE, true);
    let last = now + COMES_BACK_WITHIN.saturating_sub(Duration::from_millis(1));
    let after = now + COMES_BACK_WITHIN;
    assert_eq!(claims.refusal(last, TICKET, None), Some(Refusal::InUse));
    assert!(claims.is_held(last, TICKET) && !claims.is_held(after, TICKET));
    assert_eq!(claims.refusal(last, TICKET, Some(&ONE)), None);
    assert_eq!(claims.refusal(after, TICKET, None), None);
    assert!(claims.begin(after, TICKET, None, TWO));
    // Now it is too late.
    assert_eq!(claims.refusal(after, TICKET, Some(&ONE)), Some(Refusal::InUse));
    assert!(!claims.begin(after, TICKET, Some(&ONE), THREE));
}

#[test]
fn claims__count_the_bytes_of_each_file_in_all_sessions() {
    let claims = TicketUses::default();
    assert!(!claims.count(TICKET, given(&[])), "a look");
    assert!(!claims.count(TICKET, given(&[(1, 0, 0)])), "a hole");
    assert!(!claims.count(TICKET, given(&[(1, 60, 100), (2, 99, 100)])));
    assert!(!claims.count(TICKET, given(&[(1, 39, 100)])));
    assert!(claims.count(TICKET, given(&[(1, 1, 100)])));
    assert!(claims.count(TICKET, given(&[])), "it stays so");
    assert!(!claims.count(TicketId(8), given(&[(1, 1, 100)])));
    assert!(claims.count(TicketId(9), GivenFiles::TooMany));
}

#[test]
fn claims__of_too_many_files_are_not_kept() {
    let claims = TicketUses::default();
    let now = Instant::now();
    let files = (0..=MAX_FILES as u64).map(|number| {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&number.to_le_bytes());
        GivenFile { name, given_bytes: 1, data_bytes: 100 }
    });
    assert!(claims.count(TICKET, GivenFiles::Counted(files.collect())));
    assert_eq!(claims.refusal(now, TICKET, None), Some(Refusal::UsedUp));
}

/// Of each file: its number, bytes that were given, and bytes that it has.
fn given(files: &[(u8, u64, u64)]) -> GivenFiles {
    let file = |&(name, given_bytes, data_bytes)| GivenFile { name: [name; 16], given_bytes, data_bytes };
    GivenFiles::Counted(files.iter().map(file).collect())
}

#[test]
fn claims__of_who_is_lost_again_and_again_have_an_end() {
    let (claims, now) = (TicketUses::default(), Instant::now());
    assert!(claims.begin(now, TICKET, None, ONE));
    let mut proofs = [ONE, TWO].into_iter().cycle();
    // 400 = 4 x 100
    for sent in [100, 100, 100, 99] {
        let proof = proofs.next().unwrap();
        claims.count(TICKET, given(&[(1, sent, 100)]));
        claims.end(now, TICKET, &proof, true);
        assert_eq!(claims.refusal(now, TICKET, Some(&proof)), None);
        assert!(claims.begin(now, TICKET, Some(&proof), if proof == ONE { TWO } else { ONE }));
    }
    let last = proofs.next().unwrap();
    claims.count(TICKET, given(&[(1, 1, 100)]));
    claims.end(now, TICKET, &last, true);
    assert_eq!(claims.refusal(now, TICKET, Some(&last)), Some(Refusal::UsedUp));
    assert!(!claims.begin(now, TICKET, Some(&last), THREE));
}

/// A server in this process, and a ticket of it for one transfer.
struct Server {
    endpoint: Endpoint,
    share: Arc<Share>,
    keyring: Arc<Keyring>,
    ticket: Ticket,
}

impl Server {
    fn new(share: Share) -> Self {
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let endpoint = Endpoint::bind(&EndpointConfig { listen, ..EndpointConfig::default() }).unwrap();
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
        let share = Arc::new(share);
        endpoint.listen(Arc::clone(&keyring), share.accept());
        let ticket = keyring.issue(Validity { lasts_s: None, is_once: true }, vec![endpoint.local_addr()]).unwrap();
        Self { endpoint, share, keyring, ticket }
    }

    /// Waits until no session is open, and the ticket has no owner.
    fn settle(&self) {
        until(|| self.endpoint.sessions().is_empty() && !self.share.is_held(self.ticket.id));
    }

    fn refusal(&self) -> Option<Refusal> {
        self.keyring.refusal(self.ticket.id)
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + fairwave_testing::LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Fetches the first bytes of the tree, all of it or less, and closes with any reason.
#[derive(Clone, Default)]
struct Thief {
    wants: u64,
    got: Arc<AtomicU64>,
    is_closed: Arc<AtomicBool>,
    /// Whether it stays when it has its bytes.
    stays: bool,
}

impl Handler for Thief {
    fn on_open(&mut self, session: &Session) {
        session.want(MANIFEST, 0..4096);
        session.want(TREE, 0..self.wants);
    }

    fn on_data(&mut self, session: &Session, stream: u32, _: u64, bytes: &[u8]) {
        let bytes = if stream == TREE { bytes.len() as u64 } else { 0 };
        if self.got.fetch_add(bytes, Ordering::SeqCst) + bytes == self.wants && bytes > 0 && !self.stays {
            session.close(CloseReason::Stopped);
        }
    }

    fn on_closed(&mut self, _: &Session, _: CloseReason, _: bool) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

impl Thief {
    fn of(wants: u64) -> Self {
        Self { wants, ..Self::default() }
    }

    fn open(&self, at: &Endpoint, ticket: &Ticket, former: Option<&Session>) -> Result<Session, ConnectError> {
        let greeting = Greeting::Get(Walk::default()).to_bytes();
        let options = ConnectOptions { sends: false, receives: true, greeting, options: Terms::default() };
        at.begin(ticket, options, Box::new(self.clone()), former)?.recv().unwrap_or(Err(ConnectError::Closed))
    }

    /// Whether it got what it wanted.
    fn fetch(&self, at: &Endpoint, ticket: &Ticket) -> Result<bool, ConnectError> {
        self.open(at, ticket, None)?;
        until(|| self.is_closed.load(Ordering::SeqCst));
        Ok(self.got.load(Ordering::SeqCst) == self.wants)
    }
}

fn refused<T>(answer: Result<T, ConnectError>) -> Refusal {
    match answer.map(drop) {
        Err(ConnectError::Handshake(HandshakeError::Refused(refusal))) => refusal,
        other => panic!("it is not refused: {other:?}"),
    }
}

const BYTES: u64 = 100_000;

/// A share of one file.
fn file() -> (tempfile::TempDir, Server, Endpoint) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, vec![5; BYTES as usize]).unwrap();
    let server = Server::new(Share::new(vec![path], ShareOptions::default()).unwrap());
    (place, server, Endpoint::bind(&EndpointConfig::default()).unwrap())
}

#[test]
fn get__all_bytes_use_a_ticket_up_whatever_the_client_says() {
    let (_place, server, client) = file();
    assert_eq!(Thief::of(BYTES).fetch(&client, &server.ticket), Ok(true));
    server.settle();
    assert_eq!(server.refusal(), Some(Refusal::UsedUp));
    assert_eq!(refused(Thief::of(BYTES).fetch(&client, &server.ticket)), Refusal::UsedUp);
}

#[test]
fn get__parts_use_a_ticket_up_when_they_make_the_whole() {
    let (_place, server, client) = file();
    // All except a byte, twice: then as many bytes were sent as the file has.
    assert_eq!(Thief::of(BYTES - 1).fetch(&client, &server.ticket), Ok(true));
    server.settle();
    assert_eq!(server.refusal(), None);
    assert_eq!(Thief::of(BYTES - 1).fetch(&client, &server.ticket), Ok(true));
    server.settle();
    assert_eq!(refused(Thief::of(1).fetch(&client, &server.ticket)), Refusal::UsedUp);
}

/// However many other files exist, and whether their list has ended or not.
#[test]
fn get__a_whole_file_uses_a_ticket_up_whatever_else_there_is() {
    let place = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(place.path().join(name), vec![5; BYTES as usize]).unwrap();
    }
    let server = Server::new(Share::new(vec![place.path().to_owned()], ShareOptions::default()).unwrap());
    let client = Endpoint::bind(&EndpointConfig::default()).unwrap();
    assert_eq!(Thief::of(BYTES).fetch(&client, &server.ticket), Ok(true));
    server.settle();
    assert_eq!(server.refusal(), Some(Refusal::UsedUp));
}

/// The client reports that it stopped; its list never ended.
#[test]
fn put__a_placed_file_uses_a_ticket_up_whatever_is_said() {
    let place = tempfile::tempdir().unwrap();
    let (from, into) = (place.path().join("from"), place.path().join("into"));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("a"), "hello").unwrap();
    fs::write(from.join("b"), vec![5; 64 << 20]).unwrap();
    let options = ShareOptions { writable_into: Some(into.clone()), durable: Durable::None, ..ShareOptions::default() };
    let server = Server::new(Share::new(vec![], options).unwrap());
    let client = Endpoint::bind(&EndpointConfig::default()).unwrap();
    let options = PutOptions { limit: Some(fairwave_units::Rate::from_bps(8e6).unwrap()), ..PutOptions::default() };
    let transfer = put(&client, &server.ticket, &[from], &options).unwrap();
    until(|| into.join("from/a").exists());
    transfer.stop();
    assert!(!transfer.wait(None).unwrap().is_complete(), "it was to be stopped in the middle");
    server.settle();
    assert_eq!(server.refusal(), Some(Refusal::UsedUp));
}

#[test]
fn get__the_owner_may_come_back_and_nobody_else_meanwhile() {
    let (_place, server, client) = file();
    let first = Thief { stays: true, ..Thief::of(BYTES) };
    let session = first.open(&client, &server.ticket, None).unwrap();
    until(|| first.got.load(Ordering::SeqCst) == BYTES);
    let other = Endpoint::bind(&EndpointConfig::default()).unwrap();
    assert_eq!(refused(Thief::of(1).open(&other, &server.ticket, None)), Refusal::InUse);
    // It proves that it is the same, though its former session is still open here: that ends, and had all bytes.
    let again = Thief { stays: true, ..Thief::of(BYTES) };
    let session = again.open(&client, &server.ticket, Some(&session)).unwrap();
    until(|| first.is_closed.load(Ordering::SeqCst) && server.refusal() == Some(Refusal::UsedUp));
    assert_eq!(refused(Thief::of(1).open(&other, &server.ticket, None)), Refusal::UsedUp);
    until(|| again.got.load(Ordering::SeqCst) == BYTES);
    session.close(CloseReason::Done);
    until(|| server.refusal() == Some(Refusal::UsedUp));
    assert_eq!(refused(Thief::of(1).open(&other, &server.ticket, None)), Refusal::UsedUp);
}

#[test]
fn put__a_look_uses_nothing_up_and_what_is_there_does() {
    let place = tempfile::tempdir().unwrap();
    let (from, into) = (place.path().join("from"), place.path().join("into"));
    fs::write(&from, "hello").unwrap();
    let options = ShareOptions { writable_into: Some(into.clone()), ..ShareOptions::default() };
    let server = Server::new(Share::new(vec![], options).unwrap());
    let client = Endpoint::bind(&EndpointConfig::default()).unwrap();
    for dry_run in [true, true, false] {
        assert_eq!(server.refusal(), None);
        let options = PutOptions { dry_run, ..PutOptions::default() };
        let transfer = put(&client, &server.ticket, std::slice::from_ref(&from), &options).unwrap();
        assert!(transfer.wait(None).unwrap().is_complete());
        server.settle();
    }
    assert_eq!(fs::read(into.join("from")).unwrap(), b"hello");
    assert_eq!(server.refusal(), Some(Refusal::UsedUp));
    let greeting = Greeting::Put(Look::default()).to_bytes();
    let options = ConnectOptions { sends: true, receives: true, greeting, options: Terms::default() };
    let late = client.connect(&server.ticket, options, Box::new(Thief::of(1)));
    assert_eq!(refused(late), Refusal::UsedUp);
}

/// Asks on the network thread whether that may wait for a disk.
struct Asking(std::sync::mpsc::Sender<bool>);

impl Handler for Asking {
    fn on_open(&mut self, session: &Session) {
        let _ = self.0.send(std::panic::catch_unwind(fairwave_host::assert_may_wait).is_ok());
        session.close(CloseReason::Done);
    }
}

/// A share of many paths: each session resolves all of them. Opening a file on the network thread panics in debug
/// builds, and no transfer ends.
#[test]
fn network_thread__opens_no_file_of_a_get_or_a_put() {
    let place = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..100).map(|number| place.path().join(format!("file{number}"))).collect();
    for path in &paths {
        fs::write(path, "hello").unwrap();
    }
    let into = place.path().join("into");
    let options = ShareOptions { writable_into: Some(into.clone()), ..ShareOptions::default() };
    let server = Server::new(Share::new(paths.clone(), options).unwrap());
    let ticket = server.keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.endpoint.local_addr()]);
    let ticket = ticket.unwrap();
    let client = Endpoint::bind(&EndpointConfig::default()).unwrap();
    if cfg!(debug_assertions) {
        let (tell, may_wait) = std::sync::mpsc::channel();
        let greeting = Greeting::Get(Walk::default()).to_bytes();
        let options = ConnectOptions { sends: false, receives: true, greeting, options: Terms::default() };
        client.connect(&ticket, options, Box::new(Asking(tell))).unwrap();
        assert_eq!(may_wait.recv(), Ok(false), "the guard is not there");
    }
    let taken = place.path().join("taken");
    let options = GetOptions { destination: taken, durable: Durable::None, ..GetOptions::default() };
    let got = get(&client, &ticket, options).unwrap().wait(None).unwrap();
    assert!(got.is_complete() && got.files == 100, "{got:?}");
    let put = put(&client, &ticket, &paths, &PutOptions::default()).unwrap().wait(None).unwrap();
    assert!(put.is_complete() && put.files == 100, "{put:?}");
}
