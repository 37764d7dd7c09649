//! Networks with known numbers: the specification's example millisecond by millisecond, and the speed and peak load of
//! networks of the papers.

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::{Duration, Time};

use crate::tally::drawn_worlds::Draw;
use crate::tally::tally_network::{Network, at_ms, exact, ms};
use crate::tally::tally_optimum::{by_algorithm_1, optimum};
use crate::tally::world::World;

const GBPS: f64 = 1e9;

/// C = 1, d = 20 ms; sources A, B and the sink tick first at 0, 5 and 10 ms. A (RTT 20 ms) opens at 0, B (60 ms) at
/// 100 ms; both are greedy.
#[test]
fn two_sessions__share_a_sink_without_a_moment_of_overload() {
    let mut network = Network::new(TallyOptions::default());
    let [a, b] = [0, 5].map(|phase| network.resource(true, GBPS, ms(20), ms(phase)));
    let sink = network.resource(false, GBPS, ms(20), ms(10));
    network.session(a, sink, ms(20), at_ms(0));
    network.session(b, sink, ms(60), at_ms(100));
    let mut world = World::new(&network);
    world.trace = Some(Vec::new());
    // Each (ms, rate of A, rate of B): A gets its grant at 40 and is cut at 140; B is granted at 170 the rate whose
    // release A had confirmed at the sink at 150, and receives it at 200.
    for (at, a_bps, b_bps) in
        [(39, 0.0, 0.0), (40, 1.0, 0.0), (139, 1.0, 0.0), (140, 0.5, 0.0), (199, 0.5, 0.0), (200, 0.5, 0.5)]
    {
        world.run_until(at_ms(at));
        assert_eq!([world.rate_bps(0), world.rate_bps(1)], [a_bps * GBPS, b_bps * GBPS], "at {at} ms");
    }
    world.run_until(at_ms(2000));
    assert_eq!(world.violation, None);
    let trace = world.trace.take().expect("asked for above");
    let loads: Vec<(Time, f64)> =
        trace.into_iter().filter(|(_, at, _)| *at == sink).map(|(at, _, load)| (at, load)).collect();
    assert_eq!(loads, [(at_ms(50), GBPS), (at_ms(150), GBPS / 2.0), (at_ms(230), GBPS)]);
}

/// Time until the distance to the optimum stays below 1 % of it, and the maximum load over capacity.
fn settles(network: &Network, from: Time, until: Time) -> (Duration, f64) {
    let best = by_algorithm_1(network);
    let norm = best.iter().map(|rate| rate * rate).sum::<f64>().sqrt();
    let mut world = World::new(network);
    let (mut now, mut far) = (Time::ZERO, from);
    while now < until {
        now += ms(1);
        world.run_until(now);
        if now >= from {
            let distance =
                world.rates_bps().zip(&best).map(|(rate, best)| (rate - best) * (rate - best)).sum::<f64>().sqrt();
            if distance >= 0.01 * norm {
                far = now;
            }
        }
    }
    assert_eq!(world.violation, None);
    (far.since(from), world.peak)
}

/// Wu 2007, Table VII.2: every source sends to four sinks; RTT 1 to 100 ms, control intervals 10 to 100 ms, 1 Gb/s.
fn lambda(seed: u64, nodes: usize, reacts: bool) -> Network {
    let draw = &mut Draw::new(seed);
    let mut network = Network { seed, reacts, ..Network::new(TallyOptions::default()) };
    for index in 0..nodes {
        let interval = draw.span(10.0, 50.0);
        let phase = draw.span(0.0, interval.as_secs_f64() * 1e3);
        network.resource(index < nodes / 2, GBPS, interval, phase);
    }
    for source in 0..nodes / 2 {
        for _ in 0..4 {
            let (sink, rtt) = (nodes / 2 + draw.below(nodes / 2), draw.span(1.0, 100.0));
            network.session(source, sink, rtt, Time::ZERO);
        }
    }
    network
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}

#[test]
fn many_nodes__are_within_a_hundredth_in_half_a_second() {
    let nodes = if cfg!(debug_assertions) { 64 } else { 1024 };
    for (reacts, most) in [(false, ms(500)), (true, ms(300))] {
        let found: Vec<(Duration, f64)> =
            (0..10).map(|seed| settles(&lambda(seed, nodes, reacts), Time::ZERO, at_ms(1500))).collect();
        let peak = found.iter().map(|(_, peak)| *peak).fold(0.0, f64::max);
        let median = median(found.into_iter().map(|(took, _)| took).collect());
        eprintln!("{nodes} nodes, reacts {reacts}: D < 1 % after {median} (median of 10), peak {peak}");
        assert!(median <= most && peak <= 1.000_001, "{median}, peak {peak}");
    }
}

