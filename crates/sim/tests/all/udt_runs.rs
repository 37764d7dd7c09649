//! UDT sessions compared with Gu & Grossman 2007.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection, Settings};
use fairwave_sim::simulate;
use fairwave_units::Time;

fn run(text: &str) -> Run {
    run_window(text, None)
}

fn run_window(text: &str, window_s: Option<(u64, u64)>) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    let window = window_s.map(|(from, to)| (Time::from_secs(from), Time::from_secs(to)));
    simulate(&scenario, Settings { window, ..Settings::default() }).unwrap()
}

/// Sources s1, s2 ... into one sink of this capacity, a session each with these keys.
fn network(duration_s: u32, capacity: &str, sources: u32, keys: &str) -> String {
    format!(
        "name = \"udt\"\nduration = \"{duration_s} s\"\nscheme = \"udt\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"{capacity}\"\n\
         [[node]]\nname = \"s{{1..{sources}}}\"\ncapacity = \"{capacity}\"\n\
         [[session]]\nfrom = \"s{{1..{sources}}}\"\nto = \"d\"\n{keys}\n"
    )
}

#[test]
fn one_session__fills_a_gigabit_over_50_ms() {
    // A cycle of decrease and growth takes about 10 s. Packets of 9 kB to save time; with 1500 B the result is similar.
    let text = network(100, "1 Gb/s", 1, "rtt = \"50 ms\"\n[packet]\npayload = \"8956 B\"");
    let run = run_window(&text, Some((20, 100)));
    let session = &run.summary.sessions[0];
    println!("{session:?}");
    assert!(session.wire_rate_bps > 0.9e9, "{}", session.wire_rate_bps);
    assert!(session.lost_packets < session.sent_packets / 100, "{session:?}");
}

#[test]
fn two_sessions__share_equally_for_any_start_and_rtt() {
    for (name, keys) in [
        ("late", "rtt = \"50 ms\"\nstart = { each = [\"0 s\", \"10 s\"] }"),
        ("far", "rtt = { each = [\"10 ms\", \"100 ms\"] }"),
    ] {
        let run = run(&network(100, "200 Mb/s", 2, keys));
        println!("{name}: {:?}", run.summary.metrics);
        assert!(run.summary.metrics.jain > 0.95, "{name}: {}", run.summary.metrics.jain);
        assert!(run.summary.metrics.total_bps > 0.9 * 200e6, "{name}: {}", run.summary.metrics.total_bps);
    }
}

#[test]
fn finite_size__is_delivered_once_despite_loss_both_ways() {
    let text = network(60, "50 Mb/s", 1, "rtt = \"20 ms\"\nsize = \"10 MB\"")
        .replace("[[node]]\nname = \"d\"\n", "[[node]]\nname = \"d\"\nloss = 0.01\n");
    let run = run(&text);
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 10_000_000);
    assert!(session.completed_s.is_some() && session.lost_packets > 50, "{session:?}");
    assert!(session.retransmitted_packets >= session.lost_packets, "{session:?}");
    // Reports are repeated only if they were lost or slow: not all packets are sent twice.
    assert!(session.retransmitted_packets < 2 * session.lost_packets + 100, "{session:?}");
}

#[test]
fn demand__limits_the_rate() {
    let run = run(&network(20, "1 Gb/s", 1, "rtt = \"50 ms\"\ndemand = \"80 Mb/s\""));
    let session = &run.summary.sessions[0];
    assert!((session.wire_rate_bps / 80e6 - 1.0).abs() < 0.01, "{session:?}");
    assert_eq!(session.lost_packets, 0);
}

#[test]
fn max_window__limits_packets_in_flight() {
    // 100 packets of 1044 B unacknowledged; acknowledgements come every 10 ms or 64 packets, so a round takes 50 to 60
    // ms.
    let run = run(&network(20, "1 Gb/s", 1, "rtt = \"50 ms\"\nscheme = \"udt\"\noptions.max_window = \"100 packets\""));
    let rate = run.summary.sessions[0].wire_rate_bps;
    let most = 100.0 * 1044.0 * 8.0 / 0.05;
    assert!(rate <= most && rate > most * 50.0 / 62.0, "{rate} of {most}");
}

/// The last packet is lost repeatedly: the timer of silence sends it again.
#[test]
fn stop__leaves_nothing_undelivered() {
    let text = network(30, "20 Mb/s", 1, "rtt = \"20 ms\"\nstop = \"5 s\"")
        .replace("[[node]]\nname = \"d\"\n", "[[node]]\nname = \"d\"\nloss = 0.2\n");
    let run = run(&text);
    let session = &run.summary.sessions[0];
    let new = session.sent_packets - session.retransmitted_packets;
    assert!(new > 100 && session.delivered_bytes == new * 1000, "{session:?}");
}
