//! XCP, iXCP and P-XCP packet by packet, compared with the closed form of their equilibrium, and in cases that are easy
//! to get wrong.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection, SessionSummary};
use fairwave_sim::{Settings, simulate};

fn run(text: &str) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap()
}

/// Two links in a row of 20 ms each, one session over the first and four over both.
fn in_a_row(scheme: &str, first: &str, second: &str) -> Run {
    run(&format!(
        "name = \"row\"\nduration = \"30 s\"\nscheme = \"{scheme}\"\n\
         [[router]]\nname = \"r{{1..3}}\"\n\
         [[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r2\"\n\
         [[node]]\nname = \"c\"\nrouter = \"r3\"\n\
         [[link]]\nname = \"first\"\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"{first}\"\ndelay = \"20 ms\"\nduplex = true\n\
         [[link]]\nname = \"second\"\nfrom = \"r2\"\nto = \"r3\"\ncapacity = \"{second}\"\ndelay = \"20 ms\"\nduplex = true\n\
         [[session]]\nname = \"before\"\nfrom = \"a\"\nto = \"b\"\n\
         [[session]]\nname = \"behind\"\nfrom = \"b\"\nto = \"c\"\n\
         [[session]]\nname = \"long\"\nfrom = \"a\"\nto = \"c\"\ncount = 4\n"
    ))
}

/// One link of 100 Mb/s, with further lines of the scenario.
fn one_link(scheme: &str, seconds: u32, rest: &str) -> Run {
    run(&format!(
        "name = \"one\"\nduration = \"{seconds} s\"\nscheme = \"{scheme}\"\n\
         [[router]]\nname = \"r{{1..2}}\"\n[[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r2\"\n\
         [[link]]\nname = \"link\"\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"100 Mb/s\"\ndelay = \"1 ms\"\nduplex = true\n\
         queue = \"1 MB\"\n{rest}"
    ))
}

fn session<'a>(run: &'a Run, name: &str) -> &'a SessionSummary {
    run.summary.sessions.iter().find(|session| *session.name == *name).unwrap()
}

fn mbps(run: &Run, name: &str) -> f64 {
    session(run, name).wire_rate_bps / 1e6
}

fn utilisation(run: &Run, name: &str) -> f64 {
    run.summary.links.iter().find(|link| *link.name == *name).unwrap().utilisation
}

fn dropped(run: &Run) -> u64 {
    run.summary.links.iter().map(|link| link.dropped_packets).sum()
}

#[test]
fn xcp__two_bottlenecks_follow_the_closed_form() {
    let run = two_bottlenecks("xcp");
    // gamma y^2 = (N + 1) r (gamma y - alpha (C - y)) with y = 100 + r: r = 43.0 (Low, Andrew & Wydrowski 2005).
    assert!((mbps(&run, "short") - 43.0).abs() < 0.5, "{}", mbps(&run, "short"));
    assert!((utilisation(&run, "first") - 0.9227).abs() < 0.003);
    assert_eq!(dropped(&run), 0);
}

#[test]
fn ixcp__gives_the_rest_to_the_short_session() {
    // If the shuffle were paid from the spare bandwidth, the long sessions would name the first link as theirs: 47
    // Mb/s.
    let run = two_bottlenecks("ixcp");
    assert!(mbps(&run, "short") > 0.95 * 55.0, "{}", mbps(&run, "short"));
    assert!(utilisation(&run, "first") > 0.98, "{}", utilisation(&run, "first"));
    assert_eq!(dropped(&run), 0);
}

#[test]
fn ixcp__gives_the_rest_next_to_sixteen_sessions() {
    // One packet in ten thousand with the wrong link is enough: the short session is taxed for it, and the proceeds are
    // shared with all that name this link.
    let text = include_str!("../../../../scenarios/xcp-two-bottlenecks.toml").replacen(
        "scheme = \"xcp\"",
        "scheme = \"ixcp\"",
        1,
    );
    let run = run(&text.replace("count = 4", "count = 16\nstart = { uniform = [\"0 s\", \"5 s\"] }"));
    assert!(utilisation(&run, "first") > 0.975, "{}", utilisation(&run, "first"));
}

#[test]
fn pxcp__has_no_effect_if_the_limit_is_a_later_link() {
    // A link cannot know the grants of later ones (Zan & Yang 2007, section 5).
    let (scaled, plain) = (two_bottlenecks("pxcp"), two_bottlenecks("xcp"));
    assert!((mbps(&scaled, "short") - mbps(&plain, "short")).abs() < 0.5, "{}", mbps(&scaled, "short"));
}

