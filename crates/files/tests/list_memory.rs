//! Memory of peers' lists and visitors' sessions, measured by a counting allocator: each test measures the whole
//! process, so they run one after the other.

#![allow(missing_docs, non_snake_case)]

use std::alloc::System;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use fairwave_files::{Durable, Ended, GetOptions, Share, ShareOptions, get};
use fairwave_host::{
    ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, Session, ShareId, Terms, Ticket, Validity,
    VoidReason,
};
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::{Bytes, Duration, Rate};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Max memory of a list here, bytes.
const LIST_BYTES: usize = 4 << 20;
/// Memory of a transfer besides its list: sockets, buffers, queues, threads.
const REST_BYTES: usize = 2 << 20;
/// Bytes of entries in one segment of a list.
const BODY_BYTES: usize = 60_000;

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

fn taken() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Sends the given list, and never a byte of a file.
struct Lister {
    entries: Vec<Vec<u8>>,
    list: Vec<u8>,
    /// Memory of the process when everything was ready.
    before: Arc<AtomicUsize>,
}

impl Handler for Lister {
    fn on_open(&mut self, session: &Session) {
        let key = session.secret("manifest");
        let mut number = 0_u64;
        let mut list = Vec::new();
        let mut push = |body: &[u8]| {
            let mut hasher = blake3::Hasher::new_keyed(&key);
            hasher.update(&number.to_le_bytes()).update(body);
            list.extend((body.len() as u32).to_be_bytes());
            list.extend(body);
            list.extend(&hasher.finalize().as_bytes()[..16]);
            number += 1;
        };
        // Version 1, and the first entry: the share's name.
        let mut body = [&[1, 1][..], &[7; 16]].concat();
        for entry in std::mem::take(&mut self.entries) {
            if body.len() + entry.len() > BODY_BYTES {
                push(&body);
                body = vec![1];
            }
            body.extend(entry);
        }
        push(&body);
        self.list = list;
        self.before.store(taken(), Ordering::SeqCst);
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        let end = if stream == 0 { self.list.len() as u64 } else { return };
        if range.start < end {
            session.serve(stream, range.start..range.end.min(end));
        }
        if range.end > end {
            session.refuse(stream, range.start.max(end)..range.end, VoidReason::Shrank);
        }
    }

    fn lend(&mut self, _: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        take(self.list.get(range.start as usize..range.end as usize).ok_or(VoidReason::Shrank)?);
        Ok(())
    }
}

/// Bytes as the list has them, behind their length.
fn text(bytes: &[u8]) -> Vec<u8> {
    [&(0x4000 | bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// Mode 0o755 and a time.
fn meta() -> Vec<u8> {
    [&[0x41, 0xed][..], &1_700_000_000_i64.to_be_bytes(), &[0; 4]].concat()
}

fn file(path: &[u8], bytes: u64) -> Vec<u8> {
    let length = (0xc000_0000_0000_0000 | bytes).to_be_bytes();
    [&[2][..], &text(path), &length, &meta(), &[9; 16]].concat()
}

fn directory(path: &[u8]) -> Vec<u8> {
    [&[3][..], &text(path), &meta()].concat()
}

fn link(path: &[u8], target: &[u8]) -> Vec<u8> {
    [&[4][..], &text(path), &meta(), &text(target)].concat()
}

fn failed(path: &[u8]) -> Vec<u8> {
    [&[6][..], &text(path), &[4], b"gone"].concat()
}

/// The most that the process had more than before, while it took a list; and how that ended.
fn peak(entries: Vec<Vec<u8>>, names: &[&str]) -> (usize, Ended) {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = EndpointConfig { listen: Some(loopback), ..EndpointConfig::default() };
    let [server, client] = [(), ()].map(|()| Endpoint::bind(&config).expect("a port is free"));
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    let ticket =
        keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).expect("a ticket");
    let before = Arc::new(AtomicUsize::new(usize::MAX));
    let lister = Mutex::new(Some(Lister { entries, list: Vec::new(), before: Arc::clone(&before) }));
    server.listen(
        keyring,
        Box::new(move |_| {
            let lister = lister.lock().expect("nobody panicked").take().ok_or(fairwave_host::Refusal::UnknownName)?;
            Ok((Terms::default(), Box::new(lister)))
        }),
    );
    let place = tempfile::tempdir().expect("there is room");
    let options = GetOptions {
        destination: place.path().to_owned(),
        names: names.iter().map(Into::into).collect(),
        list_memory: Bytes::new(LIST_BYTES as u64),
        durable: Durable::None,
        retry: Duration::ZERO,
        ..GetOptions::default()
    };
    let transfer = get(&client, &ticket, options).expect("the giver is there");
    let mut most = 0;
    let outcome = loop {
        most = most.max(taken().saturating_sub(before.load(Ordering::SeqCst)));
        if let Some(outcome) = transfer.wait(Some(Duration::from_micros(200))) {
            break outcome;
        }
    };
    (most, outcome.ended)
}

/// A list, and the names that are wanted of it.
struct Kind {
    what: &'static str,
    entries: Vec<Vec<u8>>,
    names: &'static [&'static str],
}

/// Enough entries of each kind that an unbounded list would take at least twice as much.
fn kinds() -> Vec<Kind> {
    let names = |i: usize| [format!("{i}/").into_bytes(), vec![b'x'; 250], b"/".to_vec(), vec![b'y'; 250]].concat();
    let deep = |i: usize| [format!("{i}").into_bytes(), b"/x".repeat(250)].concat();
    let target = [b"t/".repeat(1000), b"t".to_vec()].concat();
    let short = |i: usize| i.to_string().into_bytes();
    let all = |what, entries| Kind { what, entries, names: &[] };
    vec![
        all("directories that nobody listed", (0..100).map(|i| file(&deep(i), 0)).collect()),
        all("directories", (0..15_000).map(|i| directory(&short(i))).collect()),
        all("files to come", (0..10_000).map(|i| file(&names(i), 5)).collect()),
        Kind {
            names: &["none"],
            ..all("files that are not wanted", (0..150_000).map(|i| file(&short(i), 5)).collect())
        },
        all("links", (0..5_000).map(|i| link(&short(i), &target)).collect()),
        all("failures", (0..12_000).map(|i| failed(&names(i))).collect()),
        all("a file of holes", (0..250).map(|_| [vec![8, 0x50, 0x00], [1, 1].repeat(2048)].concat()).collect()),
    ]
}

#[test]
fn list__takes_no_more_memory_than_it_is_allowed() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let mut peaks = Vec::new();
    for Kind { what, entries, names } in kinds() {
        let listed: usize = entries.iter().map(Vec::len).sum();
        let (most, ended) = peak(entries, names);
        println!("{what}: {:.1} MiB for a list of {:.1} MiB: {ended:?}", mib(most), mib(listed));
        peaks.push((what, most, ended));
    }
    for (what, most, ended) in peaks {
        assert!(most <= LIST_BYTES + REST_BYTES, "{what}: {most} bytes");
        let says = "the peer's file list needs more than 4 MiB of memory";
        assert_eq!(ended, Ended::Failed(says.to_owned()), "{what}");
    }
}

