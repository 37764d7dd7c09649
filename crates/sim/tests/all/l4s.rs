//! DCTCP and TCP Prague at queues that mark: rates, shares and delays.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_sim::{Settings, simulate};

/// Sessions of a scheme to a sink behind this receiving queue of 100 Mb/s, in packets of 1500 bytes; one for each
/// round-trip time in milliseconds.
fn run(scheme: &str, queue: &str, rtts_ms: &[u32]) -> Run {
    let sessions = (1..)
        .zip(rtts_ms)
        .map(|(at, rtt_ms)| format!("[[session]]\nfrom = \"s{at}\"\nto = \"d\"\nrtt = \"{rtt_ms} ms\"\n"));
    let text = format!(
        "name = \"l4s\"\nduration = \"40 s\"\nscheme = \"{scheme}\"\n\
         packet = {{ payload = \"1460 B\", header = \"40 B\" }}\n\
         [[node]]\nname = \"d\"\nreceive = \"100 Mb/s\"\nsend = \"1 Gb/s\"\nqueue = \"1000 packets\"\n{queue}\n\
         [[node]]\nname = \"s{{1..{}}}\"\ncapacity = \"1 Gb/s\"\n{}",
        rtts_ms.len().max(2),
        sessions.collect::<String>()
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, Settings::default()).unwrap()
}

/// The share of the first session in the rates of the first two.
fn first_share(run: &Run) -> f64 {
    let [first, second] = [0, 1].map(|at| run.summary.sessions[at].wire_rate_bps);
    first / (first + second)
}

/// RFC 9332: a queue of a step's 1 ms keeps the link full.
#[test]
fn prague__fills_the_link_with_a_queue_of_a_millisecond() {
    for rtt_ms in [5, 10, 25] {
        let run = run("prague", "discipline = \"dualpi2\"", &[rtt_ms]);
        let link = run.summary.links.iter().find(|link| &*link.name == "d:in").unwrap();
        // 1500 B at 100 Mb/s take 0.12 ms.
        let queue_ms = link.mean_queue_packets * 0.12;
        println!("{rtt_ms} ms: {} of the link, {queue_ms} ms", link.utilisation);
        assert!(link.utilisation >= 0.98, "{rtt_ms} ms: {}", link.utilisation);
        assert!(queue_ms < 1.2, "{rtt_ms} ms: {queue_ms} ms");
        assert_eq!(run.summary.sessions[0].lost_packets, 0);
    }
}

/// Round-trip times of 5 and 25 ms: DCTCP's rates are inverse to them, with the queue. Prague's would be equal for
/// independent marks (its own tests); the marks of a step come in bursts, and leave half of DCTCP's bias.
#[test]
fn prague__has_half_the_bias_of_dctcp_to_short_round_trips() {
    let bias = |run: &Run| run.summary.sessions[0].wire_rate_bps / run.summary.sessions[1].wire_rate_bps;
    let prague = bias(&run("prague", "discipline = \"dualpi2\"", &[5, 25]));
    let step = "discipline = \"ecn-step\"\naqm = { mark_from = \"9 packets\" }";
    let dctcp = bias(&run("dctcp", step, &[5, 25]));
    println!("prague {prague}, dctcp {dctcp}");
    // (25 + 1.08) / (5 + 1.08) = 4.29: nine packets of 0.12 ms.
    assert!((dctcp - 4.29).abs() < 0.3, "{dctcp}");
    assert!((0.9..2.3).contains(&prague), "{prague}");
}

/// Alizadeh et al. 2010: shares of equal paths converge.
#[test]
fn dctcp__two_sessions_converge_to_equal_shares() {
    let step = "discipline = \"ecn-step\"\naqm = { mark_from = \"20 packets\" }";
    let run = run("dctcp", step, &[10, 10]);
    let share = first_share(&run);
    println!("{share}");
    assert!((share - 0.5).abs() < 0.05, "{share}");
}
