//! GTP packet by packet: the behaviour of its hosts in the simulator, compared with arithmetic.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Record, Run, Scenario, Selection, Settings, TraceContent, TraceEvent, TraceKind};
use fairwave_sim::{SimError, simulate};

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    document.build(&case).unwrap().0
}

fn run(text: &str) -> Run {
    let record = Record { rates: true, queues: true, ..Record::default() };
    simulate(&scenario(text), Settings { record, ..Settings::default() }).unwrap()
}

/// Two sources and a sink of 100 Mb/s, 20 ms and 40 ms apart.
fn two(options: &str, sink: &str, sessions: &str) -> String {
    format!(
        "name = \"two\"\nduration = \"5 s\"\nscheme = \"gtp\"\n[options]\nalpha = 0.2\n{options}\n\
         [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\n{sink}\n\
         [[node]]\nname = \"s{{1..2}}\"\ncapacity = \"100 Mb/s\"\n\
         [[session]]\nname = \"a\"\nfrom = \"s1\"\nto = \"d\"\nrtt = \"20 ms\"\n{sessions}\n\
         [[session]]\nname = \"b\"\nfrom = \"s2\"\nto = \"d\"\nrtt = \"40 ms\"\n"
    )
}

fn final_mbps(run: &Run) -> Vec<f64> {
    run.summary.sessions.iter().map(|session| session.final_wire_rate_bps / 1e6).collect()
}

fn assert_near(got: &[f64], expected: &[f64], share: f64) {
    let is_near = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= share * expected);
    assert!(is_near && got.len() == expected.len(), "{got:?} is not {expected:?}");
}

#[test]
fn rates__are_the_fair_ones_and_count_ip_packets() {
    let run = run(&two("", "", ""));
    assert_near(&final_mbps(&run), &[50.0, 50.0], 0.01);
    for session in &run.summary.sessions {
        // 1000 B of payload in 1077 B: IP and UDP 28, header 17, piece header 16, seal 16.
        assert_near(&[session.wire_rate_bps / session.rate_bps], &[1.077], 0.001);
        assert_eq!((session.lost_packets, session.retransmitted_packets), (0, 0));
        assert!(session.delivered_bytes > 20_000_000);
    }
    assert_eq!(run.losses, []);
}

#[test]
fn queues__are_counted_in_packets_as_links_carry_them() {
    // A packet of GTP is 1077 B on a link. Until they know of each other, the two sessions fill the sink's queue.
    let run = run(&two("", "", ""));
    let queues = run.queues.unwrap();
    let waiting = queues.queue_bytes.iter().zip(&queues.queue_packets).filter(|(bytes, _)| **bytes > 0.0);
    assert!(waiting.clone().count() > 0);
    for (bytes, packets) in waiting {
        assert_eq!(*packets, bytes / 1077.0);
    }
}

#[test]
fn queues__of_one_bdp_hold_no_more_than_that_on_the_link() {
    // 100 Mb/s x 40 ms = 500 000 B are 464 packets of 1077 B. Sources of a constant rate fill the queue, with 1040 B
    // each.
    let flood = "scheme = \"cbr\"\ndemand = \"99 Mb/s\"";
    let other = format!("[[session]]\nfrom = \"s2\"\nto = \"d\"\nrtt = \"20 ms\"\n{flood}");
    let run = run(&two("", "queue = \"1 bdp\"", &format!("{flood}\n{other}")));
    let sink = run.summary.links.iter().find(|link| &*link.name == "d:in").unwrap();
    let largest_bytes = sink.max_queue_packets * 1077.0;
    assert!(
        sink.dropped_packets > 0 && (464.0 * 1040.0 - 1040.0..=500_000.0).contains(&largest_bytes),
        "{largest_bytes}"
    );
}

#[test]
fn start__takes_three_round_trips() {
    let text = two("", "", "");
    let mut first = None;
    let mut tell = |event: &TraceEvent<'_>| {
        let is_data = matches!(event.packet.content, TraceContent::Data(0));
        if first.is_none() && is_data && event.what == TraceKind::Arrived {
            first = Some(event.time.as_secs_f64());
        }
    };
    simulate(&scenario(&text), Settings { trace: Some(&mut tell), ..Settings::default() }).unwrap();
    // A cookie and an answer, 40 ms; the request and the data, 20 ms; each packet's own time, and a tick at each end.
    let first = first.unwrap();
    assert!((0.06..0.06 + 2.0 * 0.04 + 0.002).contains(&first), "{first}");
}

