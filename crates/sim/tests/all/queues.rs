//! Queues that act on delay, and marks, in whole runs.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, LinkSummary, Run, Selection};
use fairwave_sim::{Record, Settings, simulate};

fn run(text: &str) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap_or_else(|error| panic!("{error}"));
    let record = Record { queues: true, ..Record::default() };
    simulate(&scenario, Settings { record, ..Settings::default() }).unwrap()
}

/// A receiver of 20 Mb/s with this queue, and sessions of 40 ms.
fn bottleneck(scheme: &str, queue: &str, sessions: &str) -> Run {
    run(&format!(
        "name = \"queues\"\nduration = \"30 s\"\nscheme = \"{scheme}\"\npacket = {{ payload = \"1460 B\", header = \"40 B\" }}\n\
         [[node]]\nname = \"d\"\nreceive = \"20 Mb/s\"\nsend = \"1 Gb/s\"\n{queue}\n\
         [[node]]\nname = \"s{{1..4}}\"\ncapacity = \"1 Gb/s\"\n{sessions}"
    ))
}

/// Four equal sessions.
const FOUR: &str = "[[session]]\nfrom = \"s{1..4}\"\nto = \"d\"\nrtt = \"40 ms\"\n";

fn bottleneck_link(run: &Run) -> &LinkSummary {
    run.summary.links.iter().find(|link| &*link.name == "d:in").unwrap()
}

/// Mean queueing delay of the bottleneck, in ms: 1500 B at 20 Mb/s take 0.6 ms.
fn mean_ms(run: &Run) -> f64 {
    bottleneck_link(run).mean_queue_packets * 0.6
}

#[test]
fn delay__is_near_the_target_of_the_discipline() {
    let tail = bottleneck("cubic", "queue = \"1000 packets\"", FOUR);
    assert!(mean_ms(&tail) > 100.0, "{}", mean_ms(&tail));
    for (discipline, from_ms, to_ms) in
        [("codel", 2.0, 12.0), ("fq-codel", 2.0, 14.0), ("pie", 8.0, 20.0), ("dualpi2", 8.0, 20.0)]
    {
        let run = bottleneck("cubic", &format!("discipline = \"{discipline}\""), FOUR);
        let link = bottleneck_link(&run);
        println!(
            "{discipline}: {} ms, {} of the link, {} drops",
            mean_ms(&run),
            link.utilisation,
            link.dropped_packets
        );
        assert!((from_ms..to_ms).contains(&mean_ms(&run)), "{discipline}: {} ms", mean_ms(&run));
        assert!(link.utilisation > 0.93, "{discipline}: {}", link.utilisation);
    }
}

#[test]
fn fq__protects_from_an_unresponsive_flow() {
    let sessions = "[[session]]\nname = \"tcp\"\nfrom = \"s1\"\nto = \"d\"\nrtt = \"40 ms\"\n\
                    [[session]]\nname = \"cbr\"\nfrom = \"s2\"\nto = \"d\"\nrtt = \"40 ms\"\nscheme = \"cbr\"\n\
                    demand = \"19 Mb/s\"\n";
    let share = |discipline: &str| {
        bottleneck("cubic", &format!("discipline = \"{discipline}\""), sessions).summary.sessions[0].wire_rate_bps
            / 20e6
    };
    assert!(share("drop-tail") < 0.2, "{}", share("drop-tail"));
    for discipline in ["fq", "fq-codel"] {
        assert!((0.45..0.51).contains(&share(discipline)), "{discipline}: {}", share(discipline));
    }
}

#[test]
fn counts__of_a_queue_with_its_own_clock_agree() {
    let run = bottleneck("sack", "discipline = \"codel\"", FOUR);
    let queues = run.queues.as_ref().unwrap();
    let lost: u64 = run.summary.sessions.iter().map(|session| session.lost_packets).sum();
    assert_eq!(lost, bottleneck_link(&run).dropped_packets);
    assert_eq!(lost, queues.dropped_packets.iter().sum::<u64>());
    assert!(queues.marked_packets.is_empty() && bottleneck_link(&run).marked_packets.is_none());
}
