//! Time per row of one node's tick: `cargo bench -p fairwave-schemes --bench allocator`; the throughput is rows a
//! second.
//!
//! Two states of a table: "steady", where each call finds the rates that the last one granted, with slight noise (the
//! usual case in a simulator), and "shuffled", where every call gets an unrelated table.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fairwave_schemes::node::{Charny, Groups, Gtp, Hou, Reading, gtp_options};
use fairwave_schemes::scheme::Options;
use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::{Duration, Rate};

const SIZES: [usize; 5] = [2, 4, 64, 1024, 100_000];

fn allocators(criterion: &mut Criterion) {
    let mut safe = Options::default();
    gtp_options::DRAIN.set(&mut safe, true);
    gtp_options::BUDGET.set(&mut safe, Some(1.05));
    for (name, rule) in [
        ("gtp", Box::new(Gtp::default()) as Box<dyn RateAllocator>),
        ("gtp with drain and budget", Box::new(Gtp::new(Reading::Adopted, &safe))),
        ("abr-charny", Box::new(Charny::default())),
        ("abr-hou", Box::new(Hou::default())),
    ] {
        bench(criterion, name, rule, 1);
    }
    bench(criterion, "groups, one", Box::new(Groups::default()), 1);
    bench(criterion, "groups, sixteen", Box::new(Groups::default()), 16);
}

fn bench(criterion: &mut Criterion, name: &str, mut rule: Box<dyn RateAllocator>, owners: u32) {
    let mut group = criterion.benchmark_group(name);
    for size in SIZES {
        group.throughput(Throughput::Elements(size as u64));
        for (state, mut tables) in [("steady", steady(size)), ("shuffled", shuffled(size))] {
            for (at, row) in tables.iter_mut().flat_map(|table| (0..).zip(table)) {
                row.terms.group = at % owners;
            }
            let mut grants = vec![Grant::default(); size];
            let interval = Interval { capacity: Rate::gbps(1.0), elapsed: Duration::from_millis(50) };
            let mut turn = 0;
            group.bench_function(BenchmarkId::new(state, size), |bencher| {
                bencher.iter(|| {
                    turn = (turn + 1) % tables.len();
                    rule.allocate(&interval, black_box(&tables[turn]), &mut grants);
                    black_box(&mut grants);
                });
            });
        }
    }
    group.finish();
}

/// Successive tables of one node: half of the sessions share its capacity, half are limited elsewhere.
fn steady(size: usize) -> Vec<Vec<Row>> {
    let mut random = Random(7);
    let fair = 1e9 / size as f64;
    let rates: Vec<f64> = (0..size).map(|k| if k % 2 == 0 { fair } else { fair * random.unit() }).collect();
    (0..7)
        .map(|_| {
            let noisy = rates.iter().map(|rate| rate * (1.0 + 1e-12 * random.unit()));
            noisy.map(|rate| Row::new(Rate::nearest_bps(rate), 0.1, 0.2)).collect()
        })
        .collect()
}

/// Unrelated tables.
fn shuffled(size: usize) -> Vec<Vec<Row>> {
    let mut random = Random(9);
    let mut table =
        || (0..size).map(|_| Row::new(Rate::nearest_bps(2e9 / size as f64 * random.unit()), 0.1, 0.2)).collect();
    (0..if size < 100 { 101 } else { 7 }).map(|_| table()).collect()
}

/// Marsaglia's xorshift, good enough to fill tables.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

criterion_group!(benches, allocators);
criterion_main!(benches);
