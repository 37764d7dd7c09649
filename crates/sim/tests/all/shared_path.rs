//! GTP on a path with other traffic: the rate that it leaves to CUBIC, its rate without others, and its robustness to
//! random loss.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection, Settings};
use fairwave_sim::simulate;
use fairwave_units::Time;

/// A variant of the shipped scenario, shortened; means are from 20 s on.
fn run(variant: &str, seed: u64, seconds: u64) -> Run {
    let text = include_str!("../../../../scenarios/shared-path.toml").replace("120 s", &format!("{seconds} s"));
    let text = format!("seed = {seed}\n{text}");
    let document = Document::parse("shared-path.toml", text.as_bytes()).unwrap();
    let cases = document.cases(&Selection::default()).unwrap();
    let case = cases.iter().find(|case| case.variant.as_deref() == Some(variant)).unwrap();
    let window = Some((Time::from_secs(20), Time::from_secs(seconds)));
    simulate(&document.build(case).unwrap().0, Settings { window, ..Settings::default() }).unwrap()
}

/// The rate of GTP, and the mean rate of all CUBIC flows, in Mb/s; the share of GTP's packets that were lost.
fn shares(run: &Run) -> (f64, f64, f64) {
    let (gtp, cubics) = run.summary.sessions.split_first().unwrap();
    let cubic: f64 = cubics.iter().map(|session| session.wire_rate_bps / 1e6).sum();
    let lost = gtp.lost_packets as f64 / gtp.sent_packets as f64;
    (gtp.wire_rate_bps / 1e6, cubic / cubics.len() as f64, lost)
}

#[test]
fn gtp__fills_an_unshared_link_with_little_loss() {
    let (gtp, _, lost) = shares(&run("alone", 1, 40));
    assert!(gtp > 93.0 && lost < 0.01, "{gtp} Mb/s, {lost} lost");
}

#[test]
fn gtp__is_not_slowed_by_chance_below_the_capacity() {
    let run = run("granted 90 Mb/s, 0.1 % lost", 1, 40);
    let (gtp, _, lost) = shares(&run);
    // All of its grant, except for a loss of 0.1 %, and two probes of the round-trip time in these 20 s.
    assert!((0.97..1.005).contains(&(gtp / 90.0)), "{gtp} Mb/s");
    assert!((0.0007..0.0013).contains(&lost), "{lost}");
}

/// A quarter to three quarters of a link each, on average over three runs, with buffers of one and half a
/// bandwidth-delay product; a single run had 75.2 : 24.1.
#[test]
fn gtp__and_a_cubic_flow_leave_each_other_a_quarter() {
    for variant in ["beside 1", "half a BDP, beside 1"] {
        let mut mean = 0.0;
        for seed in [1, 2, 3] {
            let (gtp, cubic, lost) = shares(&run(variant, seed, 60));
            println!("{variant}, seed {seed}: {gtp:.1} and {cubic:.1} Mb/s, {:.2} % lost", 100.0 * lost);
            assert!(gtp + cubic > 96.0 && lost < 0.02, "{gtp} and {cubic} Mb/s, {lost}");
            mean += gtp / (gtp + cubic) / 3.0;
        }
        assert!((0.25..0.75).contains(&mean), "{variant}: {mean}");
    }
}
