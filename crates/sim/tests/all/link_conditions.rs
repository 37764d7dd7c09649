//! Conditions of links, in whole runs.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection, SessionSummary};
use fairwave_sim::{Settings, simulate};

/// A session over a link of 20 Mb/s and 20 ms each way with these keys.
fn over(link: &str, session: &str) -> Run {
    let text = format!(
        "name = \"conditions\"\nduration = \"20 s\"\nscheme = \"sack\"\n\
         packet = {{ payload = \"1460 B\", header = \"40 B\" }}\n\
         router = [{{ name = \"r1\" }}, {{ name = \"r2\" }}]\n\
         node = [{{ name = \"a\", capacity = \"1 Gb/s\", router = \"r1\" }}, \
         {{ name = \"b\", capacity = \"1 Gb/s\", router = \"r2\" }}]\n\
         [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"20 Mb/s\"\ndelay = \"20 ms\"\n{link}\n\
         [[link]]\nfrom = \"r2\"\nto = \"r1\"\ncapacity = \"20 Mb/s\"\ndelay = \"20 ms\"\n\
         [[session]]\nname = \"one\"\nfrom = \"a\"\nto = \"b\"\n{session}\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, Settings::default()).unwrap()
}

fn one(run: &Run) -> &SessionSummary {
    &run.summary.sessions[0]
}

#[test]
fn capacity__that_never_changes_is_that_of_the_link() {
    for queue in ["queue = \"30 packets\"", "queue = \"45 kB\"", "discipline = \"ecn-step\""] {
        let plain = over(queue, "");
        let steps = over(&format!("{queue}\nconditions = {{ capacity = [[\"0 s\", \"20 Mb/s\"]] }}"), "");
        let of = |run: &Run| (one(run).sent_packets, one(run).lost_packets, one(run).marked_packets);
        // A limit in bytes, and the threshold of marks, include the rest of the packet on the wire only at a plain link.
        if queue.contains("packets") {
            assert_eq!(of(&plain), of(&steps), "{queue}");
        }
        let link = |run: &Run| run.summary.links.iter().find(|link| &*link.name == "r1-r2").unwrap().clone();
        let (plain, steps) = (link(&plain), link(&steps));
        assert!((plain.mean_queue_packets - steps.mean_queue_packets).abs() < 1.5, "{plain:?} {steps:?}");
        assert!((plain.utilisation - steps.utilisation).abs() < 1e-3, "{plain:?} {steps:?}");
    }
}

#[test]
fn capacity__changes_and_outages_are_used_in_full() {
    // 20, 0 and 5 Mb/s for a second each: 25 / 3 Mb/s on average; the source offers more than that.
    let steps = "[[\"0 s\", \"20 Mb/s\"], [\"1 s\", \"0 Mb/s\"], [\"2 s\", \"5 Mb/s\"]]";
    let link = format!("queue = \"100 packets\"\nconditions = {{ capacity = {steps}, period = \"3 s\" }}");
    let run = over(&link, "scheme = \"cbr\"\ndemand = \"30 Mb/s\"");
    let mean = one(&run).delivered_bytes as f64 * 8.0 / 20.0 * 1500.0 / 1460.0;
    // Of 20 s, seven seconds at 20 Mb/s and six at 5.
    assert!((mean / (170e6 / 20.0) - 1.0).abs() < 0.01, "{mean}");
    let link = run.summary.links.iter().find(|link| &*link.name == "r1-r2").unwrap();
    assert!((0.99..1.01).contains(&link.utilisation), "{link:?}");
    // Of the window's 10 s, three seconds at 20 Mb/s and three at 5; a second at 5 has the largest load, 30.
    assert_eq!((link.capacity_bps, one(&run).max_min_bps), (7.5e6, 7.5e6));
    assert!((5.8..6.1).contains(&run.summary.metrics.peak_overload), "{:?}", run.summary.metrics);
}

#[test]
fn drop__loses_the_named_packets() {
    let run = over(
        "conditions = { drop = [400, 900] }\nqueue = \"5000 packets\"",
        "scheme = \"sack\"\noptions = { max_window = \"60 packets\" }",
    );
    assert_eq!((one(&run).lost_packets, one(&run).timeouts), (2, 0));
    assert_eq!(run.losses.len(), 2);
}

#[test]
fn policer__bounds_the_rate() {
    let run = over("conditions = { policer = [\"5 Mb/s\", \"30 kB\"] }", "");
    let rate = one(&run).wire_rate_bps;
    assert!(one(&run).lost_packets > 20 && (3e6..5.05e6).contains(&rate), "{rate} {:?}", one(&run));
}

#[test]
fn delay__follows_the_steps() {
    let run = over("conditions = { delay = [[\"0 s\", \"20 ms\"], [\"10 s\", \"70 ms\"]] }", "demand = \"1 Mb/s\"");
    // The summary covers the second half: 20 ms back and 70 ms there, and the transmission.
    let delays = one(&run).delays.as_ref().unwrap();
    let (mean, high) = (delays.rtt_mean_s.unwrap(), delays.rtt_p95_s.unwrap());
    assert!((mean - 0.0906).abs() < 5e-4 && (high - 0.0906).abs() < 5e-4, "{mean} {high}");
    assert_eq!(one(&run).lost_packets, 0);
}

#[test]
fn jitter_reorder_duplicate__lose_nothing() {
    for conditions in [
        "jitter = \"3 ms\"",
        "reorder = [0.02, \"2 ms\"]",
        "duplicate = 0.05",
        "jitter = \"1 ms\", reorder = [0.01, \"9 ms\"], duplicate = 0.01, burst_loss = [0.001, 0.3], loss = [[\"0 s\", 0.001]]",
    ] {
        let run = over(&format!("queue = \"4 bdp\"\nconditions = {{ {conditions} }}"), "size = \"2 MB\"");
        let session = one(&run);
        println!(
            "{conditions}: {:?} s, {} lost, {} sent again",
            session.completed_s, session.lost_packets, session.retransmitted_packets
        );
        assert_eq!(session.delivered_bytes, 2_000_000, "{conditions}");
        assert!(session.completed_s.is_some(), "{conditions}");
    }
}

/// Two leaves, two spines of 10 Mb/s and four sessions: packets on the way through each spine.
fn through_spines(ecmp: &str) -> [u64; 2] {
    let text = format!(
        "name = \"ecmp\"\nduration = \"5 s\"\nscheme = \"sack\"\necmp = \"{ecmp}\"\n\
         router = [{{ name = \"leaf{{1..2}}\" }}, {{ name = \"spine{{1..2}}\" }}]\n\
         node = [{{ name = \"a\", capacity = \"1 Gb/s\", router = \"leaf1\" }}, \
         {{ name = \"b\", capacity = \"1 Gb/s\", router = \"leaf2\" }}]\n\
         link = [{{ from = \"leaf{{1..2}}\", to = \"spine{{1..2}}\", capacity = \"10 Mb/s\", delay = \"1 ms\", \
         duplex = true }}]\nsession = [{{ from = \"a\", to = \"b\", count = 4 }}]\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}"));
    let run = simulate(&scenario, Settings::default()).unwrap();
    ["leaf1-spine1", "leaf1-spine2"].map(|name| {
        let link = run.summary.links.iter().find(|link| &*link.name == name);
        link.map_or(0, |link| (link.utilisation * 1e3) as u64)
    })
}

