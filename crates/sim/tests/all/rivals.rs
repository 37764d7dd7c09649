//! TCP's rules in whole runs, compared with their RFCs and arithmetic: recovery, timers, applications that limit the
//! sender, and sessions that share a queue by symmetry.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Record, Run, Selection};
use fairwave_sim::{Settings, simulate};

fn run(text: &str) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    let window = Some((fairwave_units::Time::ZERO, fairwave_units::Time::ZERO.saturating_add(scenario.duration)));
    let record = Record { rates: true, ..Record::default() };
    simulate(&scenario, Settings { window, record, ..Settings::default() }).unwrap()
}

/// One session over 20 Mb/s; `session` and `options` are further lines of their tables.
fn lone(scheme: &str, rtt_ms: u32, queue: &str, duration: &str, options: &str, session: &str) -> Run {
    run(&format!(
        "name = \"lone\"\nduration = \"{duration}\"\nscheme = \"{scheme}\"\nsample = \"100 ms\"\n[options]\n{options}\n\
         [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"20 Mb/s\"\nqueue = \"{queue}\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"{rtt_ms} ms\"\n{session}\n"
    ))
}

/// The answer to an old retransmission made a time-out during a recovery look spurious.
#[test]
fn newreno__fills_a_link_with_a_queue_of_a_bdp() {
    for (rtt_ms, queue) in [(20, "1 bdp"), (20, "3 bdp"), (100, "1 bdp"), (100, "3 bdp"), (200, "2 bdp")] {
        let run = lone("newreno", rtt_ms, queue, "60 s", "sack = false", "");
        let session = &run.summary.sessions[0];
        // Slow start's overshoot takes some seconds to be repaired without SACK, a packet per round trip.
        assert!(session.wire_rate_bps > 0.7 * 20e6, "{rtt_ms} ms, {queue}: {session:?}");
    }
}

/// RFC 6298 s2.1: 1 s before the first sample; a scenario of 2004 may ask for 3 s.
#[test]
fn initial_rto__repeats_a_lost_first_packet() {
    for (options, least_s) in [("", 1.0), ("initial_rto = \"3 s\"", 3.0)] {
        let run = run(&format!(
            "name = \"first\"\nduration = \"20 s\"\nscheme = \"sack\"\n[options]\n{options}\n\
             [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\nreceive_loss = 0.3\n\
             [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\nsize = \"1000 B\"\ncount = 100\n"
        ));
        let late: Vec<f64> = run.summary.sessions.iter().filter_map(|s| s.completion_s).filter(|s| *s > 0.1).collect();
        let first = late.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(late.len() > 10 && (least_s..least_s + 0.1).contains(&first), "{options}: {first}");
    }
}

/// Linux's `tcp_is_cwnd_limited`: slow start continues up to twice the application's use.
#[test]
fn demand__is_reached_by_doubling() {
    for scheme in ["newreno", "sack", "cubic", "htcp", "bic", "hstcp", "stcp", "vegas", "fast"] {
        let run = run(&format!(
            "name = \"ramp\"\nduration = \"8 s\"\nscheme = \"{scheme}\"\n\
             [[node]]\nname = \"s\"\ncapacity = \"10 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\nqueue = \"2000 packets\"\n\
             [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\ndemand = \"40 Mb/s\"\n"
        ));
        // From 0.9 s on at 40 Mb/s: seven eighths of 8 s; four fifths leave room for Vegas, which doubles every other
        // round.
        let rate = run.summary.sessions[0].wire_rate_bps;
        assert!(rate > 0.75 * 40e6, "{scheme}: {rate}");
    }
}

