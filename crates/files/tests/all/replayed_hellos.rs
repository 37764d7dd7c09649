//! Replays of recorded hellos against a server.
//!
//! The server is a separate process of this program, so that its threads and descriptors can be counted.

#![allow(missing_docs, non_snake_case)]

#[path = "../hostile/recorder.rs"]
mod recorder;
#[path = "../hostile/server.rs"]
mod server;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairwave_files::{Ended, GetOptions, PutOptions, Transfer, get, put};
use fairwave_host::{
    ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, ShareId, Terms, Ticket, Validity,
};
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::Rate;

use recorder::{Recorder, Replayer};
use server::{DESCRIPTORS, Server, Usage};

/// How many seconds' worth of hellos are sent again before anybody else comes.
const FLOOD_S: f64 = 1.5;
const PATIENCE: fairwave_units::Duration = fairwave_units::Duration::from_secs(LIMIT.as_secs());
const GETS: usize = 4;

/// The recorded packets.
#[derive(Clone, Copy, Debug)]
enum What {
    Get,
    Put,
}

fn client() -> Endpoint {
    let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    Endpoint::bind(&EndpointConfig { listen, ..EndpointConfig::default() }).expect("a port is free")
}

fn begin_get(client: &Endpoint, ticket: &Ticket, destination: &Path) -> Result<Transfer, String> {
    let options = GetOptions {
        destination: destination.to_owned(),
        retry: fairwave_units::Duration::ZERO,
        ..GetOptions::default()
    };
    get(client, ticket, options).map_err(|error| error.to_string())
}

fn begin_put(client: &Endpoint, ticket: &Ticket, path: &Path) -> Result<Transfer, String> {
    let options = PutOptions { retry: fairwave_units::Duration::ZERO, ..PutOptions::default() };
    put(client, ticket, &[path.to_owned()], &options).map_err(|error| error.to_string())
}

/// The hellos of a transfer that somebody made with a ticket.
fn recorded(server: &Server, what: What, ticket: &Ticket, place: &Path) -> Vec<Vec<u8>> {
    let recorder = Recorder::new(server.address);
    let ticket = Ticket { addresses: vec![recorder.address()], ..ticket.clone() };
    let client = client();
    let transfer = match what {
        What::Get => begin_get(&client, &ticket, &place.join("recorded")),
        What::Put => begin_put(&client, &ticket, &place.join("put")),
    };
    let outcome = transfer.expect("the server is there").wait(Some(PATIENCE)).expect("it ends");
    assert_eq!(outcome.ended, Ended::Done);
    client.close();
    wait_for("a hello without and one with a cookie", || recorder.hellos().len() >= 2);
    recorder.hellos()
}

/// Whether somebody with a good ticket is served.
fn is_served(ticket: &Ticket, destination: &Path) -> bool {
    let client = client();
    let outcome = begin_get(&client, ticket, destination).map(|transfer| transfer.wait(Some(PATIENCE)));
    client.close();
    match outcome {
        Ok(Some(outcome)) if outcome.is_complete() => true,
        other => {
            println!("not served: {other:?}");
            false
        }
    }
}

/// Replays recorded hellos at this rate, each from another port: the server's threads and descriptors are unchanged,
/// and other clients are served.
fn replay(what: What, is_revoked: bool, per_s: f64) {
    let place = tempfile::tempdir().expect("there is room");
    fs::write(place.path().join("put"), [7; 1000]).expect("there is room");
    let mut server = Server::start(place.path(), matches!(what, What::Put), DESCRIPTORS);
    let hellos = recorded(&server, what, &server.recorded.clone(), place.path());
    if is_revoked {
        server.revoke();
    }
    let before = server.settled();
    let replayer = Replayer::start(server.address, hellos, per_s);
    let mut most = before;
    wait_for("the flood", || {
        most = most.max(server.usage());
        replayer.counts().sent.load(Ordering::Relaxed) as f64 >= FLOOD_S * per_s
    });
    let gets = if matches!(what, What::Put) { 0 } else { GETS };
    let served = (0..gets).filter(|number| is_served(&server.good, &place.path().join(format!("got{number}")))).count();
    let puts = GETS - gets;
    let put_well = (0..puts).filter(|_| {
        let client = client();
        let transfer = begin_put(&client, &server.good, &place.path().join("put"));
        let outcome = transfer.ok().and_then(|transfer| transfer.wait(Some(PATIENCE)));
        client.close();
        outcome.is_some_and(|outcome| outcome.is_complete())
    });
    let served = served + put_well.count();
    let counts = replayer.counts();
    let [sent, cookies, others] =
        [&counts.sent, &counts.cookies, &counts.others].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{what:?}, revoked: {is_revoked}, {per_s}/s: {sent} hellos, {cookies} cookies, {others} other answers; \
         {before} before, {most} at the most; {served} of {GETS} served"
    );
    drop(replayer);
    // Under load the network thread sometimes opens a file in /proc briefly, to read whether the socket overflowed.
    let descriptors = before.descriptors..=before.descriptors + 1;
    assert!(most.threads == before.threads && descriptors.contains(&most.descriptors), "{before}, and then {most}");
    assert_eq!((served, others), (GETS, 0));
}

