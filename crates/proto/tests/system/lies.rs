//! Gain of a liar: the same world twice, once with all honest and once with a liar.

use fairwave_proto::ExchangeConfig;
use fairwave_units::{Duration, Time};

use crate::network::{Flow, Line, Link, Network, Random, Setup, TestHost, address, tally};
use crate::trick::Trick;
use crate::{each, env};

/// Of what a liar has without lying.
const MAX_GAIN: f64 = 0.05;
/// Seeds, besides as many fresh ones.
const LIARS: u64 = 1;

/// Some machines that send to one, or receive from one; the last of them may lie. Returns the bytes that each of their
/// transfers brought in the twenty seconds from the tenth on.
fn shares(seed: u64, is_at_sink: bool, exchange: Option<ExchangeConfig>, trick: Option<&Trick>) -> (Vec<u64>, Network) {
    let mut random = Random::new(seed);
    let others = 2 + random.below(3);
    let capacity_bps = random.scaled(5e6..20e6);
    let mut machines = Vec::new();
    for at in 0..=others {
        let bps = if at == 0 { capacity_bps } else { 10.0 * capacity_bps };
        let setup = Setup { capacity_bps: Some(bps), drain: true, exchange, ..Setup::default() };
        machines.push(TestHost::new(setup, address(at), random.bits()));
    }
    machines[others].tamper = trick.map(|trick| Box::new(trick.clone()) as _);
    let delays: Vec<_> = (0..=others).map(|_| random.ms(1.0..40.0)).collect();
    let ways = (0..=others).map(|from| (0..=others).map(|to| Link::plain(delays[from.max(to)])).collect()).collect();
    let mut world = Network::new(seed, random, machines, ways);
    if is_at_sink {
        world.lines.push(Line::lasting(capacity_bps, Duration::from_millis(200)));
        for link in world.links.iter_mut().map(|links| &mut links[0]) {
            (link.line, link.before, link.delays) = (Some(0), link.delays[0].1, Vec::new());
        }
    }
    for at in 1..=others {
        let (source, sink) = if is_at_sink { (at, 0) } else { (0, at) };
        world.flows.push(Flow { is_honest: at < others, is_retried: true, ..Flow::endless(source, sink) });
    }
    world.run_until(Time::from_secs(10));
    let before: Vec<_> = world.flows.iter().map(Flow::got_bytes).collect();
    world.run_until(Time::from_secs(30));
    let got = world.flows.iter().zip(before).map(|(flow, before)| flow.got_bytes() - before).collect();
    (got, world)
}

/// Gain of the last one by a trick, as a share of its bytes without the trick.
fn gain(seed: u64, is_at_sink: bool, exchange: Option<ExchangeConfig>, trick: &Trick) -> f64 {
    let (honest, _) = shares(seed, is_at_sink, exchange, None);
    let (lying, world) = shares(seed, is_at_sink, exchange, Some(trick));
    let gain = *lying.last().unwrap() as f64 / *honest.last().unwrap() as f64 - 1.0;
    if env("FAIRWAVE_SEED").is_some() {
        println!("{trick:?}: {honest:?} {lying:?} {gain:+.3} {:?}", world.counts);
    }
    gain
}

/// A lie.
fn draw(random: &mut Random) -> Trick {
    let honest = Trick::default();
    let [factor, other] = [random.scaled(1.02..10.0), random.scaled(1.02..10.0)];
    match random.below(8) {
        0 | 1 => Trick { takes: factor, ..honest },
        // It sends more, and its stamps say that it does not.
        2 => Trick { takes: factor, stamps: factor, ..honest },
        3 => Trick { takes: factor, stamps: other, ..honest },
        4 => Trick { stamps: factor, ..honest },
        5 => Trick { stamps: 1.0 / factor, ..honest },
        6 => Trick { grants: factor * other, ..honest },
        _ => Trick { hides_losses: true, grants: factor, ..honest },
    }
}

#[test]
fn worlds__nobody_gains_by_lying() {
    each("worlds__nobody_gains_by_lying", LIARS, |seed| {
        let mut random = Random::new(!seed);
        let (trick, is_at_sink) = (draw(&mut random), random.chance(0.7));
        let gain = gain(seed, is_at_sink, None, &trick);
        assert!(gain <= MAX_GAIN, "{trick:?}, many to one {is_at_sink}: {gain:+.3}");
    });
}

/// Those lies, and false claims, if all hosts share by claims and grants.
#[test]
fn worlds__nobody_gains_by_lying_of_claims_and_grants() {
    each("worlds__nobody_gains_by_lying_of_claims_and_grants", LIARS, |seed| {
        let mut random = Random::new(!seed);
        let claims = random.chance(0.5).then(|| random.scaled(1.02..1e6));
        let (trick, is_at_sink) = (draw(&mut random), random.chance(0.7));
        let trick = Trick { claims: claims.unwrap_or(1.0), ..trick };
        let gain = gain(seed, is_at_sink, Some(tally()), &trick);
        assert!(gain <= MAX_GAIN, "{trick:?}, many to one {is_at_sink}: {gain:+.3}");
    });
}
