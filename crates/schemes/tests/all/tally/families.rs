//! The families of random networks: never above the capacity plus its headroom, exact at the end, within the bound of
//! the proof, and quiet.

use fairwave_schemes::node::tally::TallyOptions;
use fairwave_units::Duration;

use crate::tally::drawn_worlds::{Family, network};
use crate::tally::tally_network::{Network, exact, ms};
use crate::tally::tally_optimum::{Optimum, optimum};
use crate::tally::world::World;

/// Result of one network.
pub struct Outcome {
    /// Maximum difference of a rate from the optimum, in capacities of 1 Gb/s.
    pub error: f64,
    /// Time from the last change until all rates stay near.
    pub took: Duration,
    pub bound: Duration,
    pub peak: f64,
    quiet: bool,
    pub violation: Option<String>,
    messages: u64,
}

/// All of a capacity of 1 Gb/s.
const FULL: f64 = 1e9;

pub fn run(network: &Network, near: f64, lasts: Duration) -> Outcome {
    let best = optimum(network);
    let mut world = World::new(network);
    world.aim(&best.rates_bps, near * FULL);
    let changed = network.last_change();
    let end = changed + lasts;
    world.run_until(end);
    let error = world.rates_bps().zip(&best.rates_bps).map(|(rate, best)| (rate - best).abs()).fold(0.0, f64::max);
    let took = if world.away == 0 { world.near_since.since(changed) } else { lasts };
    // Refreshes carry changes that are too small to be sent immediately: two of them after everything is known.
    let quiet = end.since(world.last_news) >= ms(1500);
    Outcome {
        error: error / FULL,
        took,
        bound: bound(network, &best),
        peak: world.peak,
        quiet,
        violation: world.violation.take(),
        messages: world.messages,
    }
}

/// The bound of the proof, with the first round trip of the last newcomer.
fn bound(network: &Network, best: &Optimum) -> Duration {
    let (d, r) = network.largest();
    let half = r.half();
    let node = (r + d * 2) * best.node_rounds;
    let demand = (r * 3 + d * 7) * best.demand_rounds;
    half + d * 2 + node + demand + r + half + d * 3
}

/// Requirements of a family.
struct Demanded {
    options: TallyOptions,
    /// Maximum distance of the rates from the optimum at the end, in capacities.
    near: f64,
    /// Time that a network runs after its last change.
    lasts: Duration,
    within_bound: bool,
    /// Whether no node may send news at the end. With real numbers the rounding of f64 is news.
    quiet: bool,
}

/// The theorems: real numbers, exact within 1e-9 of a capacity, in bounded time.
fn in_theory() -> Demanded {
    Demanded { options: exact(), near: 1e-9, lasts: Duration::from_secs(12), within_bound: true, quiet: false }
}

/// The defaults: whole bits, deadbands, claims checked; within 1e-3 of a capacity.
fn as_shipped() -> Demanded {
    Demanded {
        options: TallyOptions::default(),
        near: 1e-3,
        lasts: Duration::from_secs(12),
        within_bound: false,
        quiet: true,
    }
}

/// Eight refreshes per second: sessions of a sink have leases of 4, 8 or 16 s, by their number.
fn few_refreshes() -> Demanded {
    let options = TallyOptions { most_refreshes: 8.0, ..TallyOptions::default() };
    Demanded { options, quiet: false, ..as_shipped() }
}

/// Some nodes run plain GTP, which approaches its rates in steps: 90 s, and there is no requirement to be quiet.
fn beside_plain_gtp() -> Demanded {
    Demanded { lasts: Duration::from_secs(90), quiet: false, ..as_shipped() }
}

