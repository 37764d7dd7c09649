//! Packet hops per second of one simulation on one core.
//! usage: cargo run --release -p fairwave-sim --example speed [constant|sack|lossy|many|holes|whole|xcp|gtp|gtp-wire]

#![expect(clippy::disallowed_types, reason = "this program measures the wall time of a core")]

use std::time::Instant;

use fairwave_sim::{Settings, simulate};

#[path = "../benches/cases/mod.rs"]
mod cases;

fn main() {
    for name in cases::NAMES {
        if std::env::args().nth(1).is_some_and(|wanted| wanted != name) {
            continue;
        }
        let scenario = cases::scenario(name, 0);
        let started = Instant::now();
        let run = simulate(&scenario, Settings::default()).expect("the cases run");
        let wall_s = started.elapsed().as_secs_f64();
        let hops = run.summary.engine.packet_hops as f64;
        let packets = run.summary.sessions.iter().map(|session| session.sent_packets).sum::<u64>() as f64;
        println!(
            "{name}: {:.1} M hops/s, {:.2} M data packets/s ({hops} hops, {wall_s:.2} s)",
            hops / wall_s / 1e6,
            packets / wall_s / 1e6
        );
    }
}
