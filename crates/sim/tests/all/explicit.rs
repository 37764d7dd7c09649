//! Schemes that follow links, in small networks, compared with arithmetic.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Record, Run, Scenario, Selection};
use fairwave_schemes::scheme::schemes;
use fairwave_sim::{Settings, SimError, simulate, simulate_naive};

const ROUTED: &str = "[[router]]\nname = \"r{1..2}\"\n\
    [[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r2\"\n";

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    document.build(&case).unwrap().0
}

/// Five sessions of different round-trip times over a link of 100 Mb/s.
fn five(scheme: &str) -> Scenario {
    scenario(&format!(
        "name = \"five\"\nduration = \"30 s\"\nscheme = \"{scheme}\"\n{ROUTED}\
         [[link]]\nname = \"l\"\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"100 Mb/s\"\ndelay = \"10 ms\"\nduplex = true\n\
         [[session]]\nfrom = \"a\"\nto = \"b\"\ncount = 5\n\
         rtt = {{ each = [\"20 ms\", \"40 ms\", \"60 ms\", \"80 ms\", \"100 ms\"] }}\n\
         start = {{ each = [\"0 s\", \"0.3 s\", \"0.7 s\", \"1.1 s\", \"1.3 s\"] }}\n"
    ))
}

fn run(scenario: &Scenario) -> Run {
    simulate(scenario, Settings::default()).unwrap()
}

#[test]
fn shares__are_equal_for_any_rtt() {
    for (scheme, within) in [("xcp", 0.02), ("ixcp", 0.02), ("aecp", 0.02)] {
        let run = run(&five(scheme));
        for session in &run.summary.sessions {
            // 100 Mb/s over five.
            let off = session.wire_rate_bps / 20e6 - 1.0;
            assert!(off.abs() < within, "{scheme}: {} {off}", session.name);
        }
        let link = &run.summary.links[0];
        // AECP's sources close half of the way to the rate factor each second or so: five in a second are too many at
        // first.
        assert!(scheme == "aecp" || link.dropped_packets == 0, "{scheme}: {}", link.dropped_packets);
        assert!(link.utilisation > 0.985, "{scheme}: {}", link.utilisation);
    }
}

#[test]
fn queue__is_a_few_packets_with_xcp_and_q0_with_aecp() {
    for scheme in ["xcp", "ixcp"] {
        let queue = run(&five(scheme)).summary.links[0].mean_queue_packets;
        assert!(queue < 10.0, "{scheme}: {queue}");
    }
    let queue = run(&five("aecp")).summary.links[0].mean_queue_packets;
    assert!((85.0..=115.0).contains(&queue), "{queue}");
}

#[test]
fn run__is_the_same_with_one_event_a_packet() {
    for scheme in schemes().iter().filter(|scheme| scheme.link_controller.is_some()).map(|scheme| scheme.name) {
        let scenario = five(scheme);
        let settings = || Settings { record: Record::default(), ..Settings::default() };
        let (fast, naive) = (run(&scenario), simulate_naive(&scenario, settings()).unwrap());
        assert_eq!(fast.summary.sessions, naive.summary.sessions, "{scheme}");
        assert_eq!(fast.summary.links, naive.summary.links, "{scheme}");
    }
}

#[test]
fn endpoint_xcp__is_xcp_at_the_access_links() {
    let star = |scheme: &str| {
        scenario(&format!(
            "name = \"star\"\nduration = \"20 s\"\nscheme = \"{scheme}\"\n\
             [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\n[[node]]\nname = \"s{{1..4}}\"\ncapacity = \"100 Mb/s\"\n\
             [[session]]\nfrom = \"s{{1..4}}\"\nto = \"d\"\nrtt = {{ each = [\"10 ms\", \"20 ms\", \"50 ms\", \"90 ms\"] }}\n"
        ))
    };
    let (xcp, endpoint) = (run(&star("xcp")), run(&star("endpoint-xcp")));
    for (one, other) in xcp.summary.sessions.iter().zip(&endpoint.summary.sessions) {
        assert_eq!(one.delivered_bytes, other.delivered_bytes);
        assert!((one.wire_rate_bps / 25e6 - 1.0).abs() < 0.02, "{} {}", one.name, one.wire_rate_bps);
    }
}

#[test]
fn sessions__without_a_link_that_leads_are_refused() {
    let text = |scheme: &str, link: &str| {
        format!(
            "name = \"unled\"\nduration = \"1 s\"\nscheme = \"sack\"\n{ROUTED}\
             [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"100 Mb/s\"\ndelay = \"10 ms\"\nduplex = true\n{link}\n\
             [[session]]\nfrom = \"a\"\nto = \"b\"\nscheme = \"{scheme}\"\n"
        )
    };
    let outcome = |scheme, link| simulate(&scenario(&text(scheme, link)), Settings::default());
    for (scheme, link) in [("xcp", ""), ("aecp", "discipline = \"xcp\""), ("endpoint-xcp", "discipline = \"xcp\"")] {
        let refusal = outcome(scheme, link).unwrap_err();
        assert!(matches!(refusal, SimError::Incomplete { .. }), "{scheme}: {refusal}");
    }
    for (scheme, link) in [("xcp", "discipline = \"ixcp\""), ("aecp", "discipline = \"aecp\"")] {
        assert!(outcome(scheme, link).is_ok(), "{scheme}");
    }
}

/// `jetmax` has a name and no rule: neither a scheme nor a discipline.
#[test]
fn jetmax__is_refused_by_name() {
    let text = |scheme: &str, link: &str| {
        format!(
            "name = \"jetmax\"\nduration = \"1 s\"\nscheme = \"{scheme}\"\n{ROUTED}\
             [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"100 Mb/s\"\ndelay = \"10 ms\"\n{link}\nduplex = true\n\
             [[session]]\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    for (scheme, link, remedy) in [("jetmax", "", "jetmax-share"), ("sack", "discipline = \"jetmax\"", "omit it")] {
        let refusal = simulate(&scenario(&text(scheme, link)), Settings::default()).unwrap_err();
        assert!(refusal.to_string().contains("\"jetmax\""), "{refusal}");
        assert!(refusal.hint().is_some_and(|hint| hint.contains(remedy)), "{refusal}");
    }
}