/// n - 1 idle sessions and one that has the sink to itself; all wake up at the same time.
fn wake_up(count: usize) -> Network {
    let draw = &mut Draw::new(count as u64);
    let mut network = Network::new(TallyOptions::default());
    let sink = network.resource(false, GBPS, ms(50), draw.span(0.0, 50.0));
    for session in 0..count {
        let source = network.resource(true, GBPS, ms(50), draw.span(0.0, 50.0));
        let rtt = draw.span(10.0, 90.0);
        let plan = network.session(source, sink, rtt, Time::ZERO);
        if session > 0 {
            plan.demands = vec![(Time::ZERO, 0.0), (at_ms(5000), f64::INFINITY)];
        }
    }
    network
}

#[test]
fn sessions_that_wake__reach_their_shares_within_the_headroom() {
    for count in [2, 8, 64] {
        let (took, peak) = settles(&wake_up(count), at_ms(5000), at_ms(7000));
        eprintln!("{count} sessions wake: D < 1 % after {took}, peak {peak:.4}");
        assert!(took <= ms(400) && peak <= 1.02, "{count}: {took}, peak {peak}");
    }
}

/// A chain of levels. Session k has 10 + k Mb/s: the capacity that session k - 1 leaves at node k, which they share.
/// Half of node k is more than session k - 1 gets, so that each level has to wait for the one below.
fn chain(levels: usize) -> Network {
    let draw = &mut Draw::new(levels as u64);
    let mut network = Network::new(exact());
    for node in 0..=levels {
        let capacity = if node == 0 { 10.0 } else { 19.0 + 2.0 * node as f64 } * 1e6;
        // Sinks and sources alternate.
        network.resource(node % 2 == 1, capacity, ms(50), draw.span(0.0, 50.0));
    }
    for session in 0..levels {
        let (source, sink) = if session % 2 == 0 { (session + 1, session) } else { (session, session + 1) };
        let rtt = draw.span(20.0, 100.0);
        network.session(source, sink, rtt, Time::ZERO);
    }
    network
}

#[test]
fn a_chain_of_64_levels__is_exact_soon() {
    let network = chain(64);
    let best = optimum(&network);
    assert_eq!(best.node_rounds, 64);
    assert!((best.rates_bps[63] - 73e6).abs() < 1.0, "{}", best.rates_bps[63]);
    let mut world = World::new(&network);
    world.aim(&best.rates_bps, 1.0);
    world.run_until(at_ms(8000));
    eprintln!("{} rounds: exact after {}", best.node_rounds, world.near_since);
    assert!(world.away == 0 && world.near_since <= at_ms(4500), "{} away, {}", world.away, world.near_since);
    assert_eq!(world.violation, None);
}

/// Claims all and sends nothing: the unused rate goes to the others.
#[test]
fn a_claim_that_is_not_used__is_not_believed() {
    let mut network = Network::new(TallyOptions::default());
    let sink = network.resource(false, GBPS, ms(20), ms(3));
    for session in 0..5 {
        let source = network.resource(true, GBPS, ms(20), ms(4 * session));
        network.session(source, sink, ms(30), Time::ZERO).is_liar = session == 0;
    }
    let mut world = World::new(&network);
    world.run_until(at_ms(1500));
    assert_eq!([1, 4].map(|session| world.rate_bps(session)), [0.2 * GBPS; 2]);
    world.run_until(at_ms(6000));
    for session in 1..5 {
        let rate = world.rate_bps(session);
        assert!((rate / GBPS - 0.25).abs() <= 1e-4, "session {session}: {rate}");
    }
    assert_eq!(world.violation, None);
}

/// A source that never confirms keeps its grant reserved for two to four leases, and no longer.
#[test]
fn unconfirming_source__holds_its_grant_for_four_leases() {
    let mut network = Network::new(TallyOptions::default());
    let sink = network.resource(false, GBPS, ms(20), ms(3));
    for session in 0..2_u64 {
        let source = network.resource(true, GBPS, ms(20), ms(4 * session));
        network.session(source, sink, ms(30), at_ms(100 * session)).never_confirms = session == 0;
    }
    let mut world = World::new(&network);
    world.run_until(at_ms(7000));
    assert_eq!(world.rate_bps(1), 0.0);
    world.run_until(at_ms(17_000));
    assert_eq!([0, 1].map(|session| world.rate_bps(session)), [GBPS / 2.0; 2]);
    assert_eq!(world.violation, None);
}

/// After the last news only refreshes are sent: two per second from each end of a session.
#[test]
fn equilibrium__has_only_refreshes() {
    let network = lambda(3, 32, false);
    let mut world = World::new(&network);
    world.run_until(at_ms(10_000));
    let (news, before) = (world.last_news, world.messages);
    world.run_until(at_ms(20_000));
    let a_session = (world.messages - before) as f64 / network.plans.len() as f64 / 10.0;
    eprintln!("news until {news}; then {a_session:.2} messages a session and second");
    assert!(world.last_news == news && news < at_ms(2000), "{news}, then {}", world.last_news);
    assert!(a_session <= 4.0, "{a_session}");
}