fn all_hold(test: &str, family: Family, usually: u64, demanded: &Demanded) {
    let (first, count) = seeds(usually);
    let (mut error, mut peak, mut ratio, mut took, mut messages) = (0.0_f64, 0.0_f64, 0.0_f64, Vec::new(), 0);
    let mut wrong: Vec<String> = Vec::new();
    for seed in first..first + count {
        let network = network(family, seed, demanded.options);
        let outcome = run(&network, demanded.near, demanded.lasts);
        let mut complaints: Vec<String> = outcome.violation.iter().cloned().collect();
        if outcome.error > demanded.near {
            complaints.push(format!("{:.1e} C off at the end", outcome.error));
        }
        if demanded.within_bound && outcome.took > outcome.bound {
            complaints.push(format!("took {}, bound {}", outcome.took, outcome.bound));
        }
        if demanded.quiet && !outcome.quiet {
            complaints.push("not quiet at the end".into());
        }
        if !complaints.is_empty() {
            wrong.push(format!("seed {seed}: {}", complaints.join("; ")));
        }
        error = error.max(outcome.error);
        peak = peak.max(outcome.peak);
        ratio = ratio.max(outcome.took.as_secs_f64() / outcome.bound.as_secs_f64());
        took.push(outcome.took);
        messages += outcome.messages;
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64();
    eprintln!(
        "{test}: {count} networks from seed {first}, largest error {error:.1e} C, peak {peak:.6}, near after \
         {:.2} / {:.2} / {:.2} s (p50, p99, most), {ratio:.2} of the bound, {messages} messages",
        at(0.5),
        at(0.99),
        at(1.0),
    );
    assert!(
        wrong.is_empty(),
        "{} of {count} networks:\n{}\nreplay: FAIRWAVE_SEED=... FAIRWAVE_TALLY=1 cargo test -p fairwave-schemes --test all {test}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n"),
    );
}

/// The seeds to run: FAIRWAVE_TALLY of them from FAIRWAVE_SEED on, or `usually` by default.
fn seeds(usually: u64) -> (u64, u64) {
    (number("FAIRWAVE_SEED").unwrap_or(0), number("FAIRWAVE_TALLY").unwrap_or(usually))
}

#[allow(clippy::disallowed_methods, reason = "an environment variable sets how long the test runs")]
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
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
    theory__static: Static, 60, in_theory();
    theory__dynamic: Dynamic, 60, in_theory();
    theory__declared: Declared, 60, Demanded { options: TallyOptions { headroom: 0.0, ..exact() }, ..in_theory() };
    theory__ties: Ties, 60, in_theory();
    theory__weights_and_minima: Weighted, 60, in_theory();
    theory__capacities_change: Capacities, 60, in_theory();
    theory__routers: Routers, 60, in_theory();
    theory__loss: Loss, 60, Demanded { within_bound: false, ..in_theory() };
    theory__chaos: Chaos, 60, Demanded { within_bound: false, lasts: Duration::from_secs(30), ..in_theory() };
    shipped__static: Static, 60, as_shipped();
    shipped__dynamic: Dynamic, 60, as_shipped();
    shipped__ties: Ties, 60, as_shipped();
    shipped__weights_and_minima: Weighted, 60, as_shipped();
    shipped__capacities_change: Capacities, 60, as_shipped();
    shipped__routers: Routers, 60, as_shipped();
    shipped__loss: Loss, 60, as_shipped();
    shipped__beside_plain_gtp: Mixed, 12, beside_plain_gtp();
    theory__promises: Promised, 60, Demanded { within_bound: false, ..in_theory() };
    shipped__promises: Promised, 60, as_shipped();
    shipped__promises_in_chaos: PromisedChaos, 60, Demanded { lasts: Duration::from_secs(30), ..as_shipped() };
    shipped__leases_change: Leases, 60, Demanded { lasts: Duration::from_secs(90), ..few_refreshes() };
    shipped__chaos: Chaos, 60, Demanded { lasts: Duration::from_secs(30), ..as_shipped() };
}

#[test]
fn optimum__agrees_with_algorithm_1() {
    for seed in 0..200 {
        for family in [Family::Dynamic, Family::Ties, Family::Routers, Family::Capacities] {
            let network = network(family, seed, exact());
            let pairs =
                optimum(&network).rates_bps.into_iter().zip(crate::tally::tally_optimum::by_algorithm_1(&network));
            for (found, expected) in pairs {
                assert!((found - expected).abs() <= 1e-9 * FULL, "{family:?} {seed}: {found} is not {expected}");
            }
        }
    }
}
