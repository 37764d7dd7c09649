//! NETBLT sessions compared with the arithmetic of RFC 998.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_schemes::session::netblt::{netblt_bps, netblt_rounds};
use fairwave_sim::{Settings, SimError, simulate};
use fairwave_units::Time;

/// A session over 100 Mb/s with a round-trip time of a second, in packets of 1000 B and buffers of 1000 of them.
fn try_run(keys: &str, options: &str, window_s: (u64, u64)) -> Result<Run, SimError> {
    let text = format!(
        "name = \"netblt\"\nduration = \"120 s\"\nscheme = \"netblt\"\n[packet]\npayload = \"960 B\"\n\
         [options]\n{options}\n[[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\n[[node]]\nname = \"s\"\ncapacity = \"100 Mb/s\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"1 s\"\n{keys}\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let window = Some((Time::from_secs(window_s.0), Time::from_secs(window_s.1)));
    simulate(&document.build(&case).unwrap().0, Settings { window, ..Settings::default() })
}

fn run(keys: &str, options: &str) -> Run {
    try_run(keys, options, (12, 120)).unwrap()
}

#[test]
fn rate__needs_as_many_buffers_as_cover_a_round_trip() {
    for (buffers, rate) in [(1, 8e6 / 2.0), (2, 8e6), (3, 8e6)] {
        // A buffer is 8 Mb, which take a second: half of 8 Mb/s with one buffer.
        assert_eq!(netblt_bps(8e6, 8e6, f64::from(buffers), 1.0), rate);
        let run = run("demand = \"8 Mb/s\"", &format!("buffers = {buffers}"));
        let session = &run.summary.sessions[0];
        println!("{buffers}: {}", session.wire_rate_bps);
        assert!((session.wire_rate_bps / rate - 1.0).abs() < 0.02, "{buffers}: {}", session.wire_rate_bps);
        assert_eq!((session.lost_packets, session.retransmitted_packets), (0, 0));
    }
}

#[test]
fn loss__costs_its_share_if_buffers_hide_the_repair() {
    let keys = "demand = \"8 Mb/s\"\n[[variant]]\nlabel = \"loss\"\nnode.d.receive_loss = 0.01";
    let run = run(keys, "buffers = 5");
    let session = &run.summary.sessions[0];
    println!("{session:?}");
    // Each packet is sent 1 / (1 - p) times.
    let repeats = session.retransmitted_packets as f64 / (session.sent_packets - session.retransmitted_packets) as f64;
    assert!((repeats - 0.01 / 0.99).abs() < 0.002, "{repeats}");
    assert!((session.wire_rate_bps / 8e6 - 0.99).abs() < 0.01, "{}", session.wire_rate_bps);
}

/// One buffer at a time: a second at its rate, and a round trip per round.
#[test]
fn loss__rounds_of_a_buffer_grow_with_the_logarithm() {
    let keys = "demand = \"8 Mb/s\"\nsize = \"28.8 MB\"\n[[variant]]\nlabel = \"loss\"\nnode.d.receive_loss = 0.01";
    let run = run(keys, "buffers = 1");
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 28_800_000);
    let each_s = (session.completed_s.unwrap() + 0.5) / 30.0;
    let rounds = each_s - 1.0;
    println!("{rounds} rounds, formula {}", netblt_rounds(1000.0, 0.01));
    assert!((rounds - netblt_rounds(1000.0, 0.01)).abs() < 0.1, "{rounds}");
}

#[test]
fn transfer__under_loss_both_ways_is_complete() {
    let keys = "demand = \"40 Mb/s\"\nsize = \"10 MB\"\n[[variant]]\nlabel = \"loss\"\nnode.d.loss = 0.1";
    let session = &run(keys, "").summary.sessions[0];
    assert_eq!(session.delivered_bytes, 10_000_000);
    assert!(session.completed_s.unwrap() < 60.0, "{session:?}");
}

#[test]
fn session__without_a_rate_is_refused() {
    let error = try_run("size = \"1 MB\"", "", (1, 2)).unwrap_err();
    assert!(error.to_string().contains("a demand") && error.hint().is_some(), "{error}");
}
