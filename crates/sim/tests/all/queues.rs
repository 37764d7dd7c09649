//! Queues that act on delay, and marks, in whole runs.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, LinkSummary, LossKind, Run, Selection};
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

#[test]
fn marks__are_answered_once_per_window_without_loss() {
    for scheme in ["newreno", "sack", "cubic", "bic", "htcp", "vegas", "fast", "dctcp"] {
        let queue = "discipline = \"codel\"\naqm = { ecn = true }\nqueue = \"10000 packets\"";
        let run = bottleneck(scheme, queue, FOUR);
        let marked = bottleneck_link(&run).marked_packets.unwrap();
        let arrived: u64 = run.summary.sessions.iter().map(|session| session.marked_packets.unwrap()).sum();
        let lost: u64 = run.summary.sessions.iter().map(|session| session.lost_packets).sum();
        println!("{scheme}: {marked} marks, {} ms, {}", mean_ms(&run), bottleneck_link(&run).utilisation);
        assert!(lost == 0 && marked >= arrived && marked - arrived < 100, "{scheme}: {lost} {marked} {arrived}");
        assert_eq!(marked, run.queues.as_ref().unwrap().marked_packets.iter().sum::<u64>());
        // DCTCP has its own response, and FAST keeps its packets in the queue.
        if ["dctcp", "fast"].contains(&scheme) {
            continue;
        }
        assert!(scheme == "vegas" || marked > 20, "{scheme}: {marked}");
        assert!(mean_ms(&run) < 15.0, "{scheme}: {} ms", mean_ms(&run));
        let cuts = run.losses.iter().filter(|loss| loss.kind == LossKind::Mark).count() as u64;
        assert!(cuts <= marked && cuts * 3 >= marked, "{scheme}: {cuts} cuts for {marked} marks");
    }
}

#[test]
fn red__marks_instead_of_dropping() {
    let queue = |ecn: &str| format!("discipline = \"red\"\n{ecn}queue = \"500 packets\"");
    let plain = bottleneck("sack", &queue(""), FOUR);
    let marking = bottleneck("sack", &queue("aqm = { ecn = true }\n"), FOUR);
    assert!(bottleneck_link(&plain).dropped_packets > 100);
    // The rest is dropped above the upper threshold, at the start.
    assert!(bottleneck_link(&marking).dropped_packets < bottleneck_link(&plain).dropped_packets);
    assert!(bottleneck_link(&marking).marked_packets > Some(100), "{:?}", bottleneck_link(&marking));
}

/// DCTCP on 10 Gb/s and 100 us, with 1500 B packets: the queue every 10 us after 100 ms.
fn dctcp_queue(sessions: u32) -> Vec<f64> {
    let run = run(&format!(
        "name = \"dctcp\"\nduration = \"200 ms\"\nscheme = \"dctcp\"\nsample = \"10 us\"\n\
         packet = {{ payload = \"1460 B\", header = \"40 B\" }}\n\
         [[node]]\nname = \"d\"\nreceive = \"10 Gb/s\"\nsend = \"100 Gb/s\"\nqueue = \"1000 packets\"\n\
         discipline = \"ecn-step\"\naqm = {{ mark_from = \"65 packets\" }}\n\
         [[node]]\nname = \"s{{1..{sessions}}}\"\ncapacity = \"100 Gb/s\"\n\
         [[session]]\nfrom = \"s{{1..{sessions}}}\"\nto = \"d\"\nrtt = \"100 us\"\n"
    ));
    let link = run.summary.links.iter().position(|link| &*link.name == "d:in").unwrap();
    let queues = run.queues.unwrap();
    assert!(run.summary.links[link].utilisation > 0.999);
    queues.queue_packets.iter().skip(link).step_by(queues.links).skip(10_000).copied().collect()
}

/// The paper's sawtooth (Alizadeh et al. 2010, s3.3): amplitude sqrt(2 N (B + K)) / 2 below K + N, every
/// sqrt(2 (B + K) / N) / 2 round trips. B = 83.3 packets, K = 65.
#[test]
fn dctcp__queue_is_the_sawtooth_of_the_paper() {
    let queue = dctcp_queue(2);
    let (least, most) = bounds(&queue);
    // Falls from the threshold to near the bottom, in samples of 10 us; a round trip is B + K packets of 1.2 us.
    let (mut falls, mut was_full) = (0, false);
    for packets in &queue {
        was_full |= *packets >= 65.0;
        if was_full && *packets <= 57.0 {
            (falls, was_full) = (falls + 1, false);
        }
    }
    let period = queue.len() as f64 * 10.0 / f64::from(falls) / (148.3 * 1.2);
    println!("{least} to {most} packets, every {period} round trips");
    assert!((least - 54.8).abs() < 1.5 && (most - 67.0).abs() < 0.5, "{least} to {most}");
    assert!((period - 6.09).abs() < 0.3, "{period}");
}

/// Ten sessions: 47.8 to 75 packets. A window is whole packets in flight: when the ten fall, each rounds
/// down by up to one.
#[test]
fn dctcp__queue_of_ten_sessions() {
    let queue = dctcp_queue(10);
    let (least, most) = bounds(&queue);
    println!("{least} to {most} packets");
    assert!((37.8..48.8).contains(&least) && (most - 75.0).abs() < 1.0, "{least} to {most}");
}

fn bounds(queue: &[f64]) -> (f64, f64) {
    queue.iter().fold((f64::MAX, 0.0_f64), |(least, most), at| (least.min(*at), most.max(*at)))
}
