//! Node rules packet by packet, on the hosts of `fairwave_proto`: each that runs there, and the switch rules in the
//! papers' networks, compared with the max-min optimum.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Record, Run, Scenario, Selection, Settings, allocate};
use fairwave_schemes::scheme::{Scheme, schemes};
use fairwave_sim::{SimError, is_fluid_only, simulate};
use fairwave_units::Time;

/// The papers' nodes have 500 Mb/s; with fewer packets a run takes less time, and the shares are equal.
const FIVE_TO_ONE: &str = include_str!("../../../../scenarios/five-to-one.toml");
const SIXTEEN_NODES: &str = include_str!("../../../../scenarios/sixteen-nodes.toml");
const TABLE_1: &str = include_str!("../../../../scenarios/000-table1.toml");

const TWO_TO_ONE: &str = "name = \"two\"\nduration = \"4 s\"\nscheme = \"gtp\"\n\
    [[node]]\nname = \"d\"\ncapacity = \"40 Mb/s\"\n[[node]]\nname = \"s{1..2}\"\ncapacity = \"40 Mb/s\"\n\
    [[session]]\nfrom = \"s1\"\nto = \"d\"\nrtt = \"20 ms\"\n[[session]]\nfrom = \"s2\"\nto = \"d\"\nrtt = \"40 ms\"\n";

fn scenario(text: &str, rule: &str, duration: &str, seed: u64) -> Scenario {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let selection = Selection {
        scheme: Some(rule.to_owned()),
        duration: Some(duration.parse().unwrap()),
        seed: Some(seed),
        ..Selection::default()
    };
    let case = document.cases(&selection).unwrap().remove(0);
    document.build(&case).unwrap().0
}

fn run(scenario: &Scenario) -> Run {
    let record = Record { rates: true, queues: true, ..Record::default() };
    simulate(scenario, Settings { record, ..Settings::default() }).unwrap()
}

/// Compares the final rates with the max-min optimum.
fn assert_max_min(scenario: &Scenario, run: &Run, share: f64) {
    let end = Time::from_nanos(scenario.end().as_nanos() - 1);
    let expected = allocate(scenario, Some(end)).unwrap().rates;
    for (session, expected) in run.summary.sessions.iter().zip(expected) {
        let (got, expected) = (session.final_wire_rate_bps / 1e6, expected.as_mbps());
        let what = format!("{} of {}, seed {}", session.name, scenario.scheme.scheme.name, scenario.seed);
        assert!((got - expected).abs() <= share * expected, "{what}: {got} Mb/s, not {expected}");
    }
}

/// Table 1 with a tenth of its rates, without its variants.
fn table_1() -> String {
    let text = TABLE_1.replace("100 Mb/s", "10 Mb/s").replace("1 Gb/s", "100 Mb/s");
    text.split("[[variant]]").next().unwrap().to_owned()
}

#[test]
fn rules__of_hosts_share_evenly() {
    let on_hosts: Vec<&Scheme> = schemes().iter().filter(|scheme| scheme.runs_on_hosts()).collect();
    assert!(on_hosts.len() >= 4, "{on_hosts:?}");
    for scheme in on_hosts {
        let scenario = scenario(TWO_TO_ONE, scheme.name, "4 s", 1);
        assert!(!is_fluid_only(&scenario), "{}", scheme.name);
        let run = run(&scenario);
        assert_max_min(&scenario, &run, 0.02);
        for session in &run.summary.sessions {
            // 1000 B of payload in 1077 B for any rule: the packets are the hosts'. Plus messages: 0.1 %, or 0.2 % with
            // claims and grants.
            let ratio = session.final_wire_rate_bps / session.final_rate_bps;
            let most = if scheme.name == "tally" { 0.0025 } else { 0.002 };
            assert!((0.0..most).contains(&(ratio - 1.077)), "{}: {ratio}", scheme.name);
        }
    }
}

