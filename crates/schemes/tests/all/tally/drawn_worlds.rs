//! Random networks of the families of docs/explanation/tally.md.

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::{Duration, Time};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::tally::tally_network::{Change, Network, Opening, Outage, Plan, Way, at_ms, ms};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// All open at the start.
    Static,
    /// Sessions join and leave, demands change.
    Dynamic,
    /// As `Dynamic`, and all declare their demands.
    Declared,
    /// Equal capacities, round trips, demands; one clock.
    Ties,
    Weighted,
    Capacities,
    /// Routers on the path.
    Routers,
    /// 5 % of the messages are lost, and they arrive up to 20 ms late.
    Loss,
    /// All of these: loss up to 30 %, 100 ms late, restarts, crashes, outages.
    Chaos,
    /// Half of the nodes, or a fifth, run plain GTP; sessions come and go.
    Mixed,
    /// Sessions that open with a handshake in which the sink promises a rate; some of them are never heard of again.
    Promised,
    /// `Promised` with the disturbances of `Chaos`.
    PromisedChaos,
    /// Chaos without restarts, for nodes with so few permitted refreshes that leases grow and shrink with the sessions.
    Leases,
}

/// Uniform random numbers of one network.
pub struct Draw(Pcg64Mcg);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// In 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub fn span(&mut self, least_ms: f64, most_ms: f64) -> Duration {
        let between = least_ms + (most_ms - least_ms) * self.unit();
        Duration::from_nanos((between * 1e6) as u64)
    }

    /// From 0.1 to `most_ms`, log-uniform.
    fn rtt(&mut self, most_ms: f64) -> Duration {
        let exponent = self.unit();
        Duration::from_nanos((0.1e6 * (most_ms * 10.0).powf(exponent)) as u64)
    }
}

const GBPS: f64 = 1e9;

pub fn network(family: Family, seed: u64, options: TallyOptions) -> Network {
    let mut draw = Draw::new(seed.wrapping_mul(31).wrapping_add(family as u64));
    let draw = &mut draw;
    let mut network = Network::new(options);
    network.seed = seed;
    let is_tied = family == Family::Ties;
    let (sources, sinks) = (1 + draw.below(4), 1 + draw.below(4));
    let routers = if matches!(family, Family::Routers) || (family == Family::Chaos && draw.chance(0.2)) {
        1 + draw.below(2)
    } else {
        0
    };
    let same_interval = draw.span(10.0, 50.0);
    for index in 0..sources + sinks + routers {
        let capacity = if is_tied { GBPS } else { (0.1 + 0.9 * draw.unit()) * GBPS };
        let interval = if is_tied { same_interval } else { draw.span(10.0, 50.0) };
        let phase = if is_tied { Duration::ZERO } else { draw.span(0.0, interval.as_secs_f64() * 1e3) };
        network.resource(index < sources, capacity.round(), interval, phase);
    }
    let same_rtt = draw.rtt(400.0);
    for _ in 0..=draw.below(16) {
        let (source, sink) = (draw.below(sources), sources + draw.below(sinks));
        let rtt = if is_tied { same_rtt } else { draw.rtt(400.0) };
        let opens = Time::ZERO + if family == Family::Static { draw.span(0.0, 20.0) } else { draw.span(0.0, 1000.0) };
        let opens = if is_tied { at_ms(10 * draw.below(3) as u64) } else { opens };
        let plan = network.session(source, sink, rtt, opens);
        plan.declares = family == Family::Declared || (family == Family::Chaos && draw.chance(0.2));
        demands(plan, family, draw);
        if family == Family::Weighted || (family == Family::Chaos && draw.chance(0.3)) {
            plan.weight = [0.2, 0.5, 1.0, 2.0, 5.0][draw.below(5)];
        }
        if family == Family::Weighted && draw.chance(0.5) {
            // The sum of 16 stays below any capacity.
            plan.minimum_bps = (draw.unit() * 0.006 * GBPS).round();
        }
        if routers > 0 && draw.chance(0.7) {
            let way = plan.ways[0];
            let part = draw.unit();
            let forward = Duration::from_nanos((way.forward.as_nanos() as f64 * part) as u64);
            let back = Duration::from_nanos((way.back.as_nanos() as f64 * part) as u64);
            let resource = sources + sinks + draw.below(routers);
            plan.ways.insert(0, Way { resource, forward, back });
        }
    }
    match family {
        Family::Capacities => {
            for _ in 0..=draw.below(3) {
                let at = Time::ZERO + draw.span(0.0, 1200.0);
                let bps = ((0.1 + 0.9 * draw.unit()) * GBPS).round();
                network.changes.push((at, Change::Capacity(draw.below(sources + sinks), bps)));
            }
            network.changes.sort_by_key(|(at, _)| *at);
        }
        Family::Loss => (network.loss, network.late) = (0.05, ms(20)),
        Family::Mixed => {
            let share = if draw.chance(0.5) { 0.5 } else { 0.2 };
            for resource in &mut network.resources {
                resource.is_plain = draw.chance(share);
            }
        }
        Family::Chaos => chaos(&mut network, sources, draw),
        Family::PromisedChaos => {
            promise(&mut network, draw);
            chaos(&mut network, sources, draw);
        }
        Family::Promised => promise(&mut network, draw),
        Family::Leases => {
            promise(&mut network, draw);
            chaos(&mut network, sources, draw);
            network.changes.retain(|(_, change)| !matches!(change, Change::Restart(_)));
        }
        _ => {}
    }
    network
}

