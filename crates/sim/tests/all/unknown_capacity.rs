//! A node with an unknown capacity finds it by its sessions' losses and queueing delays, and only by those.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection, Settings};
use fairwave_sim::simulate;
use fairwave_units::Time;

/// A variant of the shipped scenario: the mean total rate of its five sessions between two instants in seconds, in Mb/s
/// of IP packets, and the minimum share of one.
fn carried(variant: &str, (from, to): (u64, u64)) -> (f64, f64) {
    let text = include_str!("../../../../scenarios/002-sec-x-3-d.toml");
    let text = text.replace("\"30 s\"", "\"12 s\"").replace("29.9 s", "11.9 s");
    let document = Document::parse("002-sec-x-3-d.toml", text.as_bytes()).unwrap();
    let cases = document.cases(&Selection::default()).unwrap();
    let case = cases.iter().find(|case| case.variant.as_deref() == Some(variant)).unwrap();
    let window = Some((Time::from_secs(from), Time::from_secs(to)));
    let run = simulate(&document.build(case).unwrap().0, Settings { window, ..Settings::default() }).unwrap();
    let rates = || run.summary.sessions[..5].iter().map(|session| session.wire_rate_bps / 1e6);
    let sum: f64 = rates().sum();
    (sum, rates().fold(f64::MAX, f64::min) / sum)
}

#[test]
fn find_capacity__of_a_sink_configured_with_twice_as_much() {
    let (sum, least) = carried("told twice as much, found", (4, 12));
    assert!(sum > 95.0 && sum < 100.0 && least > 0.195, "{sum} Mb/s of 100, of which one has {least}");
}
