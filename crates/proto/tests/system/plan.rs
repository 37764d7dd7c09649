//! A world drawn from a seed.

use fairwave_proto::{ExchangeConfig, IntervalRule, PathKind};
use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::{Bytes, Duration};

use crate::machine::{Machine, Setup};
use crate::random::Random;
use crate::trick::Trick;
use crate::way::Way;
use crate::world::{Action, Transfer, World, address};

/// Honest machines on a network where all may go wrong that does not last.
pub(crate) fn honest(seed: u64) -> World {
    honest_by(seed, Rules::Measured)
}

/// By what the machines of a world share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// By what they measure.
    Measured,
    /// All by claims and grants; of a world in three every other machine by what it measures.
    Claimed,
}

impl Rules {
    fn exchange(self, seed: u64, machine: usize) -> Option<ExchangeConfig> {
        (self == Self::Claimed && (!seed.is_multiple_of(3) || machine.is_multiple_of(2))).then(exchange)
    }
}

/// As on a wire.
pub(crate) fn exchange() -> ExchangeConfig {
    let options = TallyOptions { packet: Bytes::new(1500), ..TallyOptions::default() };
    ExchangeConfig { options, react: Some(Duration::from_millis(1)) }
}

/// Honest machines that share by such rules: else the worlds are the same.
pub(crate) fn honest_by(seed: u64, rules: Rules) -> World {
    let mut random = Random::new(seed);
    let count = 2 + random.below(3);
    let path = if random.chance(0.5) { PathKind::Dedicated } else { PathKind::Shared };
    let machines: Vec<_> = (0..count)
        .map(|at| {
            let setup = Setup { exchange: rules.exchange(seed, at), ..setup(path, &mut random) };
            Machine::new(setup, address(at, 1), random.bits())
        })
        .collect();
    let harshness = random.pick(&[0.0, 0.2, 0.5]);
    let ways = (0..count).map(|_| (0..count).map(|_| way(harshness, &mut random)).collect()).collect();
    let mut world = World::new(seed, random.clone(), machines, ways);
    for _ in 0..=random.below(4) {
        let initiator = random.below(count);
        let responder = (initiator + 1 + random.below(count - 1)) % count;
        let sizes = (0..=random.below(3)).map(|_| random.scaled(1.0..1.5e6) as u64).collect();
        let begins = random.at(0.0..0.5);
        world.transfers.push(Transfer::new(initiator, responder, random.chance(0.5), begins, sizes));
    }
    for _ in 0..4 {
        if random.chance(harshness * 0.6) {
            let machine = random.below(count);
            let initiates = world.transfers.iter().any(|transfer| transfer.initiator == machine);
            let responds = world.transfers.iter().any(|transfer| transfer.responder == machine);
            let may_move = initiates && !responds && random.chance(0.5);
            let action = if may_move { Action::Move(machine) } else { Action::Restart(machine) };
            world.actions.push((random.at(0.0..3.0), action));
        }
    }
    world.actions.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    world
}

/// The same with somebody on the network who has no keys, and with a machine that has and says anything.
pub(crate) fn hostile(seed: u64, rules: Rules) -> World {
    let mut world = honest_by(seed, rules);
    let mut random = Random::new(!seed);
    world.attacks = random.pick(&[0.0, 0.01, 0.3, 1.0]);
    let liar = world.machines.len();
    let setup = Setup { exchange: rules.exchange(seed, liar), ..setup(PathKind::Dedicated, &mut random) };
    let mut machine = Machine::new(setup, address(liar, 1), random.bits());
    machine.trick = Some(Trick {
        takes: random.pick(&[1.0, 1.2, 3.0]),
        stamps: random.pick(&[1.0, 0.5, 3.0]),
        grants: random.pick(&[1.0, 3.0]),
        claims: random.pick(&[1.0, 1.0, 1e3]),
        hides_losses: random.chance(0.3),
        nonsense: random.pick(&[0.01, 0.3, 3.0]),
        random: random.clone(),
        ..Trick::default()
    });
    world.join(machine, || Way::plain(random.ms(0.1..50.0)));
    for other in 0..liar {
        let (initiator, responder) = if random.chance(0.5) { (liar, other) } else { (other, liar) };
        let mut transfer = Transfer::new(initiator, responder, random.chance(0.5), random.at(0.0..0.5), vec![1 << 40]);
        transfer.is_honest = false;
        world.transfers.push(transfer);
    }
    world
}

fn setup(path: PathKind, random: &mut Random) -> Setup {
    let probes_mtu = random.chance(0.3);
    let interval = IntervalRule::Fixed(Duration::from_millis(20));
    Setup {
        capacity_bps: random.chance(0.8).then(|| random.scaled(3e6..300e6)),
        path,
        piece_bytes: if probes_mtu { random.pick(&[1400, 8000]) } else { random.within(200.0..1151.0) as u32 },
        probes_mtu,
        fair_start: random.chance(0.5),
        drain: random.chance(0.5),
        exchange: None,
        interval: if random.chance(0.5) { interval } else { IntervalRule::default() },
        room: Bytes::new(random.scaled(50e3..50e6) as u64),
    }
}

/// A way on which each thing goes wrong with a probability of `harshness`.
fn way(harshness: f64, random: &mut Random) -> Way {
    let delay = random.ms(0.1..100.0);
    let mut way = Way::plain(delay);
    way.largest = random.pick(&[1200, 1472, 9000]);
    way.jitter = random.ms(0.0..1.0);
    let mut is_wrong = || random.chance(harshness);
    let wrong: [bool; 8] = std::array::from_fn(|_| is_wrong());
    if wrong[0] {
        way.loss = random.scaled(0.0001..0.1);
    }
    if wrong[1] {
        way.bursts = (random.scaled(0.0001..0.01), random.scaled(0.05..0.5));
    }
    if wrong[2] {
        way.doubles = random.scaled(0.001..0.5);
    }
    if wrong[3] {
        way.corrupts = random.scaled(0.0001..0.05);
    }
    if wrong[4] {
        way.detours = (random.scaled(0.0001..0.5), random.ms(1.0..300.0));
    }
    if wrong[5] {
        for _ in 0..=random.below(3) {
            let start = random.at(0.0..5.0);
            let lasts = if random.chance(0.1) { random.ms(30e3..50e3) } else { random.ms(100.0..6000.0) };
            way.blackholes.push(start..start + lasts);
        }
    }
    if wrong[6] {
        for _ in 0..=random.below(3) {
            way.delays.push((random.at(0.0..5.0), random.ms(0.1..300.0)));
        }
        way.delays.sort();
    }
    if wrong[7] {
        way.line = Some((random.scaled(2e6..100e6), random.ms(10.0..200.0)));
        // It shrinks, too.
        way.largest = way.largest.min(1472);
    }
    way
}