#[test]
fn rates_csv__has_the_rates_known_to_hosts() {
    let run = run(&two("", "", ""));
    let rates = run.rates.unwrap();
    let last = (rates.ends.len() - 1) * 2;
    for at in [last, last + 1] {
        assert_near(&[rates.measured_bps[at], rates.sink_expected_bps[at], rates.target_bps[at]], &[5e7; 3], 0.02);
        // A source with one session allows it all the capacity that the session does not use, and no more.
        assert!(rates.source_expected_bps[at] > 5.5e7 && rates.source_expected_bps[at] <= 1e8);
        assert_near(&[rates.expected_bps(last / 2, at - last)], &[5e7], 0.02);
    }
    // Before the sessions are open no rates are known, and the measured rates count, not the grants.
    assert!(rates.source_expected_bps[0].is_nan() || rates.source_expected_bps[0] < 1e8);
    assert!(rates.measured_bps.iter().all(|bps| bps.is_nan() || *bps < 1.1e8));
}

#[test]
fn demand__is_followed_by_its_steps() {
    let run = run(&two("", "", "demand = [[\"0 s\", \"10 Mb/s\"], [\"2 s\", \"30 Mb/s\"]]\n"));
    let rates = run.rates.unwrap();
    let at = |s: usize, session: usize| rates.wire_rate_bps[(s * 10 - 1) * 2 + session] / 1e6;
    // 100 - 10, and 100 - 30.
    assert_near(&[at(2, 0), at(2, 1), at(5, 0), at(5, 1)], &[10.0, 90.0, 30.0, 70.0], 0.02);
}

#[test]
fn size__is_delivered_once_and_the_rest_goes_to_the_other() {
    let run = run(&two("", "", "size = \"5 MB\"\n"));
    let [a, b] = &run.summary.sessions[..] else { panic!("two sessions") };
    assert_eq!(a.delivered_bytes, 5_000_000);
    // At most 50 Mb/s of 1077 B per 1000 B: at least 0.86 s.
    assert!((0.86..2.5).contains(&a.completed_s.unwrap()), "{:?}", a.completed_s);
    assert_near(&[b.final_wire_rate_bps], &[1e8], 0.01);
    assert_eq!(b.completed_s, None);
}

#[test]
fn stop__ends_a_session_at_its_source() {
    let run = run(&two("", "", "stop = \"2 s\"\n"));
    let rates = run.rates.unwrap();
    // Packets in flight at 2 s arrive 10 ms and a queue later.
    assert!((22..rates.ends.len()).all(|sample| rates.wire_rate_bps[sample * 2] == 0.0));
    assert!(rates.source_expected_bps[25 * 2].is_nan() && rates.measured_bps[25 * 2].is_nan());
    assert_near(&[run.summary.sessions[1].final_wire_rate_bps], &[1e8], 0.01);
}

#[test]
fn gtp_share__leaves_its_part_to_tcp() {
    let tcp = "[[session]]\nname = \"tcp\"\nfrom = \"s1\"\nto = \"d\"\nrtt = \"4 ms\"\nscheme = \"newreno\"\noptions.min_rto = \"200 ms\"\n";
    let text = two("interval = \"20 ms\"", "gtp_share = 0.8\nqueue = \"200 packets\"", tcp);
    let run = run(&text);
    // 80 / 2 each; TCP uses most of the rest.
    let rates = final_mbps(&run);
    assert_near(&[rates[0], rates[2]], &[40.0, 40.0], 0.02);
    assert!((15.0..20.5).contains(&rates[1]), "{rates:?}");
}

