//! Cost of measurement noise, of a sink that stalls, and of a path that fails for two seconds, with the protocol's
//! measured rates ("sent"), and with those that a sink would have if it counted what it reads ("read").
//!
//! `cargo run --release -p fairwave-proto --example hardships`

mod lane;
#[path = "../../tests/network/mod.rs"]
mod network;

use fairwave_units::{Duration, Time};
use lane::{Hardship, Lane, Meter, jain};

/// When it is steady, in seconds.
const STEADY: (usize, usize) = (5, 25);
/// When the blackhole starts and ends, and until when it is judged.
const HOLE: (u64, u64) = (10, 12);
const AROUND_HOLE: (usize, usize) = (10, 20);

fn main() {
    println!("what       meter  used %  goodput %  Jain    peak load  queue ms  lost  95 % again after");
    for percent in [0, 1, 2, 5, 10] {
        let hardship = Hardship { noise: f64::from(percent) / 100.0, ..Hardship::default() };
        rows(&format!("noise {percent:2} %"), hardship, STEADY);
    }
    for stall_ms in [20, 50, 100, 200, 500] {
        let hardship = Hardship { stall: Duration::from_millis(stall_ms), ..Hardship::default() };
        rows(&format!("stall {stall_ms:3}"), hardship, STEADY);
    }
    let blackhole = Some((Time::from_secs(HOLE.0), Time::from_secs(HOLE.1)));
    rows("blackhole", Hardship { blackhole, ..Hardship::default() }, AROUND_HOLE);
}

/// Runs a hardship with both meters, and prints what came of it from one second to another.
fn rows(what: &str, hardship: Hardship, (from, to): (usize, usize)) {
    for (meter, name) in [(Meter::Sent, "sent"), (Meter::Read, "read")] {
        let outcome = Lane::run(meter, hardship, 1, Time::from_secs(to as u64));
        let goodputs = outcome.goodputs(from, to);
        print!(
            "{what:10} {name:5}  {:6.2}  {:9.2}  {:.4}  {:9.3}  {:8.2}  {:4}",
            100.0 * outcome.used(from, to),
            100.0 * goodputs.iter().sum::<f64>(),
            jain(&goodputs),
            outcome.peak(from, to),
            outcome.longest_queue(from, to).as_secs_f64() * 1e3,
            outcome.lost(),
        );
        if let Some((_, end)) = hardship.blackhole {
            let again = outcome.full_after_s(end.as_secs_f64() as usize);
            print!("  {}", again.map_or_else(|| "never".to_owned(), |again_s| format!("{again_s:.1} s")));
        }
        println!();
    }
}
