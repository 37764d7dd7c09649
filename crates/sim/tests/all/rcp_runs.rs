//! RCP compared with processor sharing: equal rates immediately, and transfer times that follow from their share of the
//! link.

#![allow(non_snake_case)]

use std::fmt::Write;

use fairwave_scenario::{Document, Run, Selection, Settings};
use fairwave_sim::simulate;
use fairwave_units::Time;

fn run(text: &str, window_s: (u64, u64)) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    let window = Some((Time::from_secs(window_s.0), Time::from_secs(window_s.1)));
    simulate(&scenario, Settings { window, ..Settings::default() }).unwrap()
}

/// Sessions between two routers with 100 Mb/s between them, in packets of 1000 B.
fn dumbbell(duration_s: u64, sessions: &str) -> String {
    format!(
        "name = \"rcp\"\nduration = \"{duration_s} s\"\nscheme = \"rcp\"\n[packet]\npayload = \"960 B\"\n\
         [[router]]\nname = \"r{{1..2}}\"\n\
         [[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r2\"\n\
         [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"100 Mb/s\"\ndelay = \"5 ms\"\nduplex = true\n\
         [[session]]\nfrom = \"a\"\nto = \"b\"\n{sessions}\n"
    )
}

#[test]
fn sessions__get_equal_shares_for_any_rtt() {
    for (keys, sessions) in [
        ("rtt = \"50 ms\"", 1.0),
        ("rtt = \"50 ms\"\ncount = 10", 10.0),
        ("rtt = { each = [\"20 ms\", \"50 ms\", \"100 ms\", \"200 ms\"] }\ncount = 4", 4.0),
    ] {
        let run = run(&dumbbell(20, keys), (10, 20));
        let link = &run.summary.links[0];
        println!("{link:?}");
        for session in &run.summary.sessions {
            println!("{} {}", session.wire_rate_bps, session.lost_packets);
            let share = session.wire_rate_bps / (100e6 / sessions);
            assert!((share - 1.0).abs() < 0.02, "{keys}: {share}");
        }
        assert!(link.utilisation > 0.98, "{keys}: {}", link.utilisation);
        assert!(link.mean_queue_packets < 20.0, "{keys}: {}", link.mean_queue_packets);
    }
}

/// A transfer in addition to four others that do not end: it requests its rate and receives it (a round trip), sends
/// 1250 packets of 8000 bits at it, and the last one arrives half a round trip later. The rate is a quarter of 100 Mb/s
/// when it asks and a fifth in the end: 0.4 s to 0.5 s for its 10 Mb. The excess of the first round trip has to drain,
/// for which the rate stays below a fifth for a while: up to a tenth longer than with exact sharing.
#[test]
fn transfer__takes_its_share_s_time_from_the_start() {
    let text = dumbbell(12, "rtt = \"50 ms\"\ncount = 4")
        + "[[session]]\nfrom = \"a\"\nto = \"b\"\nrtt = \"50 ms\"\nstart = \"10 s\"\nsize = \"1.2 MB\"\n";
    let run = run(&text, (10, 12));
    let took_s = run.summary.sessions[4].completed_s.unwrap() - 10.0;
    println!("{took_s}");
    assert!((1.5 * 0.05 + 0.4..1.1 * (1.5 * 0.05 + 0.5)).contains(&took_s), "{took_s}");
}

/// Ten sessions join a link that one has to itself: all start at its rate, the only one stated. Until they receive the
/// new rate a round trip later, ten times the capacity arrives in excess: 10 x 100 Mb/s x 50 ms, 6250 packets. The rate
/// falls as that builds up, and the queue has drained within seconds.
#[test]
fn queue__of_many_new_sessions_is_one_round_trip_and_drains() {
    let text = dumbbell(30, "rtt = \"50 ms\"").replace("duplex = true", "duplex = true\nqueue = \"100000 packets\"")
        + "[[session]]\nfrom = \"a\"\nto = \"b\"\nrtt = \"50 ms\"\nstart = \"10 s\"\ncount = 10\n";
    let run = run(&text, (15, 30));
    let link = &run.summary.links[0];
    println!("{link:?} {:?}", run.summary.metrics.jain);
    assert!((3000.0..9000.0).contains(&link.max_queue_packets), "{}", link.max_queue_packets);
    assert!(link.mean_queue_packets < 20.0, "{}", link.mean_queue_packets);
    assert!(link.utilisation > 0.98, "{}", link.utilisation);
    assert!(run.summary.metrics.jain > 0.999, "{}", run.summary.metrics.jain);
}

/// As above with room for 625 packets, a bandwidth-delay product: losses only cause retransmissions.
#[test]
fn losses__are_sent_again_and_change_no_rate() {
    let text = dumbbell(30, "rtt = \"50 ms\"")
        + "[[session]]\nfrom = \"a\"\nto = \"b\"\nrtt = \"50 ms\"\nstart = \"10 s\"\ncount = 10\nsize = \"10 MB\"\n";
    let run = run(&text, (15, 19));
    println!("{:?} {:?}", run.summary.links[0], run.summary.metrics.jain);
    assert!(run.summary.links[0].dropped_packets > 100);
    for session in &run.summary.sessions[1..] {
        // Ten transfers of 10.4 MB of packets at an eleventh of 100 Mb/s each: 9.2 s.
        let took_s = session.completed_s.unwrap() - 10.0;
        assert!((9.0..10.5).contains(&took_s), "{} {took_s}", session.name);
    }
}

/// Max-min: a session over three links of 50, 25 and 50 Mb/s, and one more on each. The middle one gives 12.5 Mb/s to
/// both, the others' own sessions have the rest. A link counts all arrivals, so that it finds the rate that fills it.
#[test]
fn several_links__are_shared_max_min() {
    let mut text = "name = \"rcp\"\nduration = \"20 s\"\nscheme = \"rcp\"\n[packet]\npayload = \"960 B\"\n\
                    [[router]]\nname = \"r{1..4}\"\n"
        .to_owned();
    for (session, (from, to)) in [(1, 4), (1, 2), (2, 3), (3, 4)].into_iter().enumerate() {
        write!(
            text,
            "[[node]]\nname = \"a{session}\"\nrouter = \"r{from}\"\n[[node]]\nname = \"b{session}\"\nrouter = \"r{to}\"\n\
             [[session]]\nfrom = \"a{session}\"\nto = \"b{session}\"\n"
        )
        .unwrap();
    }
    for (from, mbps) in [(1, 50), (2, 25), (3, 50)] {
        let to = from + 1;
        write!(
            text,
            "[[link]]\nfrom = \"r{from}\"\nto = \"r{to}\"\ncapacity = \"{mbps} Mb/s\"\ndelay = \"20 ms\"\nduplex = true\n"
        )
        .unwrap();
    }
    let run = run(&text, (10, 20));
    for (session, mbps) in run.summary.sessions.iter().zip([12.5, 37.5, 12.5, 37.5]) {
        let off = session.wire_rate_bps / 1e6 / mbps - 1.0;
        println!("{off}");
        assert!(off.abs() < 0.03, "{}: {off}", session.name);
    }
}
