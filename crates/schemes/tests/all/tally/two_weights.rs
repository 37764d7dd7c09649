//! Sessions to which their two ends give different weights: no message carries a weight. Loads stay within the
//! capacities; but there are several equilibria, and some networks never reach one.

use std::collections::BTreeSet;

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::Time;

use crate::tally::drawn_worlds::{Draw, Family, network};
use crate::tally::families::number;
use crate::tally::tally_network::{Network, at_ms, ms};
use crate::tally::world::World;

const GBPS: f64 = 1e9;

/// Two sessions of 20 ms from one source to one sink, both of 1 Gb/s: their opening times, and their weights at the
/// source and at the sink.
fn two(opens: [u64; 2], weights: [[f64; 2]; 2]) -> Network {
    let mut network = Network::new(TallyOptions::default());
    let source = network.resource(true, GBPS, ms(20), ms(0));
    let sink = network.resource(false, GBPS, ms(20), ms(10));
    for (opens, [weight, weight_there]) in opens.into_iter().zip(weights) {
        let plan = network.session(source, sink, ms(20), at_ms(opens));
        (plan.weight, plan.weight_there) = (weight, Some(weight_there));
    }
    network
}

/// Rates in thousandths of 1 Gb/s.
fn rates(world: &World<'_>) -> Vec<u32> {
    world.rates_bps().map(|rate| (rate / GBPS * 1e3).round() as u32).collect()
}

/// The source gives the first one weight two, the sink the second: each would have a third at one end and two at the
/// other. Every division in between is an equilibrium: the first session has its bottleneck at the sink, the second at
/// the source.
#[test]
fn two_sessions__with_crossed_weights_keep_their_division() {
    for part in [350, 400, 500, 600, 650] {
        let mut network = two([0, 0], [[2.0, 1.0], [1.0, 2.0]]);
        // Until 2 s the demand of the first one is limited, from then on both are unlimited.
        network.plans[0].demands = vec![(Time::ZERO, f64::from(part) * 1e6), (at_ms(2000), f64::INFINITY)];
        let mut world = World::new(&network);
        for at in [1900, 8000] {
            world.run_until(at_ms(at));
            assert_eq!(rates(&world), [part, 1000 - part], "at {at} ms");
        }
        assert_eq!(world.violation, None);
        assert!(world.last_news < at_ms(2500), "{}", world.last_news);
    }
}

/// If only one end knows a weight, the messages of one round trip may differ from those of the next, and oscillate:
/// grants go up and down, and the rates stay at the lower ones, with a sixth of the capacity idle. If both know it,
/// there is one division.
#[test]
fn two_sessions__with_a_weight_at_one_end_may_oscillate() {
    for (there, expected) in [(1.0, vec![500, 333]), (2.0, vec![667, 333])] {
        let network = two([515, 0], [[2.0, there], [1.0, 1.0]]);
        let mut world = World::new(&network);
        let mut seen = BTreeSet::new();
        for at in 20_000..21_000 {
            world.run_until(at_ms(at));
            seen.insert(rates(&world));
        }
        assert_eq!(world.violation, None);
        assert_eq!(seen, BTreeSet::from([expected]), "weight {there} at the sink");
        // The last news is recent, or older than the refreshes.
        assert_eq!(at_ms(20_999).since(world.last_news) < ms(100), there == 1.0, "{}", world.last_news);
    }
}

/// For any weights at the ends, and in equilibrium or not, loads and reserved rates stay within the capacities and the
/// headroom, at every instant.
#[test]
fn networks__with_any_weights_keep_to_the_capacities() {
    let (first, count) = (number("FAIRWAVE_SEED").unwrap_or(0), number("FAIRWAVE_TALLY").unwrap_or(60));
    let mut restless = 0;
    for seed in first..first + count {
        let mut network = network(Family::Weighted, seed, TallyOptions::default());
        let mut draw = Draw::new(seed ^ 0x2e19);
        for plan in &mut network.plans {
            if draw.chance(0.5) {
                plan.weight_there = Some([0.2, 0.5, 1.0, 2.0, 5.0][draw.below(5)]);
            }
        }
        let end = network.last_change() + ms(12_000);
        let mut world = World::new(&network);
        world.run_until(end);
        assert_eq!(world.violation, None, "FAIRWAVE_SEED={seed} FAIRWAVE_TALLY=1");
        restless += u32::from(end.since(world.last_news) < ms(1500));
    }
    println!("{restless} of {count} networks do not rest");
}
