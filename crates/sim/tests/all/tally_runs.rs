//! Tally packet by packet: hosts that exchange claims and grants, in the simulator.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Record, Run, Scenario, Selection, Settings};
use fairwave_sim::{SimError, is_fluid_only, simulate};

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    document.build(&case).unwrap().0
}

fn run(text: &str) -> Run {
    let record = Record { distances: true, ..Record::default() };
    simulate(&scenario(text), Settings { record, ..Settings::default() }).unwrap()
}

/// Time in seconds from which on the 2-norm distance to the max-min rates stays below a share of their norm.
fn near_after(run: &Run, share: f64, sample_s: f64) -> f64 {
    let far = |(distance, norm): (&f64, &f64)| *distance > share * norm;
    let last = run.distances_bps.iter().zip(&run.max_min_norms_bps).rposition(far);
    last.map_or(0.0, |last| (last + 1) as f64 * sample_s)
}

/// Maximum queue of a link towards a node, which all of its sessions share.
fn most_waiting(run: &Run) -> f64 {
    run.summary.links.iter().map(|link| link.max_queue_packets).fold(0.0, f64::max)
}

const SAMPLE_S: f64 = 0.02;

#[test]
fn five_to_one__all_are_near_within_0_4_s_without_queues() {
    let run = run(
        "name = \"five-to-one\"\nduration = \"4 s\"\nscheme = \"tally\"\nsample = \"20 ms\"\n[options]\nreact = \"1 ms\"\n\
         [[node]]\nname = \"d1\"\ncapacity = \"500 Mb/s\"\n[[node]]\nname = \"s{1..5}\"\ncapacity = \"500 Mb/s\"\n\
         [[session]]\nfrom = \"s{1..5}\"\nto = \"d1\"\n\
         rtt = { each = [\"10 ms\", \"30 ms\", \"50 ms\", \"70 ms\", \"90 ms\"] }\n",
    );
    let near_s = near_after(&run, 0.01, SAMPLE_S);
    println!("within 1 % after {near_s} s, at most {} packets waited", most_waiting(&run));
    assert!(near_s <= 0.4 + 1e-9 && most_waiting(&run) < 20.0, "{near_s} s, {}", most_waiting(&run));
    for session in &run.summary.sessions {
        assert_eq!((session.lost_packets, session.retransmitted_packets), (0, 0));
        let rate = session.final_wire_rate_bps;
        assert!((rate - 100e6).abs() < 0.5e6, "{rate}");
    }
}

#[test]
fn networks__are_near_max_min_within_1_s_without_queues() {
    let text = |duration, sessions| {
        format!(
            "name = \"network\"\nduration = \"{duration} s\"\nscheme = \"tally\"\nsample = \"200 ms\"\n[options]\n\
             react = \"1 ms\"\n[generate]\nkind = \"lambda\"\nsources = 8\nsinks = 8\n\
             sessions_per_source = {sessions}\ncapacity = \"50 Mb/s\"\nrtt = [\"1 ms\", \"100 ms\"]\n\
             interval = [\"10 ms\", \"50 ms\"]\n"
        )
    };
    for sessions in [2, 4] {
        let run = run(&text(3, sessions));
        let near_s = near_after(&run, 0.01, 0.2);
        println!("{sessions}: within 1 % after {near_s} s, at most {} packets waited", most_waiting(&run));
        assert!(near_s <= 1.0 && most_waiting(&run) < 40.0, "{near_s} s, {}", most_waiting(&run));
    }
}

/// With `FAIRWAVE_TALLY_NODES` end nodes; `make soak` uses 1024. The time includes two handshake round trips of up to
/// 100 ms.
#[test]
#[allow(clippy::disallowed_methods, reason = "an environment variable sets how much the test runs")]
fn network__of_many_nodes_is_near_in_0_6_s_and_loads_below_1_03() {
    let nodes = std::env::var("FAIRWAVE_TALLY_NODES").map_or(64, |nodes| nodes.parse::<u32>().unwrap());
    let run = run(&format!(
        "name = \"network\"\nduration = \"1.2 s\"\nscheme = \"tally\"\nsample = \"100 ms\"\n[options]\n\
         react = \"1 ms\"\n[generate]\nkind = \"lambda\"\nsources = {0}\nsinks = {0}\nsessions_per_source = 4\n\
         capacity = \"50 Mb/s\"\nrtt = [\"1 ms\", \"100 ms\"]\ninterval = [\"10 ms\", \"50 ms\"]\n",
        nodes / 2
    ));
    let (near_s, peak) = (near_after(&run, 0.01, 0.1), run.summary.metrics.peak_overload);
    println!("{nodes} nodes: within 1 % after {near_s} s, peak {peak}, at most {} packets waited", most_waiting(&run));
    assert!(near_s < 0.6 - 1e-9 && peak <= 1.03 && most_waiting(&run) < 20.0, "{near_s} s, {peak}");
}

/// Features that the model lacks are an error, and make the fluid model the one that is meant.
#[test]
fn options__of_the_fluid_model_are_refused_packet_by_packet() {
    let text = |option: &str| {
        format!(
            "name = \"one\"\nduration = \"1 s\"\nscheme = \"tally\"\n[options]\n{option}\n[[node]]\n\
             name = \"n{{1..2}}\"\ncapacity = \"10 Mb/s\"\n[[session]]\nfrom = \"n1\"\nto = \"n2\"\nrtt = \"10 ms\"\n"
        )
    };
    for (name, option) in [("declared", "declared = true"), ("loss", "loss = 0.05"), ("late", "late = \"5 ms\"")] {
        let scenario = scenario(&text(option));
        let error = simulate(&scenario, Settings::default()).unwrap_err();
        assert!(matches!(&error, SimError::Unsupported { what, .. } if what.starts_with(name)), "{error}");
        assert!(is_fluid_only(&scenario), "{option}");
    }
    // Default values need no support.
    let scenario = scenario(&text("declared = false\nloss = 0\nlate = \"0 ms\""));
    assert!(!is_fluid_only(&scenario) && simulate(&scenario, Settings::default()).is_ok());
}
