//! Figures of Wu 2007, chapter VII, compared with the numbers of an independent fluid model.

use fairwave_scenario::random::stream;
use fairwave_scenario::{Demand, Run, Scenario};
use fairwave_units::{Duration, Rate};

use super::random_networks::{Network, millis, number};
use crate::{Record, Settings, simulate};

const DISTANCES: Record = Record { rates: false, queues: false, windows: false, distances: true };

fn run(scenario: &Scenario, record: Record) -> Run {
    simulate(scenario, Settings { record, ..Settings::default() }).unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], values[middle]) } else { values[middle] }
}

/// The end of the first sample from which on the distance stays below `share` of the max-min vector.
fn settled_s(run: &Run, sample: Duration, share: f64) -> f64 {
    let mut pairs = run.distances_bps.iter().zip(&run.max_min_norms_bps);
    let last_far = pairs.rposition(|(distance, norm)| *distance >= share * norm);
    last_far.map_or(0, |at| at + 1) as f64 * sample.as_secs_f64()
}

/// The mean over phases of the time until a single session stays within `share` of 1 Gb/s, RTT = interval = 50 ms.
fn single_s(alpha: f64, beta: f64, shares: [f64; 3]) -> [f64; 3] {
    const PHASES: u64 = 40;
    let mut sums = [0.0; 3];
    for seed in 1..=PHASES {
        let options = [("alpha", number(alpha)), ("beta", number(beta)), ("interval", millis(50))];
        let mut network = Network::new(12).scheme("gtp", &options).seed(seed);
        network.0.sample = Duration::from_millis(1);
        let network = network.node("s", 1000.0).node("d", 1000.0).session("s", "d", 50);
        let run = run(&network.0, DISTANCES);
        for (sum, share) in sums.iter_mut().zip(shares) {
            *sum += settled_s(&run, network.0.sample, share) / PHASES as f64;
        }
    }
    sums
}

#[test]
fn single_session__times_of_each_alpha_and_beta() {
    // An independent exact fluid model: t95, t99, exact in seconds.
    for (alpha, beta, expected) in [
        (0.025, 0.2, [9.35, 10.15, 10.35]),
        (0.05, 0.2, [4.65, 5.05, 5.15]),
        (0.1, 0.2, [2.25, 2.45, 2.55]),
        (0.15, 0.2, [1.45, 1.65, 1.65]),
        (0.2, 0.2, [1.06, 1.16, 1.25]),
        (0.15, 0.05, [1.85, 2.35, 2.55]),
        (0.15, 0.1, [1.75, 2.05, 2.05]),
        (0.15, 0.3, [1.26, 1.35, 1.45]),
    ] {
        let ours = single_s(alpha, beta, [0.05, 0.01, 1e-9]);
        for (ours, expected) in ours.iter().zip(expected) {
            assert!(
                (ours / expected - 1.0_f64).abs() < 0.03,
                "alpha {alpha} beta {beta}: {ours} instead of {expected}"
            );
        }
    }
}

#[test]
fn five_demands__fill_the_sink() {
    let options = [("alpha", number(0.15)), ("beta", number(0.2))];
    for seed in 1..=20 {
        let mut network = Network::new(10).scheme("gtp", &options).seed(seed).node("d", 1000.0);
        for (n, mbps) in [50.0, 100.0, 200.0, 300.0, 400.0].into_iter().enumerate() {
            let name = format!("s{n}");
            network = network.node(&name, 1000.0).session_with(&name, "d", 50, |session| {
                session.demand = Demand::Constant(Rate::mbps(mbps));
            });
        }
        network.0.sample = Duration::from_millis(10);
        let run = run(&network.0, DISTANCES);
        let finals: Vec<_> = run.summary.sessions.iter().map(|session| session.final_rate_bps.round() / 1e6).collect();
        assert_eq!(finals, [50.0, 100.0, 200.0, 300.0, 350.0]);
        assert!(run.summary.metrics.distance_final_bps < 1e-6, "seed {seed} is not at rest");
    }
}

