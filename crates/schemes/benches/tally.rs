//! Time of one control interval of Tally at a node: `cargo bench -p fairwave-schemes --bench tally`.
//!
//! "news": the capacity changed, so that every grant and every offer is sent again. "one": the claim of one session
//! changed. "none": nothing changed.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use fairwave_schemes::node::tally::{ClaimMessage, GrantTo, SessionTerms, SinkNode, SourceNode, TallyOptions};
use fairwave_units::{Duration, Rate, Time};

const SIZES: [u64; 3] = [1000, 10_000, 100_000];
const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn claim(number: u64, claim: Option<Rate>, in_force: u64) -> ClaimMessage {
    let (is_application_limited, is_bye, wants_answer) = (false, false, false);
    ClaimMessage { number, claim, is_application_limited, is_bye, wants_answer, in_force, rate_in_force: Rate::ZERO }
}

/// Demand of a session: every tenth is unlimited, the others have different finite demands.
fn demand(session: u64) -> Option<Rate> {
    (!session.is_multiple_of(10)).then(|| Rate::nearest_bps(1e4 + (session * 7919 % 10_007) as f64 * 1e2))
}

/// A sink in equilibrium: every session was granted its rate and has confirmed it.
fn sink(sessions: u64) -> SinkNode {
    let mut sink = SinkNode::new(Rate::gbps(1.0), TallyOptions::default());
    let mut out: Vec<GrantTo> = Vec::new();
    for (round, in_force) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        for session in 0..sessions {
            sink.on_claim(at(20 * round), session, &TERMS, &claim(round, demand(session), in_force), &mut out);
        }
        sink.tick(at(20 * round), &mut out);
        // All sessions use their grants.
        for session in 0..sessions {
            sink.received(session, sink.granted(session).map_or(0.0, Rate::as_bps) * 0.02);
        }
    }
    sink
}

fn source(sessions: u64) -> SourceNode {
    let mut source = SourceNode::new(Rate::gbps(1.0), TallyOptions::default());
    let mut out = Vec::new();
    for session in 0..sessions {
        source.open(at(0), session, TERMS, demand(session), 0, &mut out);
    }
    source.tick(at(20), &mut out);
    source
}

fn ticks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tally sink");
    group.sample_size(20);
    for size in SIZES {
        let rest = sink(size);
        let mut news = rest.clone();
        news.set_capacity(Rate::mbps(900.0));
        let mut one = rest.clone();
        one.on_claim(at(81), 0, &TERMS, &claim(5, Some(Rate::mbps(1.0)), 3), &mut Vec::new());
        // Like a driver, reuse the message vector, whose memory has been written to.
        let used = || {
            let mut out = Vec::with_capacity(size as usize);
            news.clone().tick(at(100), &mut out);
            out.clear();
            out
        };
        for (name, sink) in [("news", &news), ("one", &one), ("none", &rest)] {
            group.bench_function(BenchmarkId::new(name, size), |bench| {
                bench.iter_batched_ref(
                    || (sink.clone(), used()),
                    |(sink, out)| sink.tick(black_box(at(100)), out),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
    let mut group = criterion.benchmark_group("tally source");
    group.sample_size(20);
    for size in &SIZES[..2] {
        let rest = source(*size);
        let mut news = rest.clone();
        news.set_capacity(Rate::mbps(900.0));
        let used = || {
            let mut out = Vec::with_capacity(*size as usize);
            news.clone().tick(at(100), &mut out);
            out.clear();
            out
        };
        for (name, source) in [("news", &news), ("none", &rest)] {
            group.bench_function(BenchmarkId::new(name, size), |bench| {
                bench.iter_batched_ref(
                    || (source.clone(), used()),
                    |(source, out)| source.tick(black_box(at(100)), out),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, ticks);
criterion_main!(benches);
