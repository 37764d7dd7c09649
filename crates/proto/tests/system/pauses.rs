//! Hosts that lose the processor for a while: what that may cost, and for how long.
//!
//! Sources of one sink, whose capacity they share, have come to their shares. Then hosts are kept from running for up to
//! 100 ms at a time.

use std::ops::Range;

use fairwave_proto::PathKind;
use fairwave_units::{Duration, Time};

use crate::flow_rates::{Watch, own};
use crate::network::{Flow, Line, Network, Random, Setup, ms, tally};
use crate::{WORLDS, each, report};

/// Sessions have their shares by then.
const STARTS_MS: u64 = 2000;
const ENDS_MS: u64 = 4500;
const MAX_MS: u64 = 100;
/// The sink's host.
const SINK: usize = 0;
/// Bytes of a packet on the wire for each 1000 of its stream.
const WIRE: f64 = 1.105;

/// How hosts are kept from running.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    /// One host, once.
    Once,
    /// One host and the sink, so that the pauses overlap.
    BothEnds,
    /// No pause: the sink's grants and reports to one source are lost for as long.
    Deaf,
    /// Each host for up to 10 ms a time, a third of the time in the mean.
    Short,
    /// Each host for 20 ms of 60, as on a machine with two others that compute.
    Periodic,
    /// Each host for 1 to 20 ms a time, and in between it runs for a tenth of a millisecond, as on a machine with many
    /// others.
    Starved,
}

struct PausedWorld {
    network: Network,
    watch: Watch,
    pattern: Pattern,
    bps: f64,
}

impl PausedWorld {
    fn new(seed: u64, is_tally: bool) -> Self {
        let mut random = Random::new(seed);
        let count = random.pick(&[1, 2, 5, 12, 40]);
        let bps = random.scaled(15e6..60e6);
        let path = random.pick(&[PathKind::Dedicated, PathKind::Shared]);
        let setup = Setup { capacity_bps: Some(bps), path, exchange: is_tally.then(tally), ..Setup::default() };
        let mut network = Network::of(seed, vec![setup; 1 + count], Duration::ZERO);
        network.lines.push(Line::lasting(1.3 * bps, Duration::from_millis(250)));
        for source in 1..=count {
            let delay = random.ms(0.1..50.0);
            for (from, to) in [(source, SINK), (SINK, source)] {
                network.links[from][to].delays[0].1 = delay;
            }
            network.links[source][SINK].line = Some(0);
            network.flows.push(Flow::endless(source, SINK).from(random.at(0.0..0.2)));
        }
        let pattern = random.pick(&[
            Pattern::Once,
            Pattern::BothEnds,
            Pattern::Deaf,
            Pattern::Short,
            Pattern::Periodic,
            Pattern::Starved,
        ]);
        for (host, pauses) in pauses(pattern, count, &mut random) {
            match pattern {
                Pattern::Deaf => network.links[SINK][host].blackholes = pauses,
                _ => network.hosts[host].pauses = pauses,
            }
        }
        let watch = Watch::new(&network, own(&network));
        Self { network, watch, pattern, bps }
    }

    fn rtt_ms(&self, flow: usize) -> u64 {
        let delay = self.network.links[self.network.flows[flow].source][SINK].delays[0].1;
        2 * delay.as_nanos().div_ceil(1_000_000)
    }

    /// Of the payload that its share carries, what came of a flow, by milliseconds.
    fn came(&self, flow: usize, from_ms: u64, to_ms: u64) -> f64 {
        let share_mbps = self.bps / 1e6 / self.network.flows.len() as f64 / WIRE;
        self.network.flows[flow].mbps(from_ms as usize, to_ms as usize) / share_mbps
    }

    /// Time of one packet at a flow's share of the rate, in milliseconds.
    fn packet_share(&self) -> f64 {
        1000.0 * WIRE * 8e3 * self.network.flows.len() as f64 / self.bps
    }

    /// All goes well.
    fn calm(mut self) -> Self {
        self.network.hosts.iter_mut().for_each(|host| host.pauses.clear());
        self.network.links.iter_mut().flatten().for_each(|link| link.blackholes.clear());
        self
    }

    /// The last pause that matters to a flow: of a host, or of what its source hears.
    fn last_pause(&self, flow: usize) -> Option<Range<u64>> {
        let (network, source) = (&self.network, self.network.flows[flow].source);
        let hosts = [SINK, source].into_iter().filter_map(|host| network.hosts[host].pauses.last());
        let last = hosts.chain(network.links[SINK][source].blackholes.last()).max_by_key(|pause| pause.end)?;
        let ms = |at: Time| at.as_nanos().div_ceil(1_000_000);
        Some(ms(last.start)..ms(last.end))
    }
}

