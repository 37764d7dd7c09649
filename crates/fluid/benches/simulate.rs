//! One draw of Wu 2007, VII.16-18: `cargo bench -p fairwave-fluid`.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fairwave_fluid::{Settings, simulate};
use fairwave_scenario::{Document, Selection};

fn draws(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lambda, 4 sessions a source, 15 s");
    group.sample_size(10);
    for sources in [16, 64, 512] {
        let text = format!(
            "name = \"draw\"\nduration = \"15 s\"\nscheme = \"gtp\"\n[generate]\nkind = \"lambda\"\n\
             sources = {sources}\nsinks = {sources}\nsessions_per_source = 4\ncapacity = \"1 Gb/s\"\n\
             rtt = [\"1 ms\", \"100 ms\"]\ninterval = [\"10 ms\", \"100 ms\"]\n\
             alpha = [0.05, 0.15]\nbeta = [0.05, 0.15]\n"
        );
        let document = Document::parse("draw", text.as_bytes()).expect("a well-formed file");
        let cases = document.cases(&Selection::default()).expect("one case");
        let scenario = document.build(&cases[0]).expect("a valid scenario").0;
        group.bench_function(BenchmarkId::new("nodes", 2 * sources), |bencher| {
            bencher.iter(|| simulate(&scenario, Settings::default()).expect("it runs in the fluid model"));
        });
    }
    group.finish();
}

criterion_group!(benches, draws);
criterion_main!(benches);
