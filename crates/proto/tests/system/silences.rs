//! Control packets of one session that are all lost for a number of intervals, while its data arrive.

use fairwave_units::Duration;

use crate::flow_rates::{Watch, own};
use crate::network::{Flow, Network, Setup, ms, tally};

const SINK: usize = 0;
const CAPACITY_BPS: f64 = 20e6;
const INTERVAL_MS: u64 = 20;
/// Both sessions have their shares by then, and the silence starts.
const STARTS_MS: u64 = 2000;
/// max(4 intervals, 2 round trips) + 100 ms.
const PATIENCE_MS: u64 = 180;
/// By then a source has halved its rate six times, an interval apart, and its last data have arrived.
const STOPPED_MS: u64 = PATIENCE_MS + 6 * INTERVAL_MS + 100;
/// A source that has stopped asks once a second, and GTP closes most of a gap in ten round trips and intervals.
const BACK_MS: u64 = 1000 + 300;
/// Of Tally.
const LEASE_MS: u64 = 4000;

/// Two sources of one sink, whose packets to and from the first are lost.
struct Silence {
    network: Network,
    ends_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lost {
    /// Grants, reports and requests.
    OfSink,
    /// Claims, confirmations and questions.
    OfSource,
}

impl Silence {
    fn run(is_tally: bool, lost: Lost, intervals: u64) -> Self {
        let exchange = is_tally.then(tally);
        let setup = Setup { capacity_bps: Some(CAPACITY_BPS), fair_start: true, exchange, ..Setup::default() };
        let mut network = Network::of(1, vec![setup; 3], Duration::from_millis(10));
        network.flows.extend([1, 2].map(|source| Flow::endless(source, SINK)));
        let (from, to) = if lost == Lost::OfSink { (SINK, 1) } else { (1, SINK) };
        let ends_ms = STARTS_MS + intervals * INTERVAL_MS;
        network.links[from][to].mutes.push(ms(STARTS_MS)..ms(ends_ms));
        let mut watch = Watch::new(&network, own(&network));
        watch.run_until(&mut network, ends_ms + BACK_MS + 500, |_| {});
        if is_tally {
            assert!(watch.most[SINK][1] <= 1.0201, "{:?}: {}", watch.most, network.describe());
        }
        Self { network, ends_ms }
    }

    /// Shares of the sink's payload that came of both between two instants.
    fn came(&self, from_ms: u64, to_ms: u64) -> [f64; 2] {
        // 1000 B of 1077.
        let all = CAPACITY_BPS / 1e6 / 1.077;
        [0, 1].map(|flow| self.network.flows[flow].mbps(from_ms as usize, to_ms as usize) / all)
    }

    fn assert_came(&self, from_ms: u64, to_ms: u64, expected: [f64; 2]) {
        let came = self.came(from_ms, to_ms);
        let is_near = came.iter().zip(expected).all(|(came, expected)| (came - expected).abs() < 0.05);
        assert!(is_near, "from {from_ms} to {to_ms} ms: {came:?}, not {expected:?}: {}", self.network.describe());
    }

    /// Neither session was closed, and both have their shares again.
    fn assert_back(&self) {
        self.assert_came(self.ends_ms + BACK_MS, self.ends_ms + BACK_MS + 500, [0.5, 0.5]);
        assert!(self.network.flows.iter().all(|flow| flow.attempts == 1), "{}", self.network.describe());
    }
}

#[test]
fn silence__within_the_patience_changes_nothing() {
    for (is_tally, lost) in [false, true].into_iter().flat_map(|rule| [(rule, Lost::OfSink), (rule, Lost::OfSource)]) {
        let world = Silence::run(is_tally, lost, PATIENCE_MS / INTERVAL_MS - 1);
        for from in (STARTS_MS..world.ends_ms + 500).step_by(100) {
            world.assert_came(from, from + 100, [0.5, 0.5]);
        }
        world.assert_back();
    }
}

#[test]
fn silence__of_the_sink_stops_a_source_and_gtp_gives_its_share_away() {
    for intervals in [40, 150, 500] {
        let world = Silence::run(false, Lost::OfSink, intervals);
        assert!(world.came(STARTS_MS + STOPPED_MS, world.ends_ms)[0] < 0.05, "{}", world.network.describe());
        if intervals > 50 {
            world.assert_came(STARTS_MS + BACK_MS, world.ends_ms, [0.0, 1.0]);
        }
        world.assert_back();
    }
}

#[test]
fn silence__of_the_sink_stops_a_source_and_tally_keeps_its_share_reserved() {
    for intervals in [40, 150, 500] {
        let world = Silence::run(true, Lost::OfSink, intervals);
        world.assert_came(STARTS_MS + STOPPED_MS, world.ends_ms, [0.0, 0.5]);
        world.assert_back();
    }
}

#[test]
fn silence__of_a_source_changes_nothing_under_gtp() {
    let world = Silence::run(false, Lost::OfSource, 500);
    for from in (STARTS_MS..world.ends_ms).step_by(500) {
        world.assert_came(from, from + 500, [0.5, 0.5]);
    }
    world.assert_back();
}

/// The sink, which hears no claim for half a lease, repeats no grant; a lease after the last one the source stops, and
/// two leases after the last claim its share is another's.
#[test]
fn silence__of_a_source_ends_its_lease_under_tally() {
    let world = Silence::run(true, Lost::OfSource, 600);
    world.assert_came(STARTS_MS, STARTS_MS + LEASE_MS, [0.5, 0.5]);
    world.assert_came(STARTS_MS + 3 * LEASE_MS / 2, STARTS_MS + 7 * LEASE_MS / 4, [0.0, 0.5]);
    world.assert_came(STARTS_MS + 2 * LEASE_MS + 500, world.ends_ms, [0.0, 1.0]);
    world.assert_back();
}
