//! A server whose sessions are of tickets: each ticket has the share of one, however many sessions it opens.

use fairwave_proto::{ExchangeConfig, Terms};
use fairwave_units::{Duration, Rate};

use crate::network::{Flow, Network, Random, Setup, ms, tally};
use crate::one_machine::Shared;

const SERVER: usize = 0;
const MBPS: f64 = 20.0;
/// Sessions of the ticket that has many.
const MANY: usize = 40;

/// A server of 20 Mb/s and two clients with links that are wide: one holds a ticket with 40 sessions, the other one with
/// one session and some idle ones. Each session sends to the server, or from it.
struct World {
    network: Network,
    shared: Option<Shared>,
}

impl World {
    fn new(gets: bool, exchange: Option<ExchangeConfig>, has_daemon: bool) -> Self {
        let setup = |mbps| Setup { capacity_bps: Some(mbps * 1e6), exchange, ..Setup::default() };
        let mut network = Network::of(7, [setup(MBPS), setup(1e3), setup(1e3)], Duration::from_millis(10));
        let (many, one) = (1, 2);
        let idle = Flow { desired: Some(Rate::mbps(0.05)), ..flow(gets, one) };
        network.flows = vec![flow(gets, many); MANY];
        network.flows.extend([flow(gets, one), idle.clone(), idle.clone(), idle]);
        let bps = MBPS * 1e6;
        let shared = has_daemon.then(|| Shared::new(&mut network, &[SERVER], bps, Random::new(3)));
        Self { network, shared }
    }

    fn run_until(&mut self, end_ms: u64) {
        for now in self.network.now.as_nanos() / 1_000_000 + 1..=end_ms {
            self.network.run_until(ms(now));
            if let Some(shared) = &mut self.shared {
                shared.step(&mut self.network);
            }
        }
    }

    /// The server knows with which ticket each session was opened.
    fn set_groups(&mut self) {
        for at in 0..self.network.flows.len() {
            let session = self.network.session(SERVER, at).expect("open by now");
            let now = self.network.now;
            self.network.hosts[SERVER].set_group(now, session, if at < MANY { 1 } else { 2 });
        }
    }

    /// Mb/s of the ticket with many sessions and of the other one, in five seconds.
    fn rates(mut self) -> [f64; 2] {
        self.run_until(200);
        self.set_groups();
        self.run_until(5000);
        let before: Vec<u64> = self.network.flows.iter().map(Flow::got_bytes).collect();
        self.run_until(10_000);
        assert_eq!(self.network.counts.closed, 0, "{}", self.network.describe());
        let flows = self.network.flows.iter().zip(before);
        let mbps: Vec<f64> = flows.map(|(flow, before)| (flow.got_bytes() - before) as f64 * 8e-6 / 5.0).collect();
        [mbps[..MANY].iter().sum(), mbps[MANY..].iter().sum()]
    }
}

/// Without an end, from the server or to it.
fn flow(gets: bool, client: usize) -> Flow {
    let (source, sink) = if gets { (SERVER, client) } else { (client, SERVER) };
    Flow { is_fetched: gets, options: Terms::default(), ..Flow::endless(source, sink) }
}

/// Payload: headers are a twentieth of what one session sends, and control packets a fifth of what each of many does.
fn assert_halves([many, one]: [f64; 2], what: &str) {
    let half = MBPS / 2.0;
    assert!((0.9 * half..half).contains(&one), "{what}: {one} Mb/s of one session, {many} of many");
    assert!((0.65 * half..half).contains(&many), "{what}: {many} Mb/s of many sessions, {one} of one");
}

#[test]
fn tickets__share_by_claims_and_grants_before_their_sessions_do() {
    assert_halves(World::new(true, Some(tally()), false).rates(), "gets");
    assert_halves(World::new(false, Some(tally()), false).rates(), "puts");
}

#[test]
fn tickets__share_a_users_part_at_a_daemon_by_claims_before_their_sessions_do() {
    assert_halves(World::new(true, Some(tally()), true).rates(), "gets");
    assert_halves(World::new(false, Some(tally()), true).rates(), "puts");
}

#[test]
fn tickets__share_a_users_part_at_a_daemon_by_gtp_before_their_sessions_do() {
    assert_halves(World::new(true, None, true).rates(), "gets");
    assert_halves(World::new(false, None, true).rates(), "puts");
}