#[test]
fn switch_rules__are_max_min_fair_over_five_round_trip_times() {
    let text = FIVE_TO_ONE.replace("500 Mb/s", "100 Mb/s");
    for rule in ["abr-charny", "abr-hou"] {
        for seed in 1..=3 {
            let scenario = scenario(&text, rule, "6 s", seed);
            let run = run(&scenario);
            assert_max_min(&scenario, &run, 0.01);
            assert!(run.summary.metrics.converged_s.is_some_and(|at_s| at_s < 5.0), "{:?}", run.summary.metrics);
        }
    }
}

#[test]
fn switch_rules__are_max_min_fair_among_sixteen_nodes() {
    let text = SIXTEEN_NODES.replace("500 Mb/s", "50 Mb/s");
    for rule in ["abr-charny", "abr-hou"] {
        let scenario = scenario(&text, rule, "16 s", 1);
        let run = run(&scenario);
        assert_max_min(&scenario, &run, 0.01);
        assert!(run.summary.metrics.converged_s.is_some(), "{:?}", run.summary.metrics);
    }
}

#[test]
fn switch_rules__overflow_when_demands_rise() {
    for rule in ["abr-charny", "abr-hou"] {
        let scenario = scenario(&table_1(), rule, "8 s", 1);
        let run = run(&scenario);
        let rates = run.rates.as_ref().unwrap();
        let sample = rates.ends.iter().position(|end| end.as_secs_f64() >= 3.8).unwrap();
        let at = |session: usize| sample * run.summary.sessions.len() + session;
        for session in 0..4 {
            // Wu & Chien 2006, Table 1: 0.7 is advertised to each of the four, and three of them use 0.1.
            let advertised = rates.sink_expected_bps[at(session)] / 1e6;
            assert!((advertised - 70.0).abs() < 1.4, "{rule}, session {session}: {advertised} Mb/s");
            let used = rates.measured_bps[at(session)] / 1e6;
            let expected = if session == 0 { 70.0 } else { 10.0 };
            assert!((used - expected).abs() < 0.02 * expected, "{rule}, session {session}: {used} Mb/s");
        }
        // Four times 0.7 of the capacity, as far as a sample shows it; and after that a quarter each.
        assert!(run.summary.metrics.peak_overload > 2.5, "{rule}: {:?}", run.summary.metrics);
        assert_max_min(&scenario, &run, 0.02);
    }
}

#[test]
fn minimum__is_kept_by_hou_and_gtp_and_rejected_elsewhere() {
    // 100 Mb/s, as in node/abr.rs: session 1 is guaranteed 40, session 2 wants 10; mu + mu + 40 + 10 = 100 gives mu =
    // 25.
    let text = "name = \"guaranteed\"\nduration = \"4 s\"\nscheme = \"abr-hou\"\n\
        [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\n[[node]]\nname = \"s{1..4}\"\ncapacity = \"100 Mb/s\"\n\
        [[session]]\nfrom = \"s1\"\nto = \"d\"\nrtt = \"20 ms\"\nminimum = \"40 Mb/s\"\n\
        [[session]]\nfrom = \"s2\"\nto = \"d\"\nrtt = \"20 ms\"\ndemand = \"10 Mb/s\"\n\
        [[session]]\nfrom = \"s{3..4}\"\nto = \"d\"\nrtt = \"20 ms\"\n";
    // For any phases of the ticks: a packet that is counted too early does not make a session one that wants more.
    for (rule, seed) in (1..=6).map(|seed| ("abr-hou", seed)).chain((1..=2).map(|seed| ("gtp", seed))) {
        let guaranteed = scenario(text, rule, "4 s", seed);
        assert!(!is_fluid_only(&guaranteed));
        let run = run(&guaranteed);
        let got: Vec<_> = run.summary.sessions.iter().map(|session| session.final_wire_rate_bps / 1e6).collect();
        for (got, expected) in got.iter().zip([40.0, 10.0, 25.0, 25.0]) {
            assert!((got - expected).abs() < 0.02 * expected, "{rule}, seed {seed}: {got} Mb/s, not {expected}");
        }
    }
    let other = scenario(text, "abr-charny", "4 s", 1);
    assert!(is_fluid_only(&other));
    let error = simulate(&other, Settings::default()).unwrap_err();
    assert!(matches!(&error, SimError::Unsupported { what, .. } if what.starts_with("minimum of")), "{error}");
}