#[test]
fn yield__leaves_tcp_its_part_and_uses_the_rest() {
    let tcp = |session: &str| {
        format!(
            "[[session]]\nname = \"tcp\"\nfrom = \"s1\"\nto = \"d\"\nrtt = \"4 ms\"\nscheme = \"newreno\"\n{session}\n"
        )
    };
    let usual = "yield = 1\nqueue = \"200 packets\"";
    // TCP would also fill a host's queue at its own card.
    let sources = "name = \"s{1..2}\"\n";
    let two = |options, sink, sessions: &str| {
        two(options, sink, sessions).replace(sources, &format!("{sources}queue = \"200 packets\"\n"))
    };
    // As one group TCP has half, and the two sessions of GTP a quarter each.
    let both = final_mbps(&run(&two("interval = \"20 ms\"", usual, &tcp(""))));
    assert!((40.0..60.0).contains(&both[1]), "{both:?}");
    assert!(both.iter().sum::<f64>() > 95.0, "{both:?}");
    assert_near(&[both[0]], &[both[2]], 0.05);
    // GTP takes the capacity that TCP does not use: from 2 s on TCP does not run, and before it may send 20 Mb/s.
    let gone = final_mbps(&run(&two("interval = \"20 ms\"", usual, &tcp("stop = \"2 s\""))));
    assert_near(&[gone[0], gone[2]], &[50.0, 50.0], 0.02);
    let limited = final_mbps(&run(&two("interval = \"20 ms\"", usual, &tcp("demand = \"20 Mb/s\""))));
    assert_near(&[limited[0], limited[2]], &[40.0, 40.0], 0.05);
    assert_near(&[limited[1]], &[20.0], 0.05);
}

#[test]
fn yield__without_other_traffic_changes_nothing() {
    let rates = |sink: &str| {
        let rates = run(&two("interval = \"20 ms\"", sink, "")).rates.unwrap();
        rates.wire_rate_bps
    };
    // Apart from rounding: groups sum the use of their sessions.
    for (with, without) in rates("yield = 1").iter().zip(&rates("")) {
        assert!((with - without).abs() <= 2e-3 * 1e8, "{with} {without}");
    }
}

#[test]
fn yield__is_rejected_for_other_rules() {
    let text = "name = \"y\"\nduration = \"1 s\"\nscheme = \"tally\"\n[[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nyield = 1\n\
                [[node]]\nname = \"s\"\ncapacity = \"100 Mb/s\"\n[[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"10 ms\"\n";
    let error = simulate(&scenario(text), Settings::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("yield of node \"d\", whose sessions run \"tally\", is not supported by the packet model"),
        "{error}"
    );
}

#[test]
fn loss__is_repaired_and_changes_no_rate() {
    let run = run(&two("", "receive_loss = 0.001", "size = \"20 MB\"\n"));
    let [a, b] = &run.summary.sessions[..] else { panic!("two sessions") };
    assert_eq!(a.delivered_bytes, 20_000_000);
    assert!(a.completed_s.is_some() && a.retransmitted_packets > 0);
    assert!(a.lost_packets <= a.retransmitted_packets, "{a:?}");
    // Lost packets do not arrive: one in a thousand.
    assert_near(&[b.final_wire_rate_bps], &[1e8 * 0.999], 0.01);
}

#[test]
fn drain__with_a_buffer_of_a_round_trip_loses_nothing() {
    for seed in 1..=4 {
        // 100 Mb/s x 40 ms are 500 kB; ten sessions start at once.
        let text = format!(
            "name = \"drain\"\nduration = \"5 s\"\nscheme = \"gtp\"\nseed = {seed}\n[options]\ndrain = true\n\
             [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nqueue = \"500 kB\"\n\
             [[node]]\nname = \"s{{1..10}}\"\ncapacity = \"100 Mb/s\"\nqueue = \"500 kB\"\n\
             [[session]]\nfrom = \"s{{1..10}}\"\nto = \"d\"\nrtt = {{ uniform = [\"1 ms\", \"40 ms\"] }}\n"
        );
        let run = run(&text);
        let dropped: u64 = run.summary.links.iter().map(|link| link.dropped_packets).sum();
        assert_eq!(dropped, 0, "seed {seed}");
        assert!(run.summary.metrics.gap_to_max_min < 0.01, "seed {seed}: {:?}", run.summary.metrics);
    }
}

#[test]
fn wire__is_the_same_run() {
    for loss in ["", "receive_loss = 0.01"] {
        let [values, mut bytes] =
            ["wire = false", "wire = true"].map(|wire| run(&two(wire, loss, "size = \"3 MB\"\nstart = \"0.1 s\"\n")));
        // The option itself is in the summary.
        assert_ne!(values.summary.options, bytes.summary.options);
        bytes.summary.options.clone_from(&values.summary.options);
        for (bytes, values) in bytes.summary.schemes.iter_mut().zip(&values.summary.schemes) {
            bytes.options.clone_from(&values.options);
        }
        assert_eq!(format!("{:?}", values.summary), format!("{:?}", bytes.summary));
        assert_eq!(format!("{:?}", values.rates), format!("{:?}", bytes.rates));
    }
}

