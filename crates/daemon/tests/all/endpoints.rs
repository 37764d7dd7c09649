//! A daemon with endpoints that send and receive: they join, outlive the daemon, and come back. How they share is
//! tested in virtual time: in `src/ticker/tests`, and by `worlds__processes_...` in proto's `tests/system/shared.rs`.

#![allow(non_snake_case, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairwave_daemon::{Daemon, Settings};
use fairwave_host::machine::ShownState;
use fairwave_host::{
    BenchDirection, BenchOptions, Endpoint, EndpointConfig, Identity, Keyring, Lasts, NodeChoice, NodeOrigin, ShareId,
    Terms, Ticket, Validity, bench, bench_accept,
};
use fairwave_node::CardCapacity;
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::Rate;

/// Mb/s each way: little enough for a build without optimisation.
const CAPACITY: f64 = 24.0;

/// A machine, and endpoints with separate connections to its daemon.
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
        endpoint.listen(Arc::clone(&keyring), bench_accept(Terms::default()));
        let validity = Validity { lasts_s: None, is_once: false };
        let ticket = keyring.issue(validity, vec![endpoint.local_addr()]).unwrap();
        self.servers.push((endpoint, ticket));
    }

    /// A client that fetches for as long as it is there.
    fn fetch(&mut self, rule: &str, server: usize) {
        let endpoint = Arc::new(Endpoint::bind(&config(rule, &self.socket())).unwrap());
        let (own, ticket) = (Arc::clone(&endpoint), self.servers[server].1.clone());
        let options = BenchOptions {
            time: Duration::from_secs(3600),
            sessions: 1,
            direction: BenchDirection::Receive,
            limit: None,
            session: Terms::default(),
            every: Duration::from_secs(60),
        };
        // It ends when its session is closed.
        std::thread::spawn(move || bench(&own, &ticket, &options, &mut |_| {}));
        self.clients.push(endpoint);
    }

    /// Waits until as many sessions as there are clients carry a load and are granted something, and none else.
    fn until_shared(&self) {
        let daemon = self.daemon.as_ref().unwrap();
        wait_for("each client's session is granted a rate", || {
            let seen = daemon.snapshot();
            // A session has the other direction as well, without traffic.
            let sinks: Vec<_> = seen.sessions.iter().filter(|row| row.receives && row.measured_bps > 1e5).collect();
            sinks.len() == self.clients.len()
                && sinks.iter().all(|row| row.state == ShownState::Shares && row.expected_bps > 0.0)
        });
    }

    fn are(&self, origin: NodeOrigin) -> bool {
        self.clients.iter().all(|client| client.node().origin == origin)
    }

    /// Bytes that each client has received.
    fn received(&self) -> Vec<u64> {
        let of = |client: &Arc<Endpoint>| client.sessions().iter().map(|session| session.stats().received_bytes).sum();
        self.clients.iter().map(of).collect()
    }

    /// Waits until something more has come to each client.
    fn until_more_came(&self) {
        let before = self.received();
        wait_for("something comes to each client", || {
            self.received().iter().zip(&before).all(|(now, before)| now > before)
        });
    }
}

fn config(rule: &str, socket: &Path) -> EndpointConfig {
    let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
    EndpointConfig {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        node: NodeChoice::At(socket.to_owned()),
        rule: rule.to_owned(),
        lasts: Lasts { silent: limit, opening: limit, ..Lasts::default() },
        ..EndpointConfig::default()
    }
}

#[test]
fn endpoints__join_outlive_the_daemon_and_rejoin() {
    let mut world = World::new();
    world.serve("tally");
    world.serve("gtp");
    world.fetch("tally", 0);
    world.fetch("tally", 0);
    world.fetch("gtp", 1);
    world.until_shared();
    assert!(world.are(NodeOrigin::Daemon));
    // An endpoint that closes leaves the table.
    world.clients.remove(0).close();
    world.until_shared();
    // Without the daemon both go on with no more than what they had.
    world.daemon = None;
    wait_for("the clients see that the daemon is gone", || world.are(NodeOrigin::Orphan));
    for client in &world.clients {
        let receive = client.node().receive.expect("it was granted something").as_mbps();
        assert!(receive > 0.0 && receive <= 1.07 * CAPACITY, "{receive} Mb/s");
    }
    world.until_more_came();
    // The next daemon admits them.
    world.start();
    wait_for("the clients are members again", || world.are(NodeOrigin::Daemon));
    world.until_shared();
    world.until_more_came();
}