fn pauses(pattern: Pattern, sources: usize, random: &mut Random) -> Vec<(usize, Vec<Range<Time>>)> {
    let span = |random: &mut Random| random.within(1.0..MAX_MS as f64) as u64;
    let source = 1 + random.below(sources);
    match pattern {
        Pattern::Once => {
            let (host, start) = (random.pick(&[SINK, source]), STARTS_MS + random.below(50) as u64);
            vec![(host, vec![ms(start)..ms(start + span(random))])]
        }
        Pattern::Deaf => {
            let start = STARTS_MS + random.below(50) as u64;
            vec![(source, vec![ms(start)..ms(start + span(random))])]
        }
        Pattern::BothEnds => [SINK, source]
            .map(|host| {
                let start = STARTS_MS + random.below(50) as u64;
                (host, vec![ms(start)..ms(start + span(random))])
            })
            .to_vec(),
        Pattern::Short => (0..=sources)
            .map(|host| {
                let (mut at, mut pauses) = (STARTS_MS, Vec::new());
                while at < ENDS_MS {
                    let start = at + 1 + random.below(20) as u64;
                    at = start + 1 + random.below(10) as u64;
                    pauses.push(ms(start)..ms(at));
                }
                (host, pauses)
            })
            .collect(),
        Pattern::Starved => (0..=sources)
            .map(|host| {
                let (mut at, mut pauses) = (ms(STARTS_MS), Vec::new());
                while at < ms(ENDS_MS) {
                    let start = at + Duration::from_micros(100);
                    at = start + random.ms(1.0..20.0);
                    pauses.push(start..at);
                }
                (host, pauses)
            })
            .collect(),
        Pattern::Periodic => (0..=sources)
            .map(|host| {
                let phase = STARTS_MS + random.below(60) as u64;
                let starts = (phase..ENDS_MS).step_by(60);
                (host, starts.map(|start| ms(start)..ms(start + 20)).collect())
            })
            .collect(),
    }
}

/// Length in milliseconds of the windows that are checked after single pauses, and under repeated ones.
const AFTER_MS: u64 = 200;
const DURING_MS: u64 = 500;

/// A run of the same world without pauses gives the rates to compare with. After a single pause each session recovers
/// nine tenths of that from max(2 round trips, 100 ms) on, half if its source was deaf; under repeated ones it never
/// has less than seven tenths in half a second. Two packets in a window are too few for a rate.
fn judge(seed: u64, is_tally: bool) {
    let mut calm = PausedWorld::new(seed, is_tally).calm();
    let mut world = PausedWorld::new(seed, is_tally);
    for world in [&mut calm, &mut world] {
        world.watch.run_until(&mut world.network, ENDS_MS, |_| {});
    }
    for flow in 0..world.network.flows.len() {
        let (from, span, least) = match (world.pattern, world.last_pause(flow)) {
            (Pattern::Once | Pattern::BothEnds | Pattern::Deaf, None) => continue,
            (Pattern::Once | Pattern::BothEnds | Pattern::Deaf, Some(last)) => {
                // If the source is deaf, a window is full by then, and its node has seen that it sent less.
                let least = if world.pattern == Pattern::Deaf { 0.5 } else { 0.9 };
                (last.end + 100.max(2 * world.rtt_ms(flow)), AFTER_MS, least)
            }
            (Pattern::Short | Pattern::Periodic | Pattern::Starved, _) => (STARTS_MS + 200, DURING_MS, 0.7),
        };
        for from in (from..ENDS_MS - span).step_by(50) {
            let [was, came] = [&calm, &world].map(|world| world.came(flow, from, from + span));
            let grain = 2.0 * world.packet_share() / span as f64;
            let text = || format!("{:?}, flow {flow} from {from} ms: {came}, not {was}", world.pattern);
            assert!(came >= least * was.min(1.0) - grain, "{}, {}", text(), world.network.describe());
        }
    }
    // Data that a pause kept back are sent later, and no grant is larger for it. Only a deaf source's window fills: GTP
    // grants what it leaves to others, and once it sends again their cuts are half a round trip away.
    let left = if world.pattern == Pattern::Deaf && !is_tally { gtp_gives(world.network.flows.len()) } else { 0.0 };
    let [was, most] = [&calm, &world].map(|world| world.watch.most[SINK][1]);
    assert!(
        most <= 1.0201_f64.max(1.02 * was) + left,
        "{:?}: {most}, not {was}: {}",
        world.pattern,
        world.network.describe()
    );
    report(&world.network);
}

/// Largest share of a capacity that GTP grants to others of what one of these sessions leaves: all of its share, or
/// alpha (H_K - 1), their largest steps together (docs/explanation/max-min-and-gtp.md).
fn gtp_gives(sessions: usize) -> f64 {
    const ALPHA: f64 = 0.1;
    let steps: f64 = (2..=sessions).map(|k| ALPHA / k as f64).sum();
    steps.min(1.0 / sessions as f64)
}

#[test]
fn pauses__cost_what_they_last_where_nodes_measure() {
    each("pauses__cost_what_they_last_where_nodes_measure", WORLDS, |seed| judge(seed, false));
}

#[test]
fn pauses__cost_what_they_last_where_nodes_tell_claims() {
    each("pauses__cost_what_they_last_where_nodes_tell_claims", WORLDS, |seed| judge(seed, true));
}