/// Most sessions open with a promise, and some of those never send.
fn promise(network: &mut Network, draw: &mut Draw) {
    network.reacts = draw.chance(0.5);
    for plan in &mut network.plans {
        if draw.chance(0.8) {
            plan.opening = if draw.chance(0.2) { Opening::NeverComes } else { Opening::Promised };
        }
    }
}

fn demands(plan: &mut Plan, family: Family, draw: &mut Draw) {
    let demand = |draw: &mut Draw| match draw.below(4) {
        0 | 1 => f64::INFINITY,
        2 if family == Family::Ties => [0.25, 0.5, 0.125][draw.below(3)] * GBPS,
        2 => (draw.unit() * GBPS).round(),
        _ => (draw.unit() * 0.05 * GBPS).round(),
    };
    plan.demands.push((Time::ZERO, demand(draw)));
    if matches!(family, Family::Static | Family::Ties) {
        return;
    }
    for _ in 0..draw.below(3) {
        let at = Time::ZERO + draw.span(0.0, 1500.0);
        plan.demands.push((at, demand(draw)));
    }
    plan.demands.sort_by_key(|(at, _)| *at);
    if draw.chance(0.25) {
        plan.closes = Some(plan.opens + draw.span(10.0, 800.0));
    }
}

fn chaos(network: &mut Network, sources: usize, draw: &mut Draw) {
    network.loss = 0.3 * draw.unit();
    network.late = draw.span(0.0, 100.0);
    network.reacts = draw.chance(0.3);
    let remotes = network.resources.len() - sources;
    if draw.chance(0.4) {
        let at = Time::ZERO + draw.span(200.0, 2500.0);
        network.changes.push((at, Change::Restart(sources + draw.below(remotes))));
    }
    if draw.chance(0.3) {
        let (at, source) = (Time::ZERO + draw.span(200.0, 2500.0), draw.below(sources));
        network.changes.push((at, Change::Crash(source)));
        // Open sessions open again as new sessions.
        let again: Vec<Plan> =
            network.plans.iter().filter(|plan| plan.source == source && plan.opens <= at).cloned().collect();
        for mut plan in again {
            let pause = draw.span(0.0, 300.0);
            plan.opens = at + pause;
            plan.closes = None;
            network.plans.push(plan);
        }
    }
    for _ in 0..draw.below(3) {
        let from = Time::ZERO + draw.span(0.0, 3000.0);
        let until = from + draw.outage();
        network.outages.push(Outage { resource: sources + draw.below(remotes), is_to: draw.chance(0.5), from, until });
    }
}

impl Draw {
    /// From 0.1 to 15 s, log-uniform.
    fn outage(&mut self) -> Duration {
        let exponent = self.unit();
        Duration::from_nanos((0.1e9 * 150f64.powf(exponent)) as u64)
    }
}
