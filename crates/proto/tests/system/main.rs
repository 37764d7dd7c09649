//! Whole hosts on a virtual network, on which every packet is bytes: all that can go wrong does, and it must not
//! matter.
//!
//! A world is a function of its seed; a failure prints it, and this runs it again:
//!
//! ```text
//! FAIRWAVE_SEED=123 cargo test --release --package fairwave-proto --test system -- --nocapture
//! ```
//!
//! FAIRWAVE_WORLDS sets the number of fixed and of fresh seeds for small worlds; large worlds run a twelfth of it.

#![allow(non_snake_case, missing_docs)]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a fresh seed, and settings of a run")]

mod bad_paths;
mod births;
mod flow_rates;
mod hardships;
#[path = "../../examples/hardships/lane.rs"]
mod lane;
mod lies;
mod memory;
#[path = "../network/mod.rs"]
mod network;
mod one_machine;
mod pauses;
mod plan;
#[path = "../../examples/bad_paths/road.rs"]
mod road;
mod shared_paths;
mod silences;
mod tally;
mod tickets;
mod trick;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{SystemTime, UNIX_EPOCH};

use network::{Network, test_random};
use plan::Rules;

/// Seeds of each kind of world, besides a fresh one each.
const WORLDS: u64 = 12;
/// Seeds that fail until the rest is given up.
const MAX_FAILURES: usize = 10;

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text}")))
}

/// The seed to replay; or some that are always the same and as many fresh ones.
fn seeds(count: u64) -> Vec<u64> {
    if let Some(seed) = env("FAIRWAVE_SEED") {
        return vec![seed];
    }
    let count = env("FAIRWAVE_WORLDS").map_or(count, |worlds| (worlds * count / WORLDS).max(1));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let fresh = test_random::mixed(now) >> 32;
    (0..count).chain(fresh..fresh + count).collect()
}

/// Judges the world of each seed; the first ones that fail are named at the end.
fn each(name: &str, count: u64, judge: impl Fn(u64)) {
    count_memory();
    let seeds = seeds(count);
    let mut failed = Vec::new();
    for &seed in &seeds {
        if catch_unwind(AssertUnwindSafe(|| judge(seed))).is_err() {
            failed.push(seed);
            if failed.len() >= MAX_FAILURES {
                break;
            }
        }
    }
    let commands = failed.iter().map(|seed| {
        format!(
            "FAIRWAVE_SEED={seed} cargo test --release --package fairwave-proto --test system {name} -- --nocapture\n"
        )
    });
    assert!(
        failed.is_empty(),
        "of {} seeds from {} on, these failed:\n{}",
        seeds.len(),
        seeds[0],
        commands.collect::<String>()
    );
}

/// Worlds weigh what their hosts hold.
fn count_memory() {
    network::LIVE_BYTES.get_or_init(|| memory::live);
}

#[test]
fn worlds__every_honest_transfer_completes() {
    each("worlds__every_honest_transfer_completes", WORLDS, |seed| {
        let mut world = plan::honest(seed);
        world.run();
        report(&world);
    });
}

#[test]
fn worlds__hostile_peers_do_no_harm() {
    each("worlds__hostile_peers_do_no_harm", WORLDS, |seed| {
        let mut world = plan::hostile(seed, Rules::Measured);
        world.run();
        report(&world);
    });
}

fn report(world: &Network) {
    if env("FAIRWAVE_SEED").is_some() {
        let done: Vec<_> = world.flows.iter().map(|flow| (flow.completed, flow.attempts)).collect();
        println!("seed {}: {} {:?} {done:?}", world.seed, world.now, world.counts);
    }
}
