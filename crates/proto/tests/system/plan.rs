//! A world drawn from a seed.

use fairwave_proto::codec::SessionId;
use fairwave_proto::{ExchangeConfig, IntervalRule, MAX_GAPS, PathKind};
use fairwave_units::{Bytes, Duration};

use crate::network::{Action, ENDLESS, Flow, Line, Link, Network, Random, Setup, TestHost, address, tally};
use crate::trick::Trick;

/// Bytes that a host may hold without sessions, for each session, and for each packet under link.
const HOST_BYTES: i64 = 1 << 20;
const SESSION_BYTES: i64 = 256 << 10;
const PACKET_BYTES: i64 = 32;

/// Honest machines on a network where all may go wrong that does not last.
pub(crate) fn honest(seed: u64) -> Network {
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
        (self == Self::Claimed && (!seed.is_multiple_of(3) || machine.is_multiple_of(2))).then(tally)
    }
}

/// Honest machines that share by such rules: else the worlds are the same.
pub(crate) fn honest_by(seed: u64, rules: Rules) -> Network {
    let mut random = Random::new(seed);
    let count = 2 + random.below(3);
    let path = if random.chance(0.5) { PathKind::Dedicated } else { PathKind::Shared };
    let machines: Vec<_> = (0..count)
        .map(|at| {
            let setup = Setup { exchange: rules.exchange(seed, at), ..setup(path, &mut random) };
            TestHost::new(setup, address(at), random.bits())
        })
        .collect();
    let harshness = random.pick(&[0.0, 0.2, 0.5]);
    let mut lines = Vec::new();
    let mut link = || link(harshness, &mut random, &mut lines);
    let links = (0..count).map(|_| (0..count).map(|_| link()).collect()).collect();
    let mut world = Network::new(seed, random.clone(), machines, links);
    (world.lines, world.is_sealed, world.check) = (lines, true, weigh);
    for _ in 0..=random.below(4) {
        let initiator = random.below(count);
        let responder = (initiator + 1 + random.below(count - 1)) % count;
        let sizes = (0..=random.below(3)).map(|_| random.scaled(1.0..1.5e6) as u64).collect();
        let begins = random.at(0.0..0.5);
        world.flows.push(Flow::new(initiator, responder, random.chance(0.5), begins, sizes));
    }
    for _ in 0..4 {
        if random.chance(harshness * 0.6) {
            let machine = random.below(count);
            let initiates = world.flows.iter().any(|flow| flow.initiator() == machine);
            let responds = world.flows.iter().any(|flow| flow.responder() == machine);
            let may_move = initiates && !responds && random.chance(0.5);
            let action = if may_move { Action::Move(machine) } else { Action::Restart(machine) };
            world.actions.push((random.at(0.0..3.0), action));
        }
    }
    world.actions.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    world
}

/// An honest world plus an attacker on the network without keys, and a machine with keys that sends anything.
pub(crate) fn hostile(seed: u64, rules: Rules) -> Network {
    let mut world = honest_by(seed, rules);
    let mut random = Random::new(!seed);
    world.attacker.attacks = random.pick(&[0.0, 0.01, 0.3, 1.0]);
    let liar = world.hosts.len();
    let setup = Setup { exchange: rules.exchange(seed, liar), ..setup(PathKind::Dedicated, &mut random) };
    let mut machine = TestHost::new(setup, address(liar), random.bits());
    machine.tamper = Some(Box::new(Trick {
        takes: random.pick(&[1.0, 1.2, 3.0]),
        stamps: random.pick(&[1.0, 0.5, 3.0]),
        grants: random.pick(&[1.0, 3.0]),
        claims: random.pick(&[1.0, 1.0, 1e3]),
        hides_losses: random.chance(0.3),
        nonsense: random.pick(&[0.01, 0.3, 3.0]),
        random: random.clone(),
        ..Trick::default()
    }));
    world.join(machine, || Link::plain(random.ms(0.1..50.0)));
    for other in 0..liar {
        let (initiator, responder) = if random.chance(0.5) { (liar, other) } else { (other, liar) };
        let flow = Flow::new(initiator, responder, random.chance(0.5), random.at(0.0..0.5), vec![ENDLESS]);
        world.flows.push(Flow { is_honest: false, ..flow });
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
        interval: if random.chance(0.5) { interval } else { IntervalRule::default() },
        room: Bytes::new(random.scaled(50e3..50e6) as u64),
        ..Setup::default()
    }
}

