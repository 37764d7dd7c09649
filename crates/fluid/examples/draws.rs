//! Runs random lambda networks as in Wu 2007, VII.16-18, and prints time and peak memory:
//! `cargo run --release -p fairwave-fluid --example draws -- SOURCES SESSIONS_PER_SOURCE SECONDS DRAWS THREADS`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an example drives the core: it may look at the clock"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fairwave_fluid::{Settings, simulate};
use fairwave_scenario::{Document, Scenario, Selection};

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a whole number")).collect();
    let [sources, each, seconds, draws, threads] = numbers[..] else {
        eprintln!("usage: draws SOURCES SESSIONS_PER_SOURCE SECONDS DRAWS THREADS");
        std::process::exit(2);
    };
    let (next, begin) = (AtomicU64::new(1), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > draws {
                        break;
                    }
                    let scenario = scenario(sources, each, seconds, seed);
                    let begin = Instant::now();
                    let metrics = match simulate(&scenario, Settings::default()) {
                        Ok(run) => run.summary,
                        Err(error) => panic!("{error}"),
                    };
                    let wall = begin.elapsed().as_secs_f64();
                    let (events, distance) = (metrics.engine.events, metrics.metrics.distance_final_bps);
                    println!("seed {seed}: {wall:.3} s, {events} events, final distance {distance:.0} bit/s");
                }
            });
        }
    });
    println!("{draws} draws: {:.2} s, peak memory {}", begin.elapsed().as_secs_f64(), peak_memory());
}

fn scenario(sources: u64, each: u64, seconds: u64, seed: u64) -> Scenario {
    let text = format!(
        r#"
        name = "draw"
        duration = "{seconds} s"
        seed = {seed}
        scheme = "gtp"
        [generate]
        kind = "lambda"
        sources = {sources}
        sinks = {sources}
        sessions_per_source = {each}
        capacity = "1 Gb/s"
        rtt = ["1 ms", "100 ms"]
        interval = ["10 ms", "100 ms"]
        alpha = [0.05, 0.15]
        beta = [0.05, 0.15]
        "#
    );
    let document = Document::parse("draw", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let cases = document.cases(&Selection::default()).unwrap_or_else(|error| panic!("{error}"));
    document.build(&cases[0]).unwrap_or_else(|error| panic!("{error}")).0
}

/// Peak memory from Linux; unknown on other systems.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