#[test]
fn ecmp__by_packet_loads_all_paths_alike() {
    let [one, other] = through_spines("packet");
    assert!(one > 800 && other > 800 && one.abs_diff(other) < 100, "{one} {other}");
}

#[test]
fn simulate__refuses_conditions_at_a_queue_that_needs_departures() {
    let text = "name = \"red\"\nduration = \"1 s\"\nscheme = \"sack\"\n\
                router = [{ name = \"r1\" }, { name = \"r2\" }]\n\
                node = [{ name = \"a\", router = \"r1\" }, { name = \"b\", router = \"r2\" }]\n\
                link = [{ from = \"r1\", to = \"r2\", capacity = \"1 Mb/s\", delay = \"1 ms\", duplex = true, \
                discipline = \"red\", conditions = { jitter = \"1 ms\" } }]\n\
                session = [{ from = \"a\", to = \"b\" }]\n";
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    let error = simulate(&scenario, Settings::default()).unwrap_err();
    assert!(error.to_string().starts_with("conditions of link \"r1-r2\""), "{error}");
}

#[test]
fn trace__delivers_1500_bytes_at_each_opportunity() {
    // 200 opportunities a second, in pairs: a packet of 1500 B at each, and none more for packets of 750 B.
    let trace = (1..=100).map(|n| format!("{0}\n{0}\n", n * 10)).collect::<Vec<_>>().concat();
    for (payload, header) in [("1460 B", "40 B"), ("710 B", "40 B")] {
        let text = format!(
            "name = \"trace\"\nduration = \"10 s\"\nscheme = \"cbr\"\n\
             packet = {{ payload = \"{payload}\", header = \"{header}\" }}\n\
             router = [{{ name = \"r1\" }}, {{ name = \"r2\" }}]\n\
             node = [{{ name = \"a\", capacity = \"1 Gb/s\", router = \"r1\" }}, \
             {{ name = \"b\", capacity = \"1 Gb/s\", router = \"r2\" }}]\n\
             [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"2 Mb/s\"\ndelay = \"1 ms\"\nqueue = \"100 packets\"\n\
             conditions = {{ trace = \"cell\" }}\n\
             [[link]]\nfrom = \"r2\"\nto = \"r1\"\ncapacity = \"2 Mb/s\"\ndelay = \"1 ms\"\n\
             [[session]]\nfrom = \"a\"\nto = \"b\"\ndemand = \"5 Mb/s\"\n"
        );
        let trace = trace.clone();
        let document =
            Document::parse("test.toml", text.as_bytes()).unwrap().with_files(move |_| Ok(trace.clone().into()));
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        let (scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}"));
        let run = simulate(&scenario, Settings::default()).unwrap();
        let wire_bytes = one(&run).wire_rate_bps * 5.0 / 8.0;
        // 5 s x 200 x 1500 B in the second half of the run.
        assert!((wire_bytes / 1.5e6 - 1.0).abs() < 0.003, "{wire_bytes}");
    }
}
