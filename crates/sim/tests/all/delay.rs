//! Delay-based rules keep their target number of packets queued, in whole runs.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection, SessionSummary};
use fairwave_sim::{Settings, simulate};

/// Mean queue in packets and utilisation of a link of 100 Mb/s and 50 ms with this number of sessions.
fn link(scheme: &str, sessions: u32) -> (f64, f64) {
    let text = format!(
        "name = \"delay\"\nduration = \"60 s\"\nscheme = \"{scheme}\"\n\
         [[node]]\nname = \"s{{1..{sessions}}}\"\ncapacity = \"1 Gb/s\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nqueue = \"2000 packets\"\n\
         [[session]]\nfrom = \"s{{1..{sessions}}}\"\nto = \"d\"\nrtt = \"50 ms\"\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let run = simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap();
    let link = run.summary.links.iter().find(|link| &*link.name == "d:in").expect("the sink has a link");
    assert_eq!(link.dropped_packets, 0, "{scheme}");
    (link.mean_queue_packets, link.utilisation)
}

#[test]
fn vegas__keeps_between_alpha_and_beta_packets_queued() {
    let (queue, utilisation) = link("vegas", 1);
    assert!((1.0..=3.0).contains(&queue), "{queue}");
    assert!(utilisation > 0.99, "{utilisation}");
}

#[test]
fn fast__keeps_alpha_packets_of_each_session_queued() {
    // A hundred each. All start together: a later one would count the others' queue as propagation.
    for sessions in [1, 2] {
        let (queue, utilisation) = link("fast", sessions);
        let expected = 100.0 * f64::from(sessions);
        assert!((queue / expected - 1.0).abs() < 0.05, "{queue}");
        assert!(utilisation > 0.999, "{utilisation}");
    }
}

/// A session of that scheme from a source of 1 Gb/s to a sink of 100 Mb/s, RTT 50 ms.
fn one(scheme: &str, rest: &str) -> SessionSummary {
    let text = format!(
        "name = \"one\"\nduration = \"4 s\"\nscheme = \"{scheme}\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nqueue = \"2000 packets\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"50 ms\"\n{rest}\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap().summary.sessions.remove(0)
}

fn assert_near(got: Option<f64>, s: f64, share: f64) {
    let got = got.expect("there are samples");
    assert!((got / s - 1.0).abs() < share, "{got} is not {s}");
}

#[test]
fn rtt__of_each_acknowledgement_is_propagation_and_queueing() {
    let alone = one("newreno", "[options]\nmax_window = 10");
    let delays = alone.delays.unwrap();
    // 1040 B are sent for 8.32 us at the source and 83.2 us at the sink, 40 B for 3.2 and 0.32 us on the way back. No
    // packet waits: acknowledgements are spaced like the packets sent at the sink.
    assert_near(delays.queueing_mean_s, 91.52e-6 + 3.52e-6, 1e-6);
    assert_near(delays.queueing_p99_s, 95.04e-6, 0.004);
    assert_near(delays.rtt_mean_s, 0.05 + delays.queueing_mean_s.unwrap(), 1e-9);
    // Ten per round trip of 50.1 ms for two seconds.
    assert!((380..=400).contains(&delays.rtt_samples), "{}", delays.rtt_samples);

    // A window of 1000 packets: all except the 601 in flight are always queued.
    let full = one("newreno", "[options]\nmax_window = 1000");
    let delays = full.delays.unwrap();
    for rtt in [delays.rtt_mean_s, delays.rtt_p50_s, delays.rtt_p99_s] {
        assert_near(rtt, 1000.0 * 1040.0 * 8.0 / 100e6, 0.01);
    }
    assert_near(delays.queueing_p95_s, 0.0832 - 0.05, 0.02);
    // Packets that arrive at the sink at the end of the window are acknowledged after it, as those before its start.
    let delivered = (full.rate_bps * 2.0 / 8000.0).round() as u64;
    assert!(delays.rtt_samples.abs_diff(delivered) <= 1, "{} {delivered}", delays.rtt_samples);
}

#[test]
fn rtt__is_there_for_all_that_are_answered_and_for_no_others() {
    for scheme in ["gtp", "tally", "udt", "rbudp", "cubic"] {
        let session = one(scheme, if scheme == "rbudp" { "size = \"100 MB\"\ndemand = \"90 Mb/s\"" } else { "" });
        let delays = session.delays.unwrap_or_else(|| panic!("{scheme} has no samples"));
        assert!(delays.rtt_samples > 5_000, "{scheme}: {delays:?}");
        let rtts = [Some(0.05), delays.rtt_p50_s, delays.rtt_p95_s, delays.rtt_p99_s].map(|rtt| rtt.unwrap());
        assert!(rtts.is_sorted() && rtts[3] < 0.25, "{scheme}: {delays:?}");
        assert_eq!(session.completion_s, session.completed_s, "{scheme} starts at once");
    }
    assert_eq!(one("cbr", "demand = \"50 Mb/s\"").delays, None);
}

#[test]
fn rtt__of_a_scheme_is_that_of_all_its_packets() {
    let text = "name = \"both\"\nduration = \"10 s\"\nscheme = \"newreno\"\noptions.max_window = 20\n\
                [[node]]\nname = \"s{1..2}\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n\
                [[session]]\nfrom = \"s1\"\nto = \"d\"\nrtt = \"20 ms\"\nsize = \"1 MB\"\nstart = \"1 s\"\n\
                [[session]]\nfrom = \"s2\"\nto = \"d\"\nrtt = \"100 ms\"\nsize = \"1 MB\"\n";
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let run = simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap();
    let [near, far] = [0, 1].map(|at| run.summary.sessions[at].delays.unwrap());
    let all = &run.summary.schemes[0];
    let delays = all.delays.unwrap();
    assert_eq!(delays.rtt_samples, near.rtt_samples + far.rtt_samples);
    // A thousand packets each: half of all round-trip times are those of the near session.
    assert_near(delays.rtt_p50_s, near.rtt_p99_s.unwrap(), 0.01);
    assert_near(delays.rtt_p95_s, far.rtt_p95_s.unwrap(), 0.01);
    assert_near(delays.rtt_mean_s, f64::midpoint(near.rtt_mean_s.unwrap(), far.rtt_mean_s.unwrap()), 0.01);
    // 1000 packets, 20 per round trip once the window is open: about 50 round trips and the forward delay, from its own
    // start.
    let completion = all.completion.unwrap();
    let times = run.summary.sessions.iter().map(|session| session.completion_s.unwrap()).collect::<Vec<_>>();
    assert!((1.0..1.2).contains(&times[0]) && (5.0..5.6).contains(&times[1]), "{times:?}");
    assert_eq!([completion.completion_p50_s, completion.completion_p99_s], [times[0], times[1]]);
    assert_eq!(run.summary.sessions[0].completed_s, Some(times[0] + 1.0));
}
