//! Speed of the max-min optimum on one core, index building included.
//!
//! `cargo bench -p fairwave-schemes --bench max_min` runs all; a part of a name as an argument selects. The time is
//! that of one call of `max_min` on borrowed arrays.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use fairwave_schemes::global::{Paths, Problem, max_min};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

criterion_group!(benches, lambda, chain, hub, order);
criterion_main!(benches);

/// A network and its sessions, each with `width` resources.
struct Network {
    capacities: Vec<f64>,
    width: usize,
    resources: Vec<u32>,
    demands: Option<Vec<f64>>,
}

/// Random lambda networks: each source in turn opens a session to a random sink; as many sinks as sources.
fn lambda(criterion: &mut Criterion) {
    for sessions in [2_000, 200_000, 2_000_000] {
        run(criterion, "lambda, 4 per source", sessions, || random(sessions, 4));
        run(criterion, "lambda, 4 per source, capacities vary", sessions, || varied(random(sessions, 4)));
    }
    let sessions = 2_000_000;
    run(criterion, "lambda, 4 per source, shuffled", sessions, || shuffled(random(sessions, 4)));
    run(criterion, "lambda, 4 per source, half with demands", sessions, || modest(random(sessions, 4)));
    run(criterion, "lambda, 64 per source", sessions, || random(sessions, 64));
}

/// A chain of bottlenecks: resource i has capacity 1 + i and the sessions i - 1 and i.
fn chain(criterion: &mut Criterion) {
    for sessions in [200_000, 2_000_000] {
        run(criterion, "chain", sessions, || {
            let capacities = (0..=sessions).map(|i| 1.0 + i as f64).collect();
            let resources = (0..sessions as u32).flat_map(|i| [i, i + 1]).collect();
            Network { capacities, width: 2, resources, demands: None }
        });
    }
}

/// Worst case of a descent: all sessions share a hub, whose level rises over another tenth of the leaves each time that
/// the descent has visited all of them.
fn hub(criterion: &mut Criterion) {
    for sessions in [200_000, 2_000_000] {
        run(criterion, "hub", sessions, || {
            let mut capacities = Vec::with_capacity(sessions + 1);
            let mut rest = sessions as f64;
            let (mut before, mut level) = (0.0, 1.0);
            while capacities.len() < sessions {
                let left = sessions - capacities.len();
                let batch = left.div_ceil(10);
                // Just above the previous level, so that the next rise is as large as possible.
                let leaf = if before == 0.0 { 0.1 } else { before + (level - before) * 1e-3 };
                capacities.extend(std::iter::repeat_n(leaf, batch));
                rest -= leaf * batch as f64;
                (before, level) = (level, if left > batch { rest / (left - batch) as f64 } else { level });
            }
            // The leaves that are found last come first.
            capacities.reverse();
            capacities.push(sessions as f64);
            let resources = (0..sessions as u32).flat_map(|i| [i, sessions as u32]).collect();
            Network { capacities, width: 2, resources, demands: None }
        });
    }
}

/// The general algorithm for paths of any length, which fills in the order of the levels, O(K log N): chains and random
/// paths of three resources.
fn order(criterion: &mut Criterion) {
    for sessions in [20_000, 200_000, 2_000_000] {
        run(criterion, "three resources, chain", sessions, || {
            let capacities = (0..sessions + 2).map(|i| 1.0 + i as f64).collect();
            let resources = (0..sessions as u32).flat_map(|i| [i, i + 1, i + 2]).collect();
            Network { capacities, width: 3, resources, demands: None }
        });
        run(criterion, "three resources, random", sessions, || {
            let mut random = Pcg64::seed_from_u64(3);
            let third = sessions / 4;
            let resources = (0..sessions)
                .flat_map(|k| [k / 4, third + below(&mut random, third), 2 * third + below(&mut random, third)]);
            let resources = resources.map(|resource| resource as u32).collect();
            varied(Network { capacities: vec![1e9; 3 * third], width: 3, resources, demands: None })
        });
    }
}

fn run(criterion: &mut Criterion, name: &str, sessions: usize, network: impl FnOnce() -> Network) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(sessions as u64));
    // Flat: slow cases are not repeated in growing numbers.
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let mut network = Some(network);
    let mut built = None;
    group.bench_function(BenchmarkId::from_parameter(sessions), |bencher| {
        // Built only if it is selected.
        let network = built.get_or_insert_with(|| network.take().expect("built once")());
        let problem = Problem {
            demands_bps: network.demands.as_deref(),
            ..Problem::new(&network.capacities, Paths::Rows { width: network.width, resources: &network.resources })
        };
        bencher.iter(|| max_min(black_box(&problem)).expect("a valid network"));
    });
}

fn random(sessions: usize, per_source: usize) -> Network {
    let mut random = Pcg64::seed_from_u64(1);
    let sources = sessions / per_source;
    let ends = (0..sessions).flat_map(|k| [k / per_source, sources + below(&mut random, sources)]);
    let resources = ends.map(|end| end as u32).collect();
    Network { capacities: vec![1e9; 2 * sources], width: 2, resources, demands: None }
}

/// Capacities from 1 to 10 Gb/s.
fn varied(mut network: Network) -> Network {
    let mut random = Pcg64::seed_from_u64(2);
    network.capacities.fill_with(|| 1e9 * (1.0 + 9.0 * unit(&mut random)));
    network
}

/// Sessions in random order.
fn shuffled(mut network: Network) -> Network {
    let mut random = Pcg64::seed_from_u64(4);
    let (rows, _) = network.resources.as_chunks_mut::<2>();
    for place in (1..rows.len()).rev() {
        rows.swap(place, below(&mut random, place + 1));
    }
    network
}

/// Every other session, at random, has a demand between 0 and twice its share at its source.
fn modest(mut network: Network) -> Network {
    let mut random = Pcg64::seed_from_u64(5);
    let sessions = network.resources.len() / 2;
    let mut demand = || if unit(&mut random) < 0.5 { 5e8 * unit(&mut random) } else { f64::INFINITY };
    network.demands = Some((0..sessions).map(|_| demand()).collect());
    network
}

fn below(random: &mut Pcg64, limit: usize) -> usize {
    ((u128::from(random.next_u64()) * limit as u128) >> 64) as usize
}

/// Uniform in [0, 1).
fn unit(random: &mut Pcg64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