/// A link on which each thing goes wrong with a probability of `harshness`.
fn link(harshness: f64, random: &mut Random, lines: &mut Vec<Line>) -> Link {
    let delay = random.ms(0.1..100.0);
    let mut link = Link::plain(delay);
    link.largest = random.pick(&[1200, 1472, 9000]);
    link.jitter = random.ms(0.0..1.0);
    let mut is_wrong = || random.chance(harshness);
    let wrong: [bool; 8] = std::array::from_fn(|_| is_wrong());
    if wrong[0] {
        link.loss = random.scaled(0.0001..0.1);
    }
    if wrong[1] {
        link.bursts = (random.scaled(0.0001..0.01), random.scaled(0.05..0.5));
    }
    if wrong[2] {
        link.doubles = random.scaled(0.001..0.5);
    }
    if wrong[3] {
        link.corrupts = random.scaled(0.0001..0.05);
    }
    if wrong[4] {
        link.detours = (random.scaled(0.0001..0.5), random.ms(1.0..300.0));
    }
    if wrong[5] {
        for _ in 0..=random.below(3) {
            let start = random.at(0.0..5.0);
            let lasts = if random.chance(0.1) { random.ms(30e3..50e3) } else { random.ms(100.0..6000.0) };
            link.blackholes.push(start..start + lasts);
        }
    }
    if wrong[6] {
        for _ in 0..=random.below(3) {
            link.delays.push((random.at(0.0..5.0), random.ms(0.1..300.0)));
        }
        link.delays.sort();
    }
    if wrong[7] {
        link.line = Some(lines.len());
        lines.push(Line::lasting(random.scaled(2e6..100e6), random.ms(10.0..200.0)));
        // The largest packet also shrinks.
        link.largest = link.largest.min(1472);
    }
    link
}

/// No host holds more than it may, of memory and of its capacity.
pub(crate) fn weigh(world: &mut Network, at: usize) {
    let host = &world.hosts[at];
    // T1 of docs/explanation/tally.md: whatever was lost, late or a lie.
    if let Some((reserved, bps)) = host.reserved().zip(host.setup.capacity_bps) {
        // Steps of sources that send no claims take a twentieth more; so does one that knows no capacity.
        let is_plain = |flow: &Flow| {
            let Setup { exchange, capacity_bps, .. } = &world.hosts[flow.source].setup;
            flow.sink == at && (exchange.is_none() || capacity_bps.is_none())
        };
        let share = if world.flows.iter().any(is_plain) { 1.07 } else { 1.02 };
        let most = bps * share + 10.0;
        assert!(reserved.as_bps() <= most, "host {at} of {bps} b/s has given {reserved}: {}", world.describe());
    }
    let held = host.held;
    if held > HOST_BYTES {
        let under_way = |session: &SessionId| {
            let came = host.received_under_way(*session).min(2 * MAX_GAPS as u64);
            (host.sent_under_way(*session) as u64 + came).cast_signed()
        };
        let packets: i64 = host.sessions.keys().map(under_way).sum();
        let open = host.sessions.keys().filter(|session| host.keys(**session).is_some()).count();
        let open = i64::try_from(open).expect("sessions fit");
        let most = HOST_BYTES + open * SESSION_BYTES + packets * PACKET_BYTES;
        assert!(held <= most, "host {at} holds {held} bytes for {open} sessions and {packets} packets: {most}");
    }
    world.counts.most_held = world.counts.most_held.max(held);
}