#[test]
fn pxcp__helps_if_the_limit_is_an_earlier_link() {
    let rate = |scheme| mbps(&in_a_row(scheme, "100 Mb/s", "155 Mb/s"), "behind");
    let (scaled, plain) = (rate("pxcp"), rate("xcp"));
    assert!(scaled > plain + 1.0, "{scaled} {plain}");
}

fn two_bottlenecks(scheme: &str) -> Run {
    let text = include_str!("../../../../scenarios/xcp-two-bottlenecks.toml");
    run(&text.replacen("scheme = \"xcp\"", &format!("scheme = \"{scheme}\""), 1))
}

#[test]
fn xcp__sessions_share_a_link_without_a_queue() {
    let sessions = "[[session]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrtt = { each = [\"20 ms\", \"60 ms\", \"100 ms\", \"180 ms\"] }\ncount = 4\n";
    let run = one_link("xcp", 30, sessions);
    for session in &run.summary.sessions {
        assert!((session.wire_rate_bps / 25e6 - 1.0).abs() < 0.03, "{} {}", session.name, session.wire_rate_bps);
    }
    let link = &run.summary.links[0];
    assert!(link.utilisation > 0.99 && link.mean_queue_packets < 10.0, "{link:?}");
    assert_eq!(dropped(&run), 0);
}

#[test]
fn xcp__an_rtt_below_a_clock_tick_of_ns2_is_known() {
    // In ticks of 10 ms it would be zero, and nothing would be granted.
    let run = one_link("xcp", 5, "[[session]]\nfrom = \"a\"\nto = \"b\"\nrtt = \"4 ms\"\n");
    assert!(utilisation(&run, "link") > 0.97, "{}", utilisation(&run, "link"));
}

#[test]
fn xcp__packets_twice_as_large_on_the_wire_share_it_as_well() {
    // Links grant wire rates. If they were taken as payload rates, the gain would double: 0.8 and 0.45 are not stable.
    let sessions = "[packet]\nheader = \"1000 B\"\n[[session]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\n\
                    rtt = { each = [\"20 ms\", \"60 ms\", \"100 ms\", \"180 ms\"] }\ncount = 4\n";
    let run = one_link("xcp", 30, sessions);
    for session in &run.summary.sessions {
        assert!((session.wire_rate_bps / 25e6 - 1.0).abs() < 0.03, "{} {}", session.name, session.wire_rate_bps);
    }
}

#[test]
fn xcp__a_window_that_demand_cuts_is_the_one_in_the_header() {
    let sessions = "[[session]]\nname = \"fat\"\nfrom = \"a\"\nto = \"b\"\nrtt = \"50 ms\"\n\
                    [[session]]\nname = \"thin\"\nfrom = \"a\"\nto = \"b\"\nrtt = \"50 ms\"\ncount = 4\n\
                    demand = \"12.5 Mb/s\"\ndemand_by = \"window\"\n";
    let run = one_link("xcp", 30, sessions);
    // D = 50, N = 4, C = 100: r = 38.15 by the closed form. If their headers had the window that they want, the four
    // would be granted too little each, and the fat one too much.
    let (fat, thin) = (mbps(&run, "fat"), mbps(&run, "thin"));
    assert!((thin - 12.5).abs() < 0.3, "{thin}");
    assert!((fat - 38.15).abs() < 1.0, "{fat}");
}

#[test]
fn xcp__acknowledgements_of_the_way_back_count() {
    // With 100 B in a packet an acknowledgement is 40 B for 140 B: 20 Mb/s in the other direction make 5.7 Mb/s here.
    // If they were not counted the link would grant all its capacity to data, and only a queue would limit that: 0.4 x
    // 5.7 Mb/s x 60 ms / 0.226, 75 kB or 540 packets.
    let run = one_link(
        "xcp",
        20,
        "[packet]\npayload = \"100 B\"\n[[session]]\nname = \"there\"\nfrom = \"a\"\nto = \"b\"\nrtt = \"60 ms\"\n\
         [[session]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nrtt = \"60 ms\"\nscheme = \"newreno\"\n\
         demand = \"20 Mb/s\"\n",
    );
    let (there, back) = (mbps(&run, "there"), mbps(&run, "back"));
    assert!((back - 20.0).abs() < 0.5 && (there - (100.0 - 20.0 * 40.0 / 140.0)).abs() < 1.5, "{there} {back}");
    let link = &run.summary.links[0];
    assert!(link.utilisation > 0.98 && link.mean_queue_packets < 250.0, "{link:?}");
}