/// A ticket's part of a server's 512 MiB for blocks.
const SHARE_BYTES: usize = 128 << 20;
/// Buffers that are used again, and 40 sessions at both ends.
const SESSIONS_BYTES: usize = 64 << 20;

/// Asks for all of a tree, and takes hardly anything.
struct Sipping;

impl Handler for Sipping {
    fn on_open(&mut self, session: &Session) {
        session.set_ceiling(Some(Rate::mbps(0.01)));
        session.want(0, 0..4096);
        session.want(2, 0..TREE_BYTES);
    }
}

const TREE_BYTES: u64 = 40 << 20;

/// Each session reads 32 MiB ahead where it may: 40 of them 1.25 GiB.
#[test]
fn visitors__of_one_ticket_hold_no_more_than_its_share() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = tempfile::tempdir().expect("there is room");
    let path = place.path().join("file");
    std::fs::write(&path, vec![7; TREE_BYTES as usize]).expect("there is room");
    let (client, ticket, _server) = served(path);
    let before = taken();
    for _ in 0..VISITORS {
        visit(&client, &ticket, Box::new(Sipping));
    }
    let begin = std::time::Instant::now();
    let mut looks_after = 0;
    while looks_after < 200 {
        let more = taken().saturating_sub(before);
        assert!(more <= SHARE_BYTES + SESSIONS_BYTES, "{} MiB", more >> 20);
        // From when its share is used up.
        looks_after += usize::from(looks_after > 0 || more > SHARE_BYTES * 9 / 10);
        assert!(begin.elapsed().as_secs() < 120, "its share is not used: {} MiB", more >> 20);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Asks for a whole list, drops it, and stays.
struct Browsing(Sender<()>);

impl Handler for Browsing {
    fn on_open(&mut self, session: &Session) {
        session.want(0, 0..2 * LISTED_BYTES);
    }

    fn on_void(&mut self, _: &Session, _: u32, _: Range<u64>, _: VoidReason) {
        // The list ends: the server holds all of it.
        let _ = self.0.send(());
    }
}

/// Files with names of 240 bytes: some 5.6 MB of entries.
const LISTED_FILES: usize = 20_000;
const LISTED_BYTES: u64 = 6 << 20;

/// Each for itself they would hold 40 lists, 260 MB.
#[test]
fn visitors__of_the_same_tree_hold_one_list() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = tempfile::tempdir().expect("there is room");
    let path = place.path().join("data");
    std::fs::create_dir(&path).expect("there is room");
    for number in 0..LISTED_FILES {
        std::fs::File::create(path.join(format!("{number:0240}"))).expect("there is room");
    }
    let (client, ticket, _server) = served(path);
    let before = taken();
    let (done, listed) = channel();
    for _ in 0..VISITORS {
        visit(&client, &ticket, Box::new(Browsing(done.clone())));
    }
    for _ in 0..VISITORS {
        listed.recv_timeout(LIMIT).expect("the list has an end");
    }
    // Copies of what is on its way to the visitors go when it has arrived.
    wait_for("one list stays", || taken().saturating_sub(before) <= 2 * LISTED_BYTES as usize + SESSIONS_BYTES);
}

const VISITORS: usize = 40;

fn visit(client: &Endpoint, ticket: &Ticket, handler: Box<dyn Handler>) {
    // Greeting of a client for a get.
    let greeting = vec![1, 1];
    let options = ConnectOptions { sends: false, receives: true, greeting, options: Terms::default() };
    client.connect(ticket, options, handler).expect("it is let in");
}

/// A client of a server of this path, a ticket, and the server.
fn served(path: PathBuf) -> (Endpoint, Ticket, Endpoint) {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = EndpointConfig { listen: Some(loopback), ..EndpointConfig::default() };
    let [server, client] = [(), ()].map(|()| Endpoint::bind(&config).expect("a port is free"));
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    let ticket =
        keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).expect("a ticket");
    let share = Arc::new(Share::new(vec![path], ShareOptions::default()).expect("it can be read"));
    server.listen_with(keyring, share.judges(), share.accept());
    (client, ticket, server)
}
