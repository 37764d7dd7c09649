//! Mistakes of earlier designs of the rule, each with a network that shows it.

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::{Duration, Time};

use crate::tally::tally_network::{Change, Network, Outage, at_ms, ms};
use crate::tally::world::World;

const GBPS: f64 = 1e9;

/// `sessions` greedy sessions, each from its own source, to one sink, which is resource 0.
fn star(sessions: u64) -> Network {
    let mut network = Network::new(TallyOptions::default());
    let sink = network.resource(false, GBPS, ms(20), ms(3));
    for session in 0..sessions {
        let source = network.resource(true, GBPS, ms(20), ms(4 * session % 20));
        network.session(source, sink, ms(30 + 10 * session), Time::ZERO);
    }
    network
}

/// The rates at that time, in Gb/s.
fn rates(world: &mut World<'_>, at: Time) -> Vec<f64> {
    world.run_until(at);
    assert_eq!(world.violation, None);
    world.rates_bps().map(|rate| (rate / GBPS * 1e6).round() / 1e6).collect()
}

/// A session limited by its application may grow immediately, but not beyond its offer: otherwise it kept more than its
/// share.
#[test]
fn a_demand_just_above_its_share__gets_its_share() {
    let mut network = star(2);
    network.plans[0].demands = vec![(Time::ZERO, 0.3 * GBPS), (at_ms(2000), 0.5005 * GBPS)];
    let mut world = World::new(&network);
    assert_eq!(rates(&mut world, at_ms(1900)), [0.3, 0.7]);
    assert_eq!(rates(&mut world, at_ms(9000)), [0.5, 0.5]);
}

/// A sink that lost its state keeps the rates in force, numbers its grants above them, and no source notices. A
/// newcomer waits until the sink knows all.
#[test]
fn restarted_sink__keeps_rates_in_force() {
    let mut network = star(6);
    network.plans[5].opens = at_ms(4000);
    network.changes.push((at_ms(3000), Change::Restart(0)));
    let mut world = World::new(&network);
    let mut now = at_ms(2000);
    while now < at_ms(11_000) {
        assert_eq!(rates(&mut world, now), [0.2, 0.2, 0.2, 0.2, 0.2, 0.0], "at {now}");
        now += ms(10);
    }
    assert_eq!(rates(&mut world, at_ms(12_000)), [0.166_667; 6]);
}

/// A sink that restarts while a cut is on its way receives rates that are older than the cut: it must not grant them
/// again.
#[test]
fn restarted_sink__does_not_grant_rates_of_late_claims() {
    for late in 0..40 {
        let mut network = star(2);
        network.plans[1].opens = at_ms(1000);
        network.changes.push((at_ms(1000 + 5 * late), Change::Restart(0)));
        let mut world = World::new(&network);
        assert_eq!(rates(&mut world, at_ms(14_000)), [0.5, 0.5]);
    }
}

/// A sink that no longer hears a session stops sending to it: so its source stops before its share is given away.
#[test]
fn silent_session__stops_before_its_share_is_reused() {
    let mut network = star(2);
    // Of the two sinks on the path of session 0 only the second is cut off.
    let router = network.resource(false, GBPS, ms(20), ms(9));
    network.plans[0].ways.insert(0, crate::tally::tally_network::Way { resource: router, forward: ms(5), back: ms(5) });
    let other = network.resource(true, GBPS, ms(20), ms(9));
    let plan = network.session(other, router, ms(40), Time::ZERO);
    plan.demands = vec![(Time::ZERO, GBPS)];
    network.outages.push(Outage { resource: router, is_to: true, from: at_ms(2000), until: at_ms(30_000) });
    let mut world = World::new(&network);
    assert_eq!(rates(&mut world, at_ms(1900)), [0.5, 0.5, 0.5]);
    // The router hears no source, and both sources stop. The sink hears session 0 claim a rate that it does not send.
    let [cut_off, other, cut_off_too] = rates(&mut world, at_ms(14_000))[..] else { panic!("three sessions") };
    assert!(cut_off == 0.0 && cut_off_too == 0.0 && other > 0.99, "{cut_off} {other} {cut_off_too}");
    assert_eq!(rates(&mut world, at_ms(32_000)), [0.5, 0.5, 0.5]);
}

/// If one of two sessions is cut off, the other gets its share, and the two never overlap.
#[test]
fn silent_session__leaves_its_share_to_the_other() {
    for is_restarted in [false, true] {
        let mut network = star(2);
        network.cut_off = Some((0, at_ms(3300), at_ms(30_000)));
        if is_restarted {
            network.changes.push((at_ms(3000), Change::Restart(0)));
        }
        let mut world = World::new(&network);
        assert_eq!(rates(&mut world, at_ms(3200)), [0.5, 0.5]);
        assert_eq!(rates(&mut world, at_ms(14_000)), [0.0, 1.0], "restarted: {is_restarted}");
        assert_eq!(rates(&mut world, at_ms(32_000)), [0.5, 0.5]);
    }
}

/// A demand of .1 % and many waiting sessions: the headroom of the last seconds counts, not the current one.
#[test]
fn idle_sessions_that_wake_in_turn__all_get_their_shares() {
    let mut network = star(12);
    for session in 1..12 {
        let wakes = at_ms(2000 + 37 * session as u64);
        network.plans[session].demands = vec![(Time::ZERO, 0.0), (wakes, f64::INFINITY)];
    }
    let mut world = World::new(&network);
    world.run_until(at_ms(3500));
    assert_eq!(rates(&mut world, Time::ZERO + Duration::from_secs(4)), [0.083_333; 12]);
}
