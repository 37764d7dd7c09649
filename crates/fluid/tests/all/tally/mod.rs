//! Tally in random networks of the fluid model: never above the capacity and its headroom, at the optimum in bounded
//! time, and quiet from then on.
//!
//! Nine tenths of the networks are the same in every run; a tenth is new, and its seeds are printed. The long run:
//!
//! ```text
//! FAIRWAVE_FLUID_TALLY=100000 cargo test --release -p fairwave-fluid --test all tally:: -- --nocapture
//! ```
//!
//! A failure names its seed; `FAIRWAVE_SEED=17 FAIRWAVE_FLUID_TALLY=1` and the test's name replay it.

#![allow(non_snake_case, missing_docs)]

mod draw;
mod rounds;

use std::hash::{BuildHasher, RandomState};

use draw::{Family, Network, network};
use fairwave_fluid::{Record, Settings, simulate};
use fairwave_scenario::{Document, Run, Selection};
use rounds::bound_ms;

/// All of the largest capacity.
const FULL_BPS: f64 = 1e9;

/// Requirements of a family.
struct Demanded {
    /// A line of the scenario's options.
    options: &'static str,
    /// Maximum distance of the rates from the optimum from then on, in capacities (2-norm).
    near: f64,
    /// Duration of a network, and the time from which on it has to be near.
    duration_s: f64,
    near_from_s: f64,
    within_bound: bool,
}

/// The setting of the theorems: real numbers.
const THEORY: Demanded =
    Demanded { options: "exact = true\n", near: 1e-9, duration_s: 5.0, near_from_s: 4.5, within_bound: true };
/// The defaults. A residue within the deadband is sent after a lease, and everything else long before.
const SHIPPED: Demanded = Demanded { options: "", near: 1e-3, duration_s: 8.0, near_from_s: 7.0, within_bound: false };

/// Result of one network.
struct Outcome {
    /// Maximum distance at the end, in capacities.
    error: f64,
    /// Time from the last change until all rates stay near, and its bound.
    took_ms: f64,
    bound_ms: f64,
    peak: f64,
    complaints: Vec<String>,
}

fn outcome(family: Family, seed: u64, demanded: &Demanded) -> Outcome {
    let network = network(family, seed, demanded.duration_s, demanded.options);
    let run = run(&network.text);
    let away = |distance: &f64| *distance > demanded.near * FULL_BPS;
    let near_from = run.distances_bps.iter().rposition(away).map_or(0, |last| last + 1);
    // A sample is the state at its end, one every 10 ms.
    let took_ms = (near_from as f64 * 10.0 - network.changed_ms).max(0.0);
    let late = &run.distances_bps[(demanded.near_from_s * 100.0) as usize..];
    let error = late.iter().copied().fold(0.0, f64::max) / FULL_BPS;
    let peak = run.summary.metrics.peak_overload;
    let bound_ms = bound_ms(&network);
    let mut complaints = Vec::new();
    if error > demanded.near {
        complaints.push(format!("{error:.1e} C off after {} s", demanded.near_from_s));
    }
    if demanded.within_bound && took_ms > bound_ms + 10.0 {
        complaints.push(format!("took {took_ms} ms, bound {bound_ms} ms"));
    }
    if peak > (1.0 + network.headroom) * (1.0 + 1e-9) {
        complaints.push(format!("a load of {peak} C"));
    }
    Outcome { error, took_ms, bound_ms, peak, complaints }
}

fn all_hold(test: &str, family: Family, usually: u64, demanded: &Demanded) {
    let (first, count) = (number("FAIRWAVE_SEED").unwrap_or(0), number("FAIRWAVE_FLUID_TALLY").unwrap_or(usually));
    let fresh = if number("FAIRWAVE_SEED").is_some() { 0 } else { count / 10 };
    // Seeds of scenario files are below 2^63.
    let fresh_from = RandomState::new().hash_one(test) >> 2;
    let seeds = (first..first + count - fresh).chain(fresh_from..fresh_from + fresh);
    let (mut error, mut peak, mut ratio, mut took) = (0.0_f64, 0.0_f64, 0.0_f64, Vec::new());
    let mut wrong = Vec::new();
    for seed in seeds {
        let outcome = outcome(family, seed, demanded);
        error = error.max(outcome.error);
        peak = peak.max(outcome.peak);
        ratio = ratio.max(outcome.took_ms / outcome.bound_ms);
        took.push(outcome.took_ms);
        if !outcome.complaints.is_empty() {
            wrong.push(format!("seed {seed}: {}", outcome.complaints.join("; ")));
        }
    }
    took.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize] / 1e3;
    eprintln!(
        "{test}: {count} networks, {fresh} of them from seed {fresh_from} on, largest error {error:.1e} C, peak \
         {peak:.6}, near after {:.2} / {:.2} / {:.2} s (p50, p99, most), {ratio:.2} of the bound",
        at(0.5),
        at(0.99),
        at(1.0),
    );
    assert!(
        wrong.is_empty(),
        "{} of {count} networks:\n{}\nreplay: FAIRWAVE_SEED=... FAIRWAVE_FLUID_TALLY=1 cargo test -p fairwave-fluid --test all {test}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n"),
    );
}

macro_rules! families {
    ($($name:ident: $family:ident, $usually:literal, $demanded:expr;)*) => {
        $(#[test]
        fn $name() {
            all_hold(stringify!($name), Family::$family, $usually, &$demanded);
        })*
    };
}

families! {
    theory__dynamic: Dynamic, 1000, THEORY;
    theory__declared: Declared, 1000, THEORY;
    theory__ties: Ties, 1000, THEORY;
    theory__weights: Weighted, 1000, THEORY;
    theory__routers: Routed, 1000, THEORY;
    theory__loss: Loss, 1000, Demanded { within_bound: false, duration_s: 7.0, near_from_s: 6.0, ..THEORY };
    shipped__dynamic: Dynamic, 1000, SHIPPED;
    shipped__weights: Weighted, 1000, SHIPPED;
    shipped__routers: Routed, 1000, SHIPPED;
    shipped__loss: Loss, 1000, SHIPPED;
}

/// In equilibrium there are only refreshes: each end of each session sends its state twice per second, and may request
/// an answer.
#[test]
fn shipped__sends_no_news_in_equilibrium() {
    for seed in 0..20 {
        let [shorter, longer] = [8.0, 12.0].map(|duration_s| {
            let Network { text, .. } = network(Family::Weighted, seed, duration_s, "");
            run(&text).summary
        });
        let open = network(Family::Weighted, seed, 8.0, "").sessions.len() as u64;
        let reported = longer.engine.messages - shorter.engine.messages;
        // Four seconds at T/8 = 0.5 s: 8 from each end, one more if an interval ends within.
        assert!(reported <= open * 2 * 9, "seed {seed}: {reported} messages of {open} sessions in 4 s");
        assert!(open == 0 || reported > 0, "seed {seed}: no end says its state");
    }
}

#[test]
fn runs__are_the_same_to_the_last_bit() {
    for family in [Family::Dynamic, Family::Loss, Family::Routed] {
        let text = network(family, 7, 3.0, "").text;
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| run(&text));
            (run(&text), other.join().expect("the run does not panic"))
        });
        assert_eq!(one, other, "{family:?}");
    }
}

pub(crate) fn run(text: &str) -> Run {
    let document = Document::parse("instance.toml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let record = Record { rates: false, queues: false, windows: false, distances: true };
    simulate(&scenario, Settings { record, ..Settings::default() }).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[allow(clippy::disallowed_methods, reason = "an environment variable sets how long the test runs")]
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}