/// RFC 5681 s4.1: after a minute of silence the first flight is the initial window, not a window of two BDP.
#[test]
fn idle__restarts_from_the_initial_window() {
    let silence = "demand = [[\"0 s\", \"inf\"], [\"30 s\", \"0 Mb/s\"], [\"90 s\", \"inf\"]]";
    for scheme in ["newreno", "sack", "cubic", "htcp", "bic", "hstcp", "stcp", "vegas", "fast"] {
        // Arrivals of the first 100 ms: half of that is propagation. Two packets are 166 kb/s.
        let first_bps = |options| {
            let run = lone(scheme, 100, "2 bdp", "92 s", options, silence);
            run.rates.expect("recorded").wire_rate_bps[900]
        };
        assert!((1.0..200e3).contains(&first_bps("")), "{scheme}: {}", first_bps(""));
        assert!(first_bps("idle_restart = false") > 5e6, "{scheme}: {}", first_bps("idle_restart = false"));
    }
}

/// By symmetry each loses a sixth; with phase effects all losses hit one.
#[test]
fn cbr__equal_rates_have_equal_losses() {
    for sources in [2, 4, 10] {
        let run = run(&format!(
            "name = \"equal\"\nduration = \"30 s\"\nscheme = \"cbr\"\n\
             [[node]]\nname = \"s{{1..{sources}}}\"\ncapacity = \"1 Gb/s\"\n\
             [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nqueue = \"50 packets\"\n\
             [[session]]\nfrom = \"s{{1..{sources}}}\"\nto = \"d\"\nrtt = \"10 ms\"\ndemand = \"{} kb/s\"\n",
            120_000 / sources
        ));
        for session in &run.summary.sessions {
            let lost = session.lost_packets as f64 / session.sent_packets as f64;
            assert!((0.1..0.25).contains(&lost), "{sources} sources: {lost}");
        }
    }
}

/// Without dither the n-th packet leaves exactly at n x bits / rate.
#[test]
fn cbr__without_dither_is_exact() {
    for dither in [true, false] {
        let run = run(&format!(
            "name = \"exact\"\nduration = \"10 s\"\nscheme = \"cbr\"\noptions.dither = {dither}\n\
             [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n\
             [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"10 ms\"\ndemand = \"8.32 Mb/s\"\n"
        ));
        // 8320 bits per packet, 1000 packets per second.
        let sent = run.summary.sessions[0].sent_packets;
        assert!((9_999..=10_001).contains(&sent), "{dither}: {sent}");
    }
}

/// A sink's messages to all its sessions leave at one instant: its own queue has to hold them.
#[test]
fn hosts__share_a_sink_on_a_lan() {
    for (rule, senders, rtt, capacity) in [
        ("gtp", 20, "0.2 ms", 100),
        ("gtp", 50, "1 ms", 100),
        ("gtp", 200, "0.2 ms", 100),
        ("tally", 20, "0.2 ms", 100),
        ("tally", 200, "0.2 ms", 100),
    ] {
        let run = run(&format!(
            "name = \"many\"\nduration = \"10 s\"\nscheme = \"{rule}\"\n\
             [[node]]\nname = \"s{{1..{senders}}}\"\ncapacity = \"{capacity} Mb/s\"\n\
             [[node]]\nname = \"d\"\ncapacity = \"{capacity} Mb/s\"\n\
             [[session]]\nfrom = \"s{{1..{senders}}}\"\nto = \"d\"\nrtt = \"{rtt}\"\n"
        ));
        let out = run.summary.links.iter().find(|link| &*link.name == "d:out").expect("the sink sends messages");
        assert_eq!(out.dropped_packets, 0, "{rule}, {senders} senders");
        // 200 sessions of GTP start unequally (Jain's index of the whole run: 0.50): their final rates are compared.
        let rates: Vec<f64> = run
            .summary
            .sessions
            .iter()
            .map(|session| if senders > 50 { session.final_wire_rate_bps } else { session.wire_rate_bps })
            .collect();
        let sum: f64 = rates.iter().sum();
        let jain = sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>());
        assert!(jain > 0.95 && sum > 0.85e6 * f64::from(capacity), "{rule}, {senders} senders: {jain} {sum}");
    }
}