#[test]
fn recorded_hello__of_a_get_opens_nothing() {
    replay(What::Get, false, 60.0);
    replay(What::Get, false, 1000.0);
}

#[test]
fn recorded_hello__of_a_put_opens_nothing() {
    replay(What::Put, false, 60.0);
    replay(What::Put, false, 1000.0);
}

#[test]
fn recorded_hello__with_a_revoked_ticket_opens_nothing() {
    replay(What::Get, true, 60.0);
    replay(What::Get, true, 1000.0);
    replay(What::Put, true, 1000.0);
}

/// A handler that makes nothing of its session.
struct Nobody;

impl Handler for Nobody {}

#[test]
fn accept__is_called_when_the_first_packet_under_the_sessions_keys_has_come() {
    let server = client();
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    let accepted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&accepted);
    let accept = Box::new(move |_: &fairwave_host::Visitor<'_>| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok((Terms::default(), Box::new(Nobody) as Box<dyn Handler>))
    });
    server.listen(Arc::clone(&keyring), accept);
    let recorder = Recorder::new(server.local_addr());
    recorder.cut(true);
    let validity = Validity { lasts_s: None, is_once: false };
    let ticket = keyring.issue(validity, vec![recorder.address()]).expect("nothing is written");
    let client = client();
    let request = ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() };
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| client.connect(&ticket, request, Box::new(Nobody)).map(drop));
        wait_for("the client gets a reply", || recorder.session_packets() >= 2);
        assert_eq!(accepted.load(Ordering::SeqCst), 0, "nothing but hellos has come");
        assert!(!opening.is_finished(), "a session that the other end does not have");
        recorder.cut(false);
        assert_eq!(opening.join().expect("it does not panic"), Ok(()));
        assert_eq!(accepted.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn get__of_a_server_without_descriptors_waits_until_there_is_room() {
    let place = tempfile::tempdir().expect("there is room");
    // Eight for one visitor, and not for two.
    let server = Server::start(place.path(), false, 12);
    let begin = |name: &str, limit, retry_s| {
        let client = client();
        let retry = fairwave_units::Duration::from_secs(retry_s);
        let options = GetOptions { destination: place.path().join(name), limit, retry, ..GetOptions::default() };
        (get(&client, &server.good, options), client)
    };
    // 40 kB at 2 kB/s: it goes on until it is stopped.
    let (slow, _client) = begin("slow", Some(Rate::mbps(0.016)), 0);
    let slow = slow.expect("there is room for one");
    let (refused, _client) = begin("refused", None, 0);
    // The paths are opened after the session, so the refusal may come to a transfer that has started.
    let full = "the host has reached its maximum number of sessions";
    match refused {
        Err(error) => assert!(error.to_string().contains(full), "{error}"),
        Ok(transfer) => {
            let outcome = transfer.wait(Some(PATIENCE)).expect("it ends");
            assert!(format!("{:?}", outcome.ended).contains(full) && outcome.files == 0, "{outcome:?}");
        }
    }
    let (patient, _client) = begin("patient", None, 600);
    let patient = patient.expect("it waits");
    assert!(patient.pause().is_none_or(|pause| pause.reason.contains(full)), "{:?}", patient.pause());
    slow.stop();
    assert_eq!(slow.wait(Some(PATIENCE)).expect("it ends").ended, Ended::Stopped);
    let outcome = patient.wait(Some(PATIENCE)).expect("it ends");
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(outcome.files, 8);
}

#[test]
#[ignore = "the server of the other tests: they start it as a process of its own"]
fn server__is_played() {
    server::play();
}

impl Usage {
    fn max(self, other: Self) -> Self {
        Self { threads: self.threads.max(other.threads), descriptors: self.descriptors.max(other.descriptors) }
    }
}
