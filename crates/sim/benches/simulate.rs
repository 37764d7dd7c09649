//! Packet hops per second: `cargo bench -p fairwave-sim`.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fairwave_sim::{Settings, simulate};

mod cases;

fn hops(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet hops");
    group.sample_size(10);
    for name in cases::NAMES {
        let scenario = cases::scenario(name, 4);
        let run = || simulate(&scenario, Settings::default()).expect("the cases run");
        group.throughput(Throughput::Elements(run().summary.engine.packet_hops));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, hops);
criterion_main!(benches);
