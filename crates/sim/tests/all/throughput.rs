//! One flow compared with theory.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_sim::{Settings, simulate};

fn run(text: &str) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    simulate(&scenario, Settings::default()).unwrap()
}

/// One flow of 1000 B packets over 100 ms with random loss, never limited by capacity: its mean window in packets.
fn window_at_loss(p: f64, scheme: &str, seed: u64) -> f64 {
    let run = run(&format!(
        "name = \"loss\"\nduration = \"2000 s\"\nscheme = \"{scheme}\"\nseed = {seed}\nsample = \"10 s\"\n\
         [packet]\nheader = \"0 B\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"10 Gb/s\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"10 Gb/s\"\nreceive_loss = {p}\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\n"
    ));
    run.summary.sessions[0].wire_rate_bps * 0.1 / 8000.0
}

#[test]
fn random_loss__gives_131_over_the_root_of_p() {
    for p in [1e-4, 3e-4, 1e-3] {
        let windows: Vec<f64> = (1..=3).map(|seed| window_at_loss(p, "sack", seed)).collect();
        let ratio = windows.iter().sum::<f64>() / 3.0 * p.sqrt();
        println!("p {p}: w sqrt(p) = {ratio}");
        assert!((ratio / 1.31 - 1.0).abs() < 0.06, "p {p}: w sqrt(p) = {ratio}, expected 1.31");
    }
}

/// Utilisation by one flow through 100 Mb/s with a queue of `buffer` BDPs.
fn utilisation(buffer: &str) -> f64 {
    let run = run(&format!(
        "name = \"buffer\"\nduration = \"400 s\"\nscheme = \"sack\"\nsample = \"1 s\"\n\
         [packet]\nheader = \"0 B\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"10 Gb/s\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nqueue = \"{buffer}\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"40 ms\"\n"
    ));
    let link = run.summary.links.iter().find(|link| &*link.name == "d:in").unwrap();
    println!("{buffer}: {}", link.utilisation);
    link.utilisation
}

#[test]
fn buffer__of_one_bdp_fills_the_link_and_none_leaves_a_quarter() {
    assert!(utilisation("1 bdp") > 0.995);
    assert!((utilisation("2 packets") - 0.75).abs() < 0.02);
}

#[test]
fn five_to_one__is_conserved_and_unfair() {
    let run = run("name = \"five\"\nduration = \"60 s\"\nscheme = \"sack\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\n\
         [[node]]\nname = \"s{1..5}\"\ncapacity = \"100 Mb/s\"\n\
         [[session]]\nfrom = \"s{1..5}\"\nto = \"d\"\nrtt = { each = [\"10 ms\", \"30 ms\", \"50 ms\", \"70 ms\", \"90 ms\"] }\n");
    println!("{:#?}", run.summary.metrics);
    for session in &run.summary.sessions {
        println!("{} {} Mb/s, max-min {}", session.name, session.wire_rate_bps / 1e6, session.max_min_bps / 1e6);
    }
    assert!(run.summary.metrics.jain < 0.95);
}

/// Below the capacity a constant rate is carried completely.
#[test]
fn constant_rate__is_carried_completely() {
    let run = run("name = \"cbr\"\nduration = \"20 s\"\nscheme = \"cbr\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"500 Mb/s\"\n\
         [[node]]\nname = \"s{1..5}\"\ncapacity = \"500 Mb/s\"\n\
         [[session]]\nfrom = \"s{1..5}\"\nto = \"d\"\nrtt = \"20 ms\"\ndemand = \"96 Mb/s\"\n");
    for session in &run.summary.sessions {
        assert!((session.wire_rate_bps / 96e6 - 1.0).abs() < 1e-4, "{}", session.wire_rate_bps);
        assert_eq!(session.lost_packets, 0);
    }
}

/// Loss is repaired: every byte arrives, and lost packets were sent again.
#[test]
fn finite_size__is_delivered_once_and_completely() {
    let run = run("name = \"size\"\nduration = \"20 s\"\nscheme = \"newreno\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"50 Mb/s\"\nreceive_loss = 0.001\n\
         [[node]]\nname = \"s\"\ncapacity = \"100 Mb/s\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\nsize = \"10 MB\"\n");
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 10_000_000);
    assert!(session.lost_packets > 0 && session.completed_s.is_some(), "{session:?}");
    assert!(session.retransmitted_packets >= session.lost_packets, "{session:?}");
}

/// The timer runs 3 s before the first round trip is known, and 1 s from then on (SACK's minimum, RFC 6298 s2.4): a
/// time-out that is due sooner than the previous one is not missed.
#[test]
fn time_out__fires_when_due() {
    // Of six packets sent together, one on the wire and four in the queue, the last is dropped; no later packet reveals
    // that.
    let run = run("name = \"tail\"\nduration = \"20 s\"\nscheme = \"sack\"\n[packet]\nheader = \"0 B\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"8 Mb/s\"\nqueue = \"4 packets\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\nsize = \"6 kB\"\noptions.initial_window = \"6 packets\"\nscheme = \"sack\"\n");
    let session = &run.summary.sessions[0];
    assert_eq!((session.lost_packets, session.retransmitted_packets), (1, 1));
    // RTTs of 101 to 105 ms: SRTT + 4 RTTVAR is below the minimum time-out of 1 s (RFC 6298 s2.4). That time after the
    // fifth acknowledgement, at 105 ms, the sixth packet is sent again: it takes 1 + 50 ms.
    let completed_s = session.completed_s.unwrap();
    assert!((completed_s - 1.156).abs() < 0.001, "{completed_s}");
}
