//! Homa messages compared with arithmetic.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_sim::{Settings, SimError, simulate, simulate_naive};

/// Nodes of 100 Mb/s, 10 ms apart, with strict priority; packets have 1000 B of data in 1040 B.
fn scenario(keys: &str, options: &str) -> String {
    format!(
        "name = \"homa\"\nduration = \"20 s\"\nscheme = \"homa\"\n[options]\n{options}\n\
         [[node]]\nname = \"d{{1..3}}\"\ncapacity = \"100 Mb/s\"\nqueue = \"10 MB\"\ndiscipline = \"priority\"\n\
         [[node]]\nname = \"s{{1..32}}\"\ncapacity = \"100 Mb/s\"\n{keys}\n"
    )
}

fn try_run(text: &str) -> Result<Run, SimError> {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    simulate(&document.build(&case).unwrap().0, Settings::default())
}

fn run(keys: &str, options: &str) -> Run {
    try_run(&scenario(keys, options)).unwrap()
}

fn completed_s(run: &Run) -> Vec<f64> {
    run.summary.sessions.iter().map(|session| session.completed_s.unwrap()).collect()
}

const PACKET_S: f64 = 1040.0 * 8.0 / 100e6;

/// The first 40 packets go at once; the grant for the first arrives a round trip and two packets later, and a window
/// of 200 kB covers the round trip.
#[test]
fn message__alone_waits_once_for_its_first_grant() {
    let run = run("[[session]]\nfrom = \"s1\"\nto = \"d1\"\nrtt = \"10 ms\"\nsize = \"1 MB\"", "");
    let stall_s = 0.010 + 2.0 * PACKET_S - 40.0 * PACKET_S;
    let expected_s = 1000.0 * PACKET_S + stall_s + 0.005 + PACKET_S;
    let took_s = completed_s(&run)[0];
    println!("{took_s} {expected_s}");
    assert!((took_s - expected_s).abs() < 2e-4, "{took_s}, not {expected_s}");
    assert_eq!(run.summary.sessions[0].retransmitted_packets, 0);
}

/// Without overcommitment messages end one after the other, each after its time at the link.
#[test]
fn incast__without_overcommitment_is_served_one_by_one() {
    let keys = "[[session]]\nfrom = \"s{1..8}\"\nto = \"d1\"\nrtt = \"1 ms\"\nsize = \"1 MB\"";
    let mut ends = completed_s(&run(keys, "overcommit = 1"));
    ends.sort_by(f64::total_cmp);
    println!("{ends:?}");
    // The unscheduled packets of each have arrived with the others' first: 960 packets are left.
    for pair in ends.windows(2) {
        assert!((pair[1] - pair[0] - 960.0 * PACKET_S).abs() < 0.05 * 960.0 * PACKET_S, "{ends:?}");
    }
}

#[test]
fn incast__keeps_the_link_busy_and_its_queue_bounded() {
    let keys = "[[session]]\nfrom = \"s{1..32}\"\nto = \"d1\"\nrtt = \"1 ms\"\nsize = \"1 MB\"";
    let run = run(keys, "");
    let ends = completed_s(&run);
    let last_s = ends.iter().copied().fold(0.0, f64::max);
    let queue = run.summary.links.iter().find(|link| &*link.name == "d1:in").unwrap().max_queue_packets;
    println!("{last_s} {queue}");
    assert!(last_s < 1.02 * 32_000.0 * PACKET_S, "{last_s}");
    // 400 kB granted, and the 40 kB of each that need no grant.
    assert!(queue < 400.0 + 32.0 * 40.0, "{queue}");
}

/// A message of 10 kB overtakes those of 10 MB at the sources and in the queue.
#[test]
fn short_message__overtakes_long_ones() {
    let long = "[[session]]\nfrom = \"s{1..4}\"\nto = \"d1\"\nrtt = \"1 ms\"\nsize = \"10 MB\"\n";
    let short =
        "[[session]]\nname = \"short\"\nfrom = \"s1\"\nto = \"d1\"\nrtt = \"1 ms\"\nsize = \"10 kB\"\nstart = \"1 s\"";
    let run = run(&format!("{long}{short}"), "");
    let took_s = run.summary.sessions[4].completed_s.unwrap() - 1.0;
    println!("{took_s}");
    // Ten packets at each of two links, half a round trip, and a packet under way at each.
    assert!(took_s < 0.0005 + 13.0 * PACKET_S, "{took_s}");
}

#[test]
fn messages__are_complete_under_loss_both_ways() {
    let keys = "[[session]]\nfrom = \"s{1..4}\"\nto = \"d{1..2}\"\nrtt = \"5 ms\"\nsize = \"500 kB\"\n\
                [[variant]]\nlabel = \"loss\"\nnode.\"d{1..3}\".loss = 0.05";
    for session in &run(keys, "").summary.sessions {
        assert_eq!(session.delivered_bytes, 500_000, "{}", session.name);
    }
}

#[test]
fn run__is_the_same_with_one_event_a_packet() {
    let text = scenario("[[session]]\nfrom = \"s{1..6}\"\nto = \"d{1..3}\"\nrtt = \"5 ms\"\nsize = \"300 kB\"", "");
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let scenario = document.build(&case).unwrap().0;
    let [fast, naive] = [simulate, simulate_naive].map(|simulate| simulate(&scenario, Settings::default()).unwrap());
    assert_eq!(fast.summary.sessions, naive.summary.sessions);
    assert_eq!(fast.summary.links, naive.summary.links);
}

#[test]
fn session__without_a_size_is_refused() {
    let error = try_run(&scenario("[[session]]\nfrom = \"s1\"\nto = \"d1\"\nrtt = \"1 ms\"", "")).unwrap_err();
    assert!(error.to_string().contains("a size") && error.hint().is_some(), "{error}");
}