#[test]
fn shared__a_session_keeps_to_its_path_as_well() {
    let [dedicated, shared] = ["dedicated", "shared"]
        .map(|path| run(&two(&format!("path = \"{path}\"\ninterval = \"20 ms\""), "queue = \"200 packets\"", "")));
    // Session b in the second sample, 100 ms to 200 ms: its source may send 20 Mb/s immediately, or 32 packets in 40
    // ms, 6.9 Mb/s, and then up to three times that per round trip.
    let start = |run: &Run| run.rates.as_ref().unwrap().wire_rate_bps[3];
    assert!(
        start(&shared) > 0.0 && start(&shared) < 0.9 * start(&dedicated),
        "{} {}",
        start(&shared),
        start(&dedicated)
    );
    assert_near(&final_mbps(&shared), &[50.0, 50.0], 0.01);
}

#[test]
fn refusals__name_the_missing_feature() {
    let refusal = |text: &str| simulate(&scenario(text), Settings::default()).unwrap_err().to_string();
    let unlimited = two("", "", "").replace("100 Mb/s", "inf");
    assert!(refusal(&unlimited).contains("needs a capacity at its source or its sink"), "{}", refusal(&unlimited));
    let rated = two("", "", "initial_rate = \"1 Mb/s\"\n");
    assert!(refusal(&rated).contains("is not supported by the packet model"), "{}", refusal(&rated));
    let mixed = two("", "", "scheme = \"gtp-printed\"\n");
    let error = simulate(&scenario(&mixed), Settings::default()).unwrap_err();
    assert!(matches!(&error, SimError::Mixed { node, .. } if &**node == "d"), "{error}");
}

#[test]
fn crowd__more_sessions_than_a_host_supports_are_rejected() {
    let run = |sessions: &str| {
        let text = format!(
            "name = \"crowd\"\nduration = \"1 ms\"\nsample = \"1 ms\"\n\
             [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n{sessions}"
        );
        simulate(&scenario(&text), Settings::default())
    };
    let one = "[[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\n";
    // A host has at most 65536 sessions.
    let error = run(&format!("{one}count = 65537\n")).unwrap_err();
    assert!(matches!(&error, SimError::Crowded { node, sessions: 65_537 } if &**node == "s"), "{error}");
    assert!(error.hint().is_some());
    // One of them stops at the instant at which another one starts: both have room.
    let (first, rest) = ("start = \"1 s\"\nstop = \"2 s\"\n", "start = \"2 s\"\ncount = 65536\n");
    run(&format!("{one}{first}{one}{rest}")).unwrap();
}

#[test]
fn converged__ignores_sessions_without_demand() {
    // A session that leaves its own sink, or has zero demand, in the middle of the last sample; the others have reached
    // their rates long before.
    for leaves in ["stop = \"4.95 s\"", "demand = [[\"0 s\", \"50 Mb/s\"], [\"4.95 s\", \"0 Mb/s\"]]"] {
        let third = format!(
            "\n[[node]]\nname = \"s3\"\ncapacity = \"100 Mb/s\"\n[[node]]\nname = \"d3\"\ncapacity = \"100 Mb/s\"\n\
             [[session]]\nfrom = \"s3\"\nto = \"d3\"\nrtt = \"20 ms\"\n{leaves}\n"
        );
        let run = run(&(two("", "", "") + &third));
        assert_near(&final_mbps(&run)[..2], &[50.0, 50.0], 0.01);
        let at_s = run.summary.metrics.converged_s;
        assert!(at_s.is_some_and(|at_s| at_s < 4.0), "{leaves}: {at_s:?}");
    }
}

#[test]
fn converged__is_none_without_demands() {
    let text = two("", "", "demand = \"0 Mb/s\"").replace("name = \"b\"", "name = \"b\"\ndemand = \"0 Mb/s\"");
    assert_eq!(run(&text).summary.metrics.converged_s, None);
}
