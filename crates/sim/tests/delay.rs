//! Rules that watch the delay keep so many packets queued as they say, in whole runs.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection};
use fairwave_sim::{Settings, simulate};

/// Mean queue in packets and utilisation of a link of 100 Mb/s and 50 ms with so many sessions.
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
    // A hundred each. All start together: whoever came later would take the others' queue for propagation.
    for sessions in [1, 2] {
        let (queue, utilisation) = link("fast", sessions);
        let expected = 100.0 * f64::from(sessions);
        assert!((queue / expected - 1.0).abs() < 0.05, "{queue}");
        assert!(utilisation > 0.999, "{utilisation}");
    }
}
