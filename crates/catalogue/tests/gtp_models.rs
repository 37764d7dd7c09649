//! GTP in the packet model compared with the fluid model: equal final rates, and similar rates on the way.

#![allow(non_snake_case)]

use fairwave_catalogue::lab::simulate;
use fairwave_scenario::{Document, Record, Run, Scenario, Selection, Settings};
use fairwave_schemes::scheme::Model;

/// Share of its max-min rate from which a session is near it.
const NEAR: f64 = 0.95;
/// One packet of 1077 bytes more or less in a sample of 20 ms.
const GRAIN_BPS: f64 = 1077.0 * 8.0 / 0.02;

/// Networks without links, of nodes of 100 Mb/s, with their largest round-trip time. If demands differ, round-trip
/// times do as well: equal sessions rise together in the fluid model, as ties of the rule, and packets are never that
/// equal.
const NETWORKS: &[(&str, f64, &str)] = &[
    ("one", 0.05, "[[session]]\nfrom = \"s1\"\nto = \"d1\"\nrtt = \"50 ms\"\n"),
    ("five-to-one", 0.05, "[[session]]\nfrom = \"s{1..5}\"\nto = \"d1\"\nrtt = \"50 ms\"\n"),
    (
        "five-rtts",
        0.09,
        "[[session]]\nfrom = \"s{1..5}\"\nto = \"d1\"\n\
         rtt = { each = [\"10 ms\", \"30 ms\", \"50 ms\", \"70 ms\", \"90 ms\"] }\n",
    ),
    (
        "one-to-five",
        0.09,
        "[[session]]\nfrom = \"s1\"\nto = \"d{1..5}\"\n\
         rtt = { each = [\"90 ms\", \"50 ms\", \"25 ms\", \"10 ms\", \"2 ms\"] }\n",
    ),
    (
        "demands",
        0.05,
        "[[session]]\nfrom = \"s{1..5}\"\nto = \"d1\"\n\
         rtt = { each = [\"40 ms\", \"42 ms\", \"45 ms\", \"47 ms\", \"50 ms\"] }\n\
         demand = { each = [\"5 Mb/s\", \"10 Mb/s\", \"20 Mb/s\", \"30 Mb/s\", \"40 Mb/s\"] }\n",
    ),
    ("four-to-four", 0.04, "[[session]]\nfrom = \"s{1..4}\"\nto = \"d{1..4}\"\nrtt = \"40 ms\"\n"),
    (
        "weights",
        0.06,
        "[[session]]\nfrom = \"s1\"\nto = \"d1\"\nrtt = \"60 ms\"\nweight = 3\n\
         [[session]]\nfrom = \"s{2..3}\"\nto = \"d1\"\nrtt = \"40 ms\"\n",
    ),
    (
        "chain",
        0.06,
        "[[session]]\nfrom = \"s1\"\nto = \"d{1..3}\"\nrtt = \"60 ms\"\n\
         [[session]]\nfrom = \"s2\"\nto = \"d{1..2}\"\nrtt = \"60 ms\"\n\
         [[session]]\nfrom = \"s3\"\nto = \"d1\"\nrtt = \"60 ms\"\n",
    ),
];

fn scenario(name: &str, sessions: &str, options: &str, seed: u64) -> Scenario {
    let text = format!(
        "name = \"{name}\"\nduration = \"9 s\"\nsample = \"20 ms\"\nscheme = \"gtp\"\nseed = {seed}\n\
         [options]\nalpha = 0.15\n{options}\n\
         [[node]]\nname = \"s{{1..5}}\"\ncapacity = \"100 Mb/s\"\nqueue = \"4 MB\"\n\
         [[node]]\nname = \"d{{1..5}}\"\ncapacity = \"100 Mb/s\"\nqueue = \"4 MB\"\n{sessions}"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    document.build(&case).unwrap().0
}

fn run(scenario: &Scenario, model: Model) -> Run {
    let record = Record { rates: true, ..Record::default() };
    simulate(scenario, Some(model), Settings { record, ..Settings::default() }).unwrap()
}

/// Time from which on the last session stayed at 95 % of its max-min rate.
fn near_s(run: &Run) -> f64 {
    let rates = run.rates.as_ref().unwrap();
    let best: Vec<_> = run.summary.sessions.iter().map(|session| session.max_min_bps).collect();
    let is_far = |sample: usize| {
        let rates = &rates.wire_bps()[sample * best.len()..][..best.len()];
        rates.iter().zip(&best).any(|(rate, best)| rate + GRAIN_BPS < NEAR * best)
    };
    let last = (0..rates.ends.len()).rev().find(|sample| is_far(*sample));
    last.map_or(0.0, |sample| rates.ends[sample].as_secs_f64())
}

#[test]
fn packets__reach_the_rates_of_the_fluid_model() {
    for (name, _, sessions) in NETWORKS {
        for options in ["", "drain = true"] {
            let run = run(&scenario(name, sessions, options, 1), Model::Packet);
            let gap = run.summary.metrics.gap_to_max_min;
            assert!(gap < 0.01, "{name} {options}: {gap}");
        }
    }
}

/// Time before a session's first data arrive, in round trips: a cookie, an answer, a request.
const SETUP_RTT: f64 = 3.0;
/// Draws of the nodes' phases, which decide which session comes first.
const DRAWS: u64 = 3;

#[test]
fn packets__take_as_long_as_the_fluid() {
    for (name, rtt_s, sessions) in NETWORKS {
        let mean = |model| {
            let near = (1..=DRAWS).map(|seed| near_s(&run(&scenario(name, sessions, "drain = true", seed), model)));
            near.sum::<f64>() / DRAWS as f64
        };
        let (fluid_s, packet_s) = (mean(Model::Fluid), mean(Model::Packet) - SETUP_RTT * rtt_s);
        let excess = packet_s / fluid_s - 1.0;
        println!("{name}: {fluid_s:.2} s, in packets {packet_s:.2} s, {:+.1} %", excess * 100.0);
        assert!(excess.abs() < 0.15, "{name}: {fluid_s} {packet_s}");
    }
}
