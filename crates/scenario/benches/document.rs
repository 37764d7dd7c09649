//! From text to a scenario: `cargo bench -p fairwave-scenario --bench document`. Throughput is in sessions per second.
//!
//! Three forms of 200 000 sessions: `[generate]`, ranges, and a table for each (14 MB of text, 300 000 tables).

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fairwave_scenario::{Document, Scenario, Selection, allocate};

const SESSIONS: u64 = 200_000;

const GENERATED: &str = r#"
name = "generated"
duration = "10 s"
[generate]
kind = "lambda"
sources = 50_000
sinks = 50_000
sessions_per_source = 4
capacity = "1 Gb/s"
rtt = ["1 ms", "100 ms"]
interval = ["10 ms", "100 ms"]
alpha = [0.05, 0.15]
beta = [0.05, 0.15]
"#;

const RANGES: &str = r#"
name = "ranges"
duration = "10 s"
[[node]]
name = "s{1..99900}"
capacity = "1 Gb/s"
[[node]]
name = "d{1..100}"
capacity = "1 Gb/s"
[[session]]
from = "s{1..2000}"
to = "d{1..100}"
rtt = { uniform = ["1 ms", "100 ms"] }
"#;

/// A table for each node and session.
fn written_out() -> String {
    let mut text = "name = \"written-out\"\nduration = \"10 s\"\n".to_owned();
    for node in 0..SESSIONS / 2 {
        let _ = write!(text, "[[node]]\nname = \"n{node}\"\ncapacity = \"1 Gb/s\"\n");
    }
    for session in 0..SESSIONS {
        // 7919 is a prime that does not divide 50 000: sinks come in scattered order.
        let (from, to) = (session % 50_000, 50_000 + session * 7919 % 50_000);
        let _ = write!(text, "[[session]]\nfrom = \"n{from}\"\nto = \"n{to}\"\nrtt = \"{} ms\"\n", session % 90 + 1);
    }
    text
}

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("bench.toml", text.as_bytes()).expect("the bench's own text is TOML");
    let cases = document.cases(&Selection::default()).expect("one case");
    document.build(&cases[0]).expect("the bench's own scenario is valid").0
}

fn documents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse and build");
    group.sample_size(10).measurement_time(Duration::from_secs(5)).throughput(Throughput::Elements(SESSIONS));
    for (name, text) in
        [("generated", GENERATED.to_owned()), ("ranges", RANGES.to_owned()), ("written out", written_out())]
    {
        assert_eq!(scenario(&text).sessions.len() as u64, SESSIONS);
        group.bench_function(name, |bencher| bencher.iter(|| scenario(black_box(&text))));
    }
    let generated = scenario(GENERATED);
    group.bench_function("allocate generated", |bencher| bencher.iter(|| allocate(black_box(&generated), None)));
}

criterion_group!(benches, documents);
criterion_main!(benches);
