//! Transfers through cuts of the network that are longer than sessions last.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairwave_files::{Ended, GetOptions, PutOptions, Share, ShareOptions, Transfer, get, put};
use fairwave_host::{Endpoint, EndpointConfig, Lasts, Ticket};
use fairwave_testing::{LIMIT, wait_for};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::net::hosts::{Hosts, dedicated};
use fairwave_wan::{Way, address, device};

const CAPACITY_MBPS: f64 = 40.0;
const PATIENCE: fairwave_units::Duration = fairwave_units::Duration::from_secs(LIMIT.as_secs());
const LARGE: u64 = 14_000_000;
const BLOCK: u64 = 4 << 20;
/// Bytes of IP packets between two cuts.
const CUT_EVERY: u64 = 5_000_000;
/// Bytes in flight at the end of a session, and the start of the next.
const IN_FLIGHT: u64 = 2_300_000;

/// A running transfer between two hosts, and its files.
struct Scene {
    hosts: Hosts,
    home: tempfile::TempDir,
    transfer: Transfer,
    share: Arc<Share>,
    /// From the giver to the taker.
    way: [usize; 2],
    /// Bytes that the relay delivers from the giver: the rest does not come if this thread is late.
    cut_at: Cell<u64>,
    _ends: [Endpoint; 2],
}

impl Scene {
    /// Sessions of it end after a silence of `silent`.
    fn new(is_put: bool, seed: u64, silent: Duration) -> Self {
        let home = tempfile::tempdir().expect("there is room");
        let mut content = vec![0; LARGE as usize];
        Pcg64Mcg::new(u128::from(seed)).fill_bytes(&mut content);
        fs::write(home.path().join("large"), content).expect("there is room");
        fs::create_dir(home.path().join("to")).expect("there is room");
        let hosts = Hosts::new(2, seed, Duration::from_millis(10));
        let way = if is_put { [0, 1] } else { [1, 0] };
        hosts.relay.deliver_at_most(way[0], way[1], CUT_EVERY);
        let lasts =
            Lasts { silent: fairwave_units::Duration::from_nanos(silent.as_nanos() as u64), ..Lasts::default() };
        let config = EndpointConfig { lasts, ..dedicated(CAPACITY_MBPS) };
        let (from, to) = (home.path().join("large"), home.path().join("to"));
        let (given, options) = if is_put {
            (Vec::new(), ShareOptions { writable_into: Some(to.clone()), ..ShareOptions::default() })
        } else {
            (vec![from.clone()], ShareOptions::default())
        };
        let share = Arc::new(Share::new(given, options).expect("it is there"));
        let (server, ticket) = hosts.serve(1, &config, false, share.accept());
        let client = hosts.endpoint(0, &config);
        let begin = |ticket: &Ticket| {
            if is_put {
                return put(&client, ticket, std::slice::from_ref(&from), &PutOptions::default());
            }
            get(&client, ticket, GetOptions { destination: to.clone(), ..GetOptions::default() })
        };
        let transfer = begin(&ticket).expect("the server is there");
        Self { hosts, home, transfer, share, way, cut_at: Cell::new(CUT_EVERY), _ends: [server, client] }
    }

    /// Waits for the next cut: until the relay has delivered what it may.
    fn reach(&self) {
        let (relay, [from, to]) = (&self.hosts.relay, self.way);
        wait_for("the bytes before the cut", || relay.delivered(from, to) >= self.cut_at.get());
    }

    /// Nothing arrives anywhere until the session is over. The next cut is [`CUT_EVERY`] bytes later.
    fn cut(&self) {
        let (relay, [from, to]) = (&self.hosts.relay, self.way);
        let way = Way::delay(Duration::from_millis(10));
        relay.set_both(0, Way { is_blackhole: true, ..way });
        wait_for("the end of the session", || self.transfer.pause().is_some());
        self.cut_at.set(relay.delivered(from, to) + CUT_EVERY);
        relay.deliver_at_most(from, to, self.cut_at.get());
        relay.set_both(0, way);
    }

    /// Everything has arrived, and each of this many additional sessions moved few bytes twice.
    fn assert_done(&self, cuts: u64) {
        let (transfer, [from, to]) = (&self.transfer, self.way);
        self.hosts.relay.deliver_at_most(from, to, u64::MAX);
        let outcome = transfer.wait(Some(PATIENCE)).unwrap_or_else(|| {
            let stats = |transfer: &Transfer| transfer.session().map(|session| session.stats());
            for visit in self.share.transfers() {
                println!("at the server: {:?}, {:?}", visit.transfer.progress(), stats(&visit.transfer));
            }
            panic!(
                "stuck, {} sessions followed: {:?}, {:?}",
                transfer.reconnects(),
                transfer.progress(),
                stats(transfer)
            )
        });
        assert_eq!(outcome.ended, Ended::Done);
        assert!(outcome.is_complete(), "{:?}", outcome.failed);
        let read = |path: &Path| fs::read(path).expect("it is there");
        assert!(read(&self.home.path().join("large")) == read(&self.home.path().join("to/large")));
        assert!(transfer.reconnects() >= cuts, "{} sessions followed", transfer.reconnects());
        let (came, most) = (self.hosts.relay.delivered(from, to), LARGE + LARGE / 10 + cuts * (BLOCK + IN_FLIGHT));
        println!("{came} bytes came of {LARGE}, in {} sessions", transfer.reconnects() + 1);
        assert!(came < most, "{came} bytes came, {most} are the most");
    }
}

#[test]
fn get__survives_cuts_longer_than_a_session() {
    let Some(_turn) = crate::net::world() else { return };
    let scene = Scene::new(false, 51, Duration::from_secs(2));
    for _ in 0..2 {
        scene.reach();
        scene.cut();
    }
    scene.assert_done(2);
}

#[test]
fn put__survives_cuts_longer_than_a_session() {
    let Some(_turn) = crate::net::world() else { return };
    let scene = Scene::new(true, 52, Duration::from_secs(2));
    for _ in 0..2 {
        scene.reach();
        scene.cut();
    }
    scene.assert_done(2);
}

/// As a laptop that is closed here and opened there: the address goes, and another comes when the session is long over.
#[test]
fn get__goes_on_from_another_address_after_its_own_was_lost() {
    let Some(_turn) = crate::net::world() else { return };
    let scene = Scene::new(false, 53, Duration::from_secs(2));
    scene.reach();
    let space = &scene.hosts.spaces[0];
    // Without an address the system also removes the route.
    space.add_address(&device(0), address(0, 2, false), 32).expect("root may");
    space.remove_address(&device(0), address(0, 1, false), 32).expect("it is there");
    scene.cut();
    scene.assert_done(1);
}

/// With the silence that people have: FAIRWAVE_LONG=1.
#[test]
fn get__survives_a_cut_longer_than_a_session_of_the_usual_patience() {
    if std::env::var_os("FAIRWAVE_LONG").is_none() {
        println!("skipped: FAIRWAVE_LONG=1 runs it");
        return;
    }
    let Some(_turn) = crate::net::world() else { return };
    for is_put in [true, false] {
        let scene = Scene::new(is_put, 54, Duration::from_secs(30));
        scene.reach();
        scene.cut();
        scene.assert_done(1);
    }
}
