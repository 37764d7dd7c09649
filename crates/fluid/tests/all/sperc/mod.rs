//! s-PERC in random networks of the fluid model: exact against the max-min optimum, with control packets that arrive
//! late and that are lost.
//!
//! The long run: `FAIRWAVE_FLUID_SPERC=1000 cargo test -p fairwave-fluid --test all sperc:: -- --nocapture`

#![allow(non_snake_case, missing_docs)]

use std::fmt::Write;

use fairwave_scenario::random::stream;

use crate::tally::{number, run};

/// Networks of a family in the usual run.
const USUALLY: u64 = 200;
/// Largest capacity of a network.
const FULL_BPS: f64 = 1e9;

/// 2 to 9 nodes, 1 to 16 sessions, RTT 0.2 to 400 ms, a demand in a quarter of the sessions, and in half of the
/// networks a chain of 1 or 2 links; sessions open within half a second.
fn network(seed: u64, options: &str) -> String {
    let random = &mut stream(seed, "s-perc");
    let mut text = format!(
        "name = \"random\"\nscheme = \"s-perc\"\nseed = {seed}\nduration = \"20 s\"\nsample = \"10 ms\"\n[options]\n{options}\n"
    );
    let mut put = |part: String| text.write_str(&part).expect("a String takes all");
    let routers = if random.unit() < 0.5 { 0 } else { 2 + random.below(2) };
    for r in 1..=routers {
        put(format!("[[router]]\nname = \"r{r}\"\n"));
    }
    for r in 1..routers {
        let (mbps, ms) = (random.uniform(100.0, 1000.0), random.uniform(0.0, 20.0));
        put(format!(
            "[[link]]\nfrom = \"r{r}\"\nto = \"r{}\"\ncapacity = \"{mbps:.3} Mb/s\"\ndelay = \"{ms:.3} ms\"\ndiscipline = \"gtp\"\nduplex = true\n",
            r + 1
        ));
    }
    let (sources, sinks) = (1 + random.below(5), 1 + random.below(4));
    for n in 0..sources + sinks {
        let (name, router) = if n < sources { (format!("s{n}"), 1) } else { (format!("d{}", n - sources), routers) };
        let at = if routers > 0 { format!("router = \"r{router}\"\n") } else { String::new() };
        put(format!("[[node]]\nname = \"{name}\"\ncapacity = \"{:.3} Mb/s\"\n{at}", random.uniform(100.0, 1000.0)));
    }
    for k in 0..=random.below(16) {
        let rtt_ms = if routers > 0 { random.uniform(80.0, 400.0) } else { 10_f64.powf(random.uniform(-0.7, 2.6)) };
        put(format!(
            "[[session]]\nname = \"k{k}\"\nfrom = \"s{}\"\nto = \"d{}\"\nrtt = \"{rtt_ms:.4} ms\"\nstart = \"{} ms\"\n",
            random.below(sources),
            random.below(sinks),
            random.below(500),
        ));
        if random.unit() < 0.25 {
            put(format!("demand = \"{:.3} Mb/s\"\n", random.uniform(1.0, 400.0)));
        }
    }
    text
}

fn networks() -> u64 {
    number("FAIRWAVE_FLUID_SPERC").unwrap_or(USUALLY)
}

/// Distances from the optimum at the samples of the last ten seconds, in the largest capacity.
fn late_distances(seed: u64, options: &str) -> Vec<f64> {
    let run = run(&network(seed, options));
    run.distances_bps[1000..].iter().map(|distance| distance / FULL_BPS).collect()
}

#[test]
fn random__late_packets_all_exact_and_stay() {
    for seed in 0..networks() {
        for options in ["", "late = \"40 ms\""] {
            let worst = late_distances(seed, options).into_iter().fold(0.0, f64::max);
            assert!(worst < 1e-6, "seed {seed}, {options}: {worst:e} of the capacity");
        }
    }
}

/// A lost packet that was counted in this round may be counted again when it is repeated: rates are then too low until
/// the round after the next. All the other time they are exact.
#[test]
fn random__lost_and_late_packets_exact_between_losses() {
    let (mut samples, mut exact) = (0, 0);
    for seed in 0..networks() {
        let late = late_distances(seed, "loss = 0.01\nlate = \"40 ms\"");
        let here = late.iter().filter(|distance| **distance < 1e-6).count();
        assert!(here > 0, "seed {seed} is never exact");
        samples += late.len();
        exact += here;
    }
    let share = exact as f64 / samples as f64;
    eprintln!("exact in {:.2} % of the time", 100.0 * share);
    assert!(share > 0.8, "{share}");
}
