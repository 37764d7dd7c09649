//! The options of TCP-like sessions, each compared with arithmetic.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_sim::{Settings, simulate};

/// Sessions of 1000 B packets without headers, over 100 ms and two links of 10 Gb/s (800 ns per packet each).
fn run(session: &str) -> Run {
    let text = format!(
        "name = \"options\"\nduration = \"60 s\"\n[packet]\nheader = \"0 B\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"10 Gb/s\"\nqueue = \"1 GB\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"10 Gb/s\"\nqueue = \"1 GB\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\nscheme = \"sack\"\n{session}\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap()
}

/// Time in seconds at which the only session has delivered all.
fn completed_s(session: &str) -> f64 {
    run(session).summary.sessions[0].completed_s.expect("the session ends")
}

#[track_caller]
fn close(got_s: f64, expected_s: f64, within_s: f64) {
    assert!((got_s - expected_s).abs() < within_s, "{got_s} s, expected {expected_s} s");
}

#[test]
fn demand__of_a_session_that_stopped_or_delivered_all_is_over() {
    // 80 kb/s are ten packets per second. After the last one the bucket stays full: a source that is polled whenever
    // the bucket has a packet would be polled without end.
    let stopped = run("demand = \"80 kb/s\"\nstart = \"1 s\"\nstop = \"3 s\"");
    let sent = stopped.summary.sessions[0].sent_packets;
    assert!((18..=22).contains(&sent), "{sent}");
    let completed = completed_s("demand = \"80 kb/s\"\nsize = \"10 kB\"");
    assert!((0.9..=1.1).contains(&completed), "{completed}");
}

#[test]
fn max_burst__limits_what_one_acknowledgement_sends() {
    // The window allows 10 packets initially, and two more at each acknowledgement: 10 + 4 in two rounds.
    let free = "options.initial_window = \"10 packets\"\nsize = \"14 kB\"";
    close(completed_s(free), 0.150, 50e-6);
    // Two at the start, then two at each acknowledgement: 2 + 4 + 8 in three rounds.
    close(completed_s(&format!("{free}\noptions.max_burst = \"2 packets\"")), 0.250, 50e-6);
    // One more packet needs a fourth round.
    let more = free.replace("14 kB", "15 kB");
    close(completed_s(&format!("{more}\noptions.max_burst = \"2 packets\"")), 0.350, 50e-6);
}

#[test]
fn max_burst__does_not_delay_later_offers() {
    // 8 Mb/s are 1000 packets of 1000 B per second: 100 per round trip, one at a time, none because of an
    // acknowledgement.
    let run = run("options.initial_window = \"200 packets\"\noptions.max_burst = \"1 packet\"\ndemand = \"8 Mb/s\"");
    let rate_bps = run.summary.sessions[0].wire_rate_bps;
    assert!((rate_bps / 8e6 - 1.0).abs() < 1e-3, "{rate_bps}");
}

#[test]
fn send_jitter__delays_each_session_by_its_own_draw() {
    // A packet each: 50 ms of propagation, two links, and a delay that is uniform up to 10 ms.
    let run = run("size = \"1 kB\"\ncount = 400\noptions.send_jitter = \"10 ms\"");
    let delays_s: Vec<f64> = run.summary.sessions.iter().map(|s| s.completed_s.unwrap() - 0.05).collect();
    assert!(delays_s.iter().all(|delay_s| (1e-6..0.0101).contains(delay_s)), "{delays_s:?}");
    // 5 ms +- 4 standard errors of 10 ms / sqrt(12 x 400) = 0.144 ms.
    close(delays_s.iter().sum::<f64>() / 400.0, 0.005, 0.0006);
}

#[test]
fn send_jitter__keeps_the_order_of_packets() {
    let run = run("size = \"10 MB\"\noptions.send_jitter = \"10 ms\"\noptions.max_window = \"100 packets\"");
    let session = &run.summary.sessions[0];
    // Reordered packets would look lost.
    assert_eq!((session.sent_packets, session.retransmitted_packets), (10_000, 0));
    assert!(session.completed_s.is_some());
}

#[test]
fn delayed_ack__answers_every_second_packet() {
    // A constant window of 100 packets, nothing lost. Data cross s:out and d:in, acknowledgements d:out and s:in.
    let window = "options.initial_window = \"100 packets\"\noptions.max_window = \"100 packets\"";
    let hops = |more: &str| run(&format!("{window}\n{more}")).summary.engine.packet_hops;
    assert_eq!(hops("size = \"10 MB\""), 2 * (10_000 + 10_000));
    assert_eq!(hops("size = \"10 MB\"\noptions.delayed_ack = true"), 2 * (10_000 + 5_000));
    // The last of three waits for its timer.
    assert_eq!(hops("size = \"3 kB\"\noptions.delayed_ack = true"), 2 * (3 + 2));
}

#[test]
fn delayed_ack__of_one_packet_comes_after_100_ms() {
    let one = "options.initial_window = \"1 packets\"\nsize = \"2 kB\"";
    close(completed_s(one), 0.150, 10e-6);
    close(completed_s(&format!("{one}\noptions.delayed_ack = true")), 0.250, 10e-6);
}

#[test]
fn pacing__spreads_a_round_over_the_rtt() {
    // Ten packets together and ten acknowledgements together: a window of 20, which is sent in one burst or 100 ms / (2
    // x 20) = 2.5 ms apart, the last 19 x 2.5 ms after the first.
    let two_rounds = "options.initial_window = \"10 packets\"\nsize = \"30 kB\"";
    close(completed_s(two_rounds), 0.150, 50e-6);
    close(completed_s(&format!("{two_rounds}\noptions.pacing = true")), 0.1975, 50e-6);
}

#[test]
fn pacing__leaves_the_rate_to_the_window() {
    // A window of 100 packets over 100 ms: 8 Mb/s, paced or not.
    for pacing in [false, true] {
        let run = run(&format!("options.max_window = \"100 packets\"\noptions.pacing = {pacing}"));
        let rate_bps = run.summary.sessions[0].wire_rate_bps;
        assert!((rate_bps / 8e6 - 1.0).abs() < 1e-3, "pacing {pacing}: {rate_bps}");
    }
}

#[test]
fn pacing__keeps_the_queue_short() {
    // Slow start to a window of 2000 packets through 10 Gb/s: each burst of a doubling round is queued at the source,
    // whereas a paced session's packets are at least 100 ms / 4000 = 25 us apart and take 0.8 us: only the initial two
    // packets ever queue.
    let queue = |pacing: bool| {
        let run = run(&format!(
            "options.initial_window = \"2 packets\"\noptions.max_window = \"2000 packets\"\noptions.delayed_ack = true\noptions.pacing = {pacing}"
        ));
        run.summary.links.iter().find(|link| &*link.name == "s:out").unwrap().max_queue_packets
    };
    let (paced, unpaced) = (queue(true), queue(false));
    assert!(paced <= 1.0 + 1e-3 && unpaced > 1.9, "paced {paced}, unpaced {unpaced}");
}