/// Four sources, four sinks, a session for every pair, 500 Mb/s; RTT 1-100 ms, interval 10-100 ms (VII.15).
fn mesh(beta: f64, seed: u64) -> Network {
    let mut draw = stream(seed, "mesh");
    let mut millis = |least: f64, most: f64| Duration::from_secs_f64(draw.uniform(least, most) / 1e3).unwrap();
    let mut network = Network::new(15).scheme("gtp", &[("alpha", number(0.1)), ("beta", number(beta))]).seed(seed);
    for n in 0..4 {
        network = network.node(&format!("s{n}"), 500.0).node(&format!("d{n}"), 500.0);
    }
    for node in &mut network.0.nodes {
        node.interval = Some(millis(10.0, 100.0));
    }
    for pair in 0..16 {
        let rtt = millis(1.0, 100.0);
        network =
            network.session_with(&format!("s{}", pair / 4), &format!("d{}", pair % 4), 0, |session| session.rtt = rtt);
    }
    network.0.sample = Duration::from_millis(10);
    network
}

/// Time until the largest distance of a session from its max-min rate is below 1e-6 C: here by the 2-norm, which is at
/// least that.
#[test]
fn full_mesh__time_to_the_millionth() {
    for (beta, expected) in [(0.2, 4.21), (0.05, 6.35)] {
        let times = (1..=100).map(|seed| {
            let network = mesh(beta, seed);
            let run = run(&network.0, DISTANCES);
            // 1e-6 of C = 500 Mb/s; the max-min vector is 16 times 125 Mb/s, its norm 500 Mb/s.
            settled_s(&run, network.0.sample, 1e-6)
        });
        let ours = median(times.collect());
        assert!((ours / expected - 1.0_f64).abs() < 0.03, "beta {beta}: {ours} instead of {expected}");
    }
}

/// `sources` sources and as many sinks of 1 Gb/s, four sessions per source to sinks drawn with replacement; RTT 1-100
/// ms, interval 10-100 ms, alpha and beta .05-.15 per node (VII.16-18).
pub(crate) fn draw(sources: usize, seed: u64) -> Network {
    let mut draw = stream(seed, "draw");
    let mut network = Network::new(15).seed(seed);
    for end in ["s", "d"] {
        for n in 0..sources {
            network = network.node(&format!("{end}{n}"), 1000.0);
        }
    }
    for node in &mut network.0.nodes {
        node.interval = Duration::from_secs_f64(draw.uniform(0.01, 0.1));
        node.alpha = Some(draw.uniform(0.05, 0.15));
        node.beta = Some(draw.uniform(0.05, 0.15));
    }
    for session in 0..4 * sources {
        let rtt = Duration::from_secs_f64(draw.uniform(0.001, 0.1)).unwrap();
        let sink = draw.below(sources as u64);
        network =
            network.session_with(&format!("s{}", session / 4), &format!("d{sink}"), 0, |session| session.rtt = rtt);
    }
    network.0.sample = Duration::from_millis(10);
    network
}

/// The times of an independent exact fluid model within 3 %, on three draws of 1024 nodes, which hardly differ from
/// each other; the catalogue's claims for Figs. VII.16-18 judge 30 draws of each size.
#[test]
fn draws__times_of_1024_nodes() {
    let runs: Vec<_> = (1..=3)
        .map(|seed| {
            let mut network = draw(512, seed);
            network.0.duration = Duration::from_secs(6);
            run(&network.0, DISTANCES)
        })
        .collect();
    for (share, expected) in [(0.1, 3.2), (0.05, 4.5)] {
        let ours = median(runs.iter().map(|run| settled_s(run, Duration::from_millis(10), share)).collect());
        assert!((ours / expected - 1.0_f64).abs() < 0.03, "D < {share}: {ours} s instead of {expected}");
    }
}
