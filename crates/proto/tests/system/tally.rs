//! Worlds whose machines share by claims and grants.

use std::ops::Range;

use fairwave_proto::{ExchangeConfig, IntervalRule};
use fairwave_units::Time;

use crate::flow_rates::{Watch, assert_near, optimum, own};
use crate::network::{Action, ENDLESS, Flow, Link, Network, Random, Setup, TestHost, address, tally};
use crate::plan::{self, Rules};
use crate::{WORLDS, each, report};

#[test]
fn worlds__every_honest_transfer_completes_by_claims_and_grants() {
    each("worlds__every_honest_transfer_completes_by_claims_and_grants", WORLDS, |seed| {
        let mut world = plan::honest_by(seed, Rules::Claimed);
        world.run();
        report(&world);
    });
}

#[test]
fn worlds__hostile_peers_do_no_harm_to_claims_and_grants() {
    each("worlds__hostile_peers_do_no_harm_to_claims_and_grants", WORLDS, |seed| {
        let mut world = plan::hostile(seed, Rules::Claimed);
        world.run();
        report(&world);
    });
}

/// Endless transfers between machines with capacities of `bps` on paths with a steady delay, some of which lose
/// packets, and each of which is as wide as its ends. `exchange` sets how each machine shares.
pub(crate) fn endless(
    seed: u64,
    bps: Range<f64>,
    mut exchange: impl FnMut(usize) -> Option<ExchangeConfig>,
) -> Network {
    let mut random = Random::new(seed);
    let count = 2 + random.below(4);
    let machines: Vec<_> = (0..count)
        .map(|at| {
            let setup = Setup {
                capacity_bps: Some(random.scaled(bps.clone())),
                fair_start: random.chance(0.5),
                exchange: exchange(at),
                interval: IntervalRule::Fixed(random.ms(10.0..50.0)),
                ..Setup::default()
            };
            TestHost::new(setup, address(at), random.bits())
        })
        .collect();
    let loss = random.pick(&[0.0, 0.0, 0.02]);
    let mut way = || Link { loss, ..Link::plain(random.ms(0.1..70.0)) };
    let ways = (0..count).map(|_| (0..count).map(|_| way()).collect()).collect();
    let mut world = Network::new(seed, random.clone(), machines, ways);
    world.check = plan::weigh;
    for _ in 0..=random.below(6) {
        let initiator = random.below(count);
        let responder = (initiator + 1 + random.below(count - 1)) % count;
        let flow = Flow::new(initiator, responder, random.chance(0.5), random.at(0.0..1.0), vec![ENDLESS]);
        world.flows.push(Flow { is_honest: false, ..flow });
    }
    world
}

fn rates(world: &Network) -> Vec<f64> {
    (0..world.flows.len()).map(|flow| world.granted_bps(flow)).collect()
}

/// T1: the rates at which what arrives was sent sum to no more than 1.02 C, at sources and at sinks. And at the end the
/// rates are the max-min optimum.
#[test]
fn worlds__rates_by_claims_and_grants_are_exact_and_never_above_the_capacity() {
    each("worlds__rates_by_claims_and_grants_are_exact_and_never_above_the_capacity", WORLDS, |seed| {
        let mut world = endless(seed, 2e6..20e6, |_| Some(tally()));
        let mut watch = Watch::new(&world, own(&world));
        watch.run_until(&mut world, 6000, |_| {});
        for (machine, most) in watch.most.iter().enumerate() {
            assert!(most.iter().all(|most| *most <= 1.0201), "machine {machine}: {most:?}: {}", world.describe());
        }
        assert_near(&world, &own(&world), &rates(&world), 0.01);
        assert_reserved(&world, 0.01);
        report(&world);
    });
}

/// Half of the machines run plain GTP. Machines of the other half are loaded by no more than 1.07 C, and all ends
/// within 1 % of max-min in the mean of 5 s: what is measured is coarse by packets.
#[test]
fn worlds__beside_plain_gtp_all_come_to_max_min() {
    each("worlds__beside_plain_gtp_all_come_to_max_min", WORLDS / 4, |seed| {
        let mut random = Random::new(seed ^ 0x6774_7000);
        let (claims, is_other) = (random.bits(), random.chance(0.5));
        // At least one of each kind.
        let exchanges = |at: usize| if at < 2 { (at == 0) == is_other } else { claims >> at & 1 == 1 };
        let mut world = endless(seed, 8e6..80e6, |at| exchanges(at).then(tally));
        let mut watch = Watch::new(&world, own(&world));
        watch.run_until(&mut world, 20_000, |_| {});
        for (machine, most) in watch.most.iter().enumerate().filter(|(machine, _)| exchanges(*machine)) {
            assert!(most[0] <= 1.02 && most[1] <= 1.07, "machine {machine}: {most:?}: {}", world.describe());
        }
        assert_near(&world, &own(&world), &watch.means(5000), 0.01);
        report(&world);
    });
}

/// Machines that forget all they knew, one after the other: what comes in any tenth of a second is no more than the
/// capacity and headroom allow, what others send goes on, and all ends at max-min.
#[test]
fn worlds__a_restart_overloads_nobody_and_all_goes_on() {
    each("worlds__a_restart_overloads_nobody_and_all_goes_on", WORLDS / 2, |seed| {
        let mut world = endless(seed, 8e6..80e6, |_| Some(tally()));
        // Each way without loss, so that no doubt is about what was sent again.
        world.links.iter_mut().flatten().for_each(|link| link.loss = 0.0);
        // Resets are bytes.
        world.is_sealed = true;
        let mut random = Random::new(!seed);
        let machines = std::mem::take(&mut world.hosts);
        world.hosts = machines.into_iter().map(|host| host.with_resets(random.bits())).collect();
        let at = |s: f64| Time::from_nanos((s * 1e9) as u64);
        let restarts = [3.0, 5.0].map(|s| (at(s + random.within(0.0..1.0)), random.below(world.hosts.len())));
        world.actions = restarts.iter().rev().map(|(at, machine)| (*at, Action::Restart(*machine))).collect();
        let mut before = vec![0; world.hosts.len()];
        for window in 1..=250_u64 {
            world.run_until(Time::from_nanos(window * 100_000_000));
            for (machine, (host, before)) in world.hosts.iter().zip(&mut before).enumerate() {
                let bps = host.setup.capacity_bps.unwrap();
                let most = 1.02 * bps * 0.1 / 8.0 + 10_000.0;
                let bytes = (host.came - *before) as f64;
                assert!(bytes <= most, "machine {machine} of {bps}: {bytes} of {most} B: {}", world.describe());
                *before = host.came;
            }
        }
        assert_near(&world, &own(&world), &rates(&world), 0.01);
        report(&world);
    });
}

/// The rates that granting sinks have given are those that arrive.
fn assert_reserved(world: &Network, share: f64) {
    let optimum = optimum(world, &own(world));
    for (at, machine) in world.hosts.iter().enumerate() {
        let Some(reserved) = machine.reserved() else { continue };
        let came = world.flows.iter().zip(&optimum).filter(|(flow, _)| flow.sink == at);
        let came: f64 = came.map(|(_, rate)| rate).sum();
        assert!((reserved.as_bps() - came).abs() <= share * came + 10.0, "machine {at}: {reserved}, {came}");
    }
}
