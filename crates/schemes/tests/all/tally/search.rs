//! An adversary that draws a network, changes a part of it, keeps changes that made it worse, and repeats. It varies
//! delays, phases, demands, arrivals and departures; if messages may be lost also loss, lateness and restarts.
//!
//! `FAIRWAVE_CLIMB=20000` sets the number of steps of each climb; the seeds of the climbs are printed.

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::{Duration, Time};

use crate::tally::drawn_worlds::{Draw, Family, network};
use crate::tally::families::{Outcome, number, run};
use crate::tally::tally_network::{Change, Network, exact};

#[derive(Clone, Copy, Debug)]
enum Aim {
    /// Maximum load over capacity, by any means.
    Load,
    /// Maximum time to exactness, relative to the bound of the proof: without loss.
    Time,
}

const GBPS: f64 = 1e9;

fn climb(seed: u64, aim: Aim, steps: u64) {
    let mut draw = Draw::new(seed ^ 0xad7e_25a1);
    let (family, options) = match aim {
        Aim::Load => (Family::Chaos, TallyOptions::default()),
        Aim::Time => ([Family::Dynamic, Family::Ties, Family::Routers][seed as usize % 3], exact()),
    };
    let mut best = network(family, seed, options);
    let mut most = judge(seed, 0, &best, aim);
    let first = most;
    for step in 1..=steps {
        let mut tried = best.clone();
        for _ in 0..=draw.below(3) {
            mutate(&mut tried, aim, &mut draw);
        }
        let score = judge(seed, step, &tried, aim);
        if score >= most {
            (best, most) = (tried, score);
        }
    }
    eprintln!("climb {seed} for {aim:?}: from {first:.4} to {most:.4} in {steps} steps");
}

/// Badness of a network; the proved properties must hold in each.
fn judge(seed: u64, step: u64, network: &Network, aim: Aim) -> f64 {
    let (near, lasts) = match aim {
        Aim::Load => (1e-3, Duration::from_secs(30)),
        Aim::Time => (1e-9, Duration::from_secs(12)),
    };
    let Outcome { error, took, bound, peak, violation, .. } = run(network, near, lasts);
    let shown = || format!("climb {seed}, step {step}:\n{network:#?}");
    assert_eq!(violation, None, "{}", shown());
    assert!(error <= near, "{error:.1e} C off at the end; {}", shown());
    match aim {
        Aim::Load => peak,
        Aim::Time => {
            assert!(took <= bound, "took {took}, bound {bound}; {}", shown());
            took.as_secs_f64() / bound.as_secs_f64()
        }
    }
}

fn mutate(network: &mut Network, aim: Aim, draw: &mut Draw) {
    if network.plans.is_empty() {
        return;
    }
    let may_lose = matches!(aim, Aim::Load);
    let session = draw.below(network.plans.len());
    let plan = &mut network.plans[session];
    match draw.below(if may_lose { 11 } else { 7 }) {
        0 => {
            let way = draw.below(plan.ways.len());
            plan.ways[way].forward = scaled(plan.ways[way].forward, draw);
        }
        1 => {
            let way = draw.below(plan.ways.len());
            plan.ways[way].back = scaled(plan.ways[way].back, draw);
        }
        2 => plan.opens = moved(plan.opens, draw),
        3 => {
            let at = plan.opens + draw.span(0.0, 1500.0);
            let bps = if draw.chance(0.4) { f64::INFINITY } else { (draw.unit().powi(3) * GBPS).round() };
            plan.demands.push((at, bps));
            plan.demands.sort_by_key(|(at, _)| *at);
            if plan.demands.len() > 6 {
                plan.demands.remove(draw.below(6));
            }
        }
        4 => plan.closes = draw.chance(0.3).then(|| plan.opens + draw.span(10.0, 800.0)),
        5 => {
            let resource = draw.below(network.resources.len());
            let resource = &mut network.resources[resource];
            resource.interval = draw.span(10.0, 50.0);
            resource.phase = draw.span(0.0, resource.interval.as_secs_f64() * 1e3);
        }
        6 => {
            let resource = draw.below(network.resources.len());
            network.resources[resource].capacity_bps = ((0.1 + 0.9 * draw.unit()) * GBPS).round();
        }
        7 => network.seed = network.seed.wrapping_add(1 + draw.below(1000) as u64),
        8 => (network.loss, network.late) = (0.3 * draw.unit(), draw.span(0.0, 100.0)),
        9 => network.reacts = !network.reacts,
        _ => {
            let remotes: Vec<usize> =
                (0..network.resources.len()).filter(|at| !network.resources[*at].is_source).collect();
            let at = Time::ZERO + draw.span(200.0, 3000.0);
            network.changes.retain(|(_, change)| !matches!(change, Change::Restart(_)));
            if draw.chance(0.7) {
                network.changes.push((at, Change::Restart(remotes[draw.below(remotes.len())])));
            }
        }
    }
    // A session moved past its own end would never end, and the optimum would be another network's.
    let plan = &mut network.plans[session];
    plan.closes = plan.closes.filter(|at| *at > plan.opens);
}

/// From a fifth to five times as long, at most 200 ms.
fn scaled(span: Duration, draw: &mut Draw) -> Duration {
    let factor = 5_f64.powf(2.0 * draw.unit() - 1.0);
    Duration::from_nanos(((span.as_nanos() as f64 * factor) as u64).clamp(50_000, 200_000_000))
}

/// Up to 100 ms earlier or later.
fn moved(at: Time, draw: &mut Draw) -> Time {
    let later = at + draw.span(0.0, 200.0);
    Time::from_nanos(later.as_nanos().saturating_sub(100_000_000))
}

fn climbs(aim: Aim, seeds: std::ops::Range<u64>) {
    let first = number("FAIRWAVE_SEED").unwrap_or(0);
    let steps = number("FAIRWAVE_CLIMB").unwrap_or(15);
    for seed in seeds {
        climb(first + seed, aim, steps);
    }
}

#[test]
fn adversary__never_loads_more_than_the_headroom_allows() {
    climbs(Aim::Load, 0..4);
}

#[test]
fn adversary__never_takes_longer_than_the_bound() {
    climbs(Aim::Time, 0..6);
}
