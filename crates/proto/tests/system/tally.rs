//! Worlds whose machines share by claims and grants.

use fairwave_proto::{IntervalRule, PathKind, RateTerm};
use fairwave_schemes::global::{Paths, Problem, max_min};
use fairwave_units::{Bytes, Rate, Time};

use crate::machine::{Machine, Setup};
use crate::plan::{self, Rules};
use crate::random::Random;
use crate::way::Way;
use crate::world::{Transfer, World, address};
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

/// What a session may send, since when.
type Rates = Vec<(Time, f64)>;

/// Endless transfers between machines of 2 to 20 Mb/s on ways with a steady delay, of which some lose packets, and each of
/// which is as wide as its ends.
fn endless(seed: u64) -> World {
    let mut random = Random::new(seed);
    let count = 2 + random.below(4);
    let machines: Vec<_> = (0..count)
        .map(|at| {
            let setup = Setup {
                capacity_bps: Some(random.scaled(2e6..20e6)),
                path: PathKind::Dedicated,
                piece_bytes: 1000,
                probes_mtu: false,
                fair_start: random.chance(0.5),
                drain: false,
                exchange: Some(plan::exchange()),
                interval: IntervalRule::Fixed(random.ms(10.0..50.0)),
                room: Bytes::new(50_000_000),
            };
            Machine::new(setup, address(at, 1), random.bits())
        })
        .collect();
    let loss = random.pick(&[0.0, 0.0, 0.02]);
    let mut way = || Way { loss, ..Way::plain(random.ms(0.1..70.0)) };
    let ways = (0..count).map(|_| (0..count).map(|_| way()).collect()).collect();
    let mut world = World::new(seed, random.clone(), machines, ways);
    for _ in 0..=random.below(6) {
        let initiator = random.below(count);
        let responder = (initiator + 1 + random.below(count - 1)) % count;
        let mut transfer = Transfer::new(initiator, responder, random.chance(0.5), random.at(0.0..1.0), vec![1 << 40]);
        transfer.is_honest = false;
        world.transfers.push(transfer);
    }
    world
}

fn source(transfer: &Transfer) -> usize {
    if transfer.is_fetched { transfer.responder } else { transfer.initiator }
}

/// The rate that each transfer may send at now: the least of what both ends grant.
fn rates(world: &World) -> Vec<f64> {
    let rate = |(at, transfer): (usize, &Transfer)| {
        let machine = &world.machines[source(transfer)];
        let session = machine
            .sessions
            .iter()
            .find(|(session, of)| **of == at && machine.host.limit(**session, RateTerm::Sink).is_some());
        let limit =
            |term| session.and_then(|(session, _)| machine.host.limit(*session, term)).map_or(0.0, Rate::as_bps);
        limit(RateTerm::Source).min(limit(RateTerm::Sink))
    };
    world.transfers.iter().enumerate().map(rate).collect()
}

/// The rate of some time before.
fn at(rates: &Rates, time: Time) -> f64 {
    rates.iter().rev().find(|(since, _)| *since <= time).map_or(0.0, |(_, rate)| *rate)
}

/// T1, looked at each millisecond: the rates at which what arrives was sent sum to no more than 1.02 C, at sources and at sinks. And at
/// the end the rates are the max-min optimum.
#[test]
fn worlds__rates_by_claims_and_grants_are_exact_and_never_above_the_capacity() {
    each("worlds__rates_by_claims_and_grants_are_exact_and_never_above_the_capacity", WORLDS, |seed| {
        let mut world = endless(seed);
        let mut history: Vec<Rates> = vec![Vec::new(); world.transfers.len()];
        for tick in 1..=6000 {
            world.run_until(Time::from_nanos(tick * 1_000_000));
            for (history, rate) in history.iter_mut().zip(rates(&world)) {
                if history.last().is_none_or(|(_, last)| *last != rate) {
                    history.push((world.now, rate));
                }
            }
            for (machine, bps) in world.machines.iter().map(|machine| machine.setup.capacity_bps.unwrap()).enumerate() {
                let (mut sent, mut came) = (0.0, 0.0);
                for (transfer, rates) in world.transfers.iter().zip(&history) {
                    let source = source(transfer);
                    if source == machine {
                        sent += at(rates, world.now);
                    }
                    if transfer.sink() == machine {
                        let delay = world.ways[source][machine].delays[0].1;
                        let left = Time::from_nanos(world.now.as_nanos().saturating_sub(delay.as_nanos()));
                        came += at(rates, left);
                    }
                }
                let most = 1.02 * bps + 10.0;
                assert!(
                    sent <= most && came <= most,
                    "machine {machine} of {bps}: {sent}, {came} at {}: {}",
                    world.now,
                    world.describe()
                );
            }
        }
        assert_near_max_min(&world, 0.01);
        report(&world);
    });
}

fn assert_near_max_min(world: &World, share: f64) {
    let capacities = world.machines.iter().flat_map(|machine| [machine.setup.capacity_bps.unwrap(); 2]);
    let capacities: Vec<f64> = capacities.collect();
    let ends = |transfer: &Transfer| [2 * source(transfer) as u32, 2 * transfer.sink() as u32 + 1];
    let resources: Vec<u32> = world.transfers.iter().flat_map(ends).collect();
    let optimum = max_min(&Problem::new(&capacities, Paths::Rows { width: 2, resources: &resources })).unwrap();
    let found = rates(world);
    for (rate, right) in found.iter().zip(&optimum.rates_bps) {
        let all = &optimum.rates_bps;
        assert!(
            (rate - right).abs() <= share * right,
            "{rate} is not {right}: {found:?}, {all:?}: {}",
            world.describe()
        );
    }
    // What sinks that grant have given is what comes.
    for (at, machine) in world.machines.iter().enumerate() {
        let Some(reserved) = machine.host.reserved() else { continue };
        let came = world.transfers.iter().zip(&optimum.rates_bps).filter(|(transfer, _)| transfer.sink() == at);
        let came: f64 = came.map(|(_, rate)| rate).sum();
        assert!((reserved.as_bps() - came).abs() <= share * came + 10.0, "machine {at}: {reserved}, {came}");
    }
}
