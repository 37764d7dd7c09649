//! A daemon with endpoints that send and receive: by claims and grants, and beside them by what is measured.

#![allow(non_snake_case, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant};

use fairwave_daemon::{Daemon, MachineSnapshot, Settings, ask};
use fairwave_host::{
    BenchDirection, BenchOptions, Endpoint, EndpointConfig, Identity, Keyring, NodeChoice, SessionOptions, ShareId,
    Ticket, Validity, bench, bench_accept,
};
use fairwave_proto::CardCapacity;
use fairwave_units::Rate;

/// Mb/s each way: little enough for a build without optimisation.
const CAPACITY: f64 = 24.0;
/// Something that takes a second or two takes no longer than this, however busy the machine is.
const PATIENCE: StdDuration = StdDuration::from_secs(60);

/// A machine, and endpoints at its table, each with a seat of its own.
struct World {
    place: tempfile::TempDir,
    daemon: Option<Daemon>,
    servers: Vec<(Endpoint, Ticket)>,
    clients: Vec<Arc<Endpoint>>,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut world = Self { place, daemon: None, servers: Vec::new(), clients: Vec::new() };
        world.start();
        world
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("d.sock")
    }

    fn start(&mut self) {
        let capacity = Some(Rate::mbps(CAPACITY));
        let everything = Some(CardCapacity { send: capacity, receive: capacity });
        self.daemon = Some(Daemon::start(Settings { everything, ..Settings::at(self.socket()) }).unwrap());
    }

    fn serve(&mut self, rule: &str) {
        let endpoint = Endpoint::bind(&config(rule, &self.socket())).unwrap();
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
        endpoint.listen(Arc::clone(&keyring), bench_accept(SessionOptions::default()));
        let validity = Validity { lasts_s: None, is_once: false };
        let ticket = keyring.issue(validity, vec![endpoint.local_addr()]).unwrap();
        self.servers.push((endpoint, ticket));
    }

    /// A client that fetches for as long as it is there.
    fn fetch(&mut self, rule: &str, server: usize) {
        let endpoint = Arc::new(Endpoint::bind(&config(rule, &self.socket())).unwrap());
        let (own, ticket) = (Arc::clone(&endpoint), self.servers[server].1.clone());
        let options = BenchOptions {
            time: StdDuration::from_secs(3600),
            sessions: 1,
            direction: BenchDirection::Receive,
            limit: None,
            session: SessionOptions::default(),
            every: StdDuration::from_secs(60),
        };
        // It ends when its session is closed.
        std::thread::spawn(move || bench(&own, &ticket, &options, &mut |_| {}));
        self.clients.push(endpoint);
    }

    /// Until so many sessions are sinks that carry a load, each with its part within 3 %; all that was granted meanwhile
    /// is within 1.02 of the capacity, beside GTP 1.07.
    fn until_shared(&self, sessions: usize, most: f64) -> StdDuration {
        let (begun, fair) = (Instant::now(), CAPACITY * 1e6 / sessions as f64);
        loop {
            let seen = ask(&self.socket());
            if let Ok(seen) = &seen {
                let grants = grants(seen);
                let sum: f64 = grants.iter().sum();
                assert!(sum <= most * CAPACITY * 1e6, "{grants:?}");
                let is_near = |bps: &f64| (bps - fair).abs() <= 0.03 * fair;
                if grants.len() == sessions && grants.iter().all(is_near) {
                    return begun.elapsed();
                }
            }
            assert!(begun.elapsed() < PATIENCE, "not {sessions} of {fair}: {seen:#?}");
            std::thread::sleep(StdDuration::from_millis(20));
        }
    }
}

fn config(rule: &str, socket: &Path) -> EndpointConfig {
    EndpointConfig {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        node: NodeChoice::At(socket.to_owned()),
        rule: rule.to_owned(),
        ..EndpointConfig::default()
    }
}

/// What the sinks are granted that carry a load, bit/s: a session has the other direction, too, and nothing in it.
fn grants(seen: &MachineSnapshot) -> Vec<f64> {
    let sinks = seen.sessions.iter().filter(|row| row.receives && row.measured_bps > 1e5);
    sinks.map(|row| row.expected_bps).collect()
}

#[test]
fn endpoints__that_share_by_claims_have_their_parts_beside_each_other_and_beside_gtp() {
    let mut world = World::new();
    world.serve("tally");
    world.serve("tally");
    for server in [0, 0, 1] {
        world.fetch("tally", server);
    }
    world.until_shared(3, 1.02);
    // One that closes its session is known to have: its part is the others' at once.
    world.clients.pop().unwrap().close();
    let took = world.until_shared(2, 1.02);
    assert!(took < StdDuration::from_secs(7), "{took:?}: that of a process that is killed comes after 8 s");
    // Without a daemon both go on with what they had, and with the next one again.
    world.daemon = None;
    std::thread::sleep(StdDuration::from_secs(2));
    let left: f64 = world
        .clients
        .iter()
        .flat_map(|client| client.sessions())
        .filter_map(|session| session.stats().sink.map(|rates| rates.expected.as_bps()))
        .sum();
    assert!(left > 0.8 * CAPACITY * 1e6 && left <= 1.02 * CAPACITY * 1e6, "{left}");
    world.start();
    world.until_shared(2, 1.02);
    world.serve("gtp");
    world.fetch("gtp", 2);
    world.until_shared(3, 1.07);
}
