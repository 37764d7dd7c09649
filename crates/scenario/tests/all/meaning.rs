//! The meaning of scenario files.
#![allow(non_snake_case)]
#![allow(clippy::disallowed_methods, reason = "tests may compute what they expect with the system's library")]

use fairwave_scenario::{
    BackgroundKind, Case, Demand, DemandBy, Discipline, Document, LinkEnd, QueueLimit, Scenario, Selection, SessionSpec,
};
use fairwave_schemes::node::gtp_options::{ALPHA, BETA, DRAIN};
use fairwave_schemes::scheme::OptionValue;
use fairwave_schemes::session::tcp_options::MAX_WINDOW;
use fairwave_units::{Bytes, Duration, Rate, Time};

fn cases(text: &str, selection: &Selection) -> (Document, Vec<Case>) {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let cases = document.cases(selection).unwrap_or_else(|error| panic!("{error}"));
    (document, cases)
}

/// The scenarios of all cases, with their notes.
fn all(text: &str, selection: &Selection) -> Vec<(Scenario, Vec<String>)> {
    let (document, cases) = cases(text, selection);
    cases.iter().map(|case| document.build(case).unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn one(text: &str) -> Scenario {
    all(text, &Selection::default()).remove(0).0
}

fn set(pairs: &[(&str, &str)]) -> Selection {
    let set = pairs.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    Selection { set, ..Selection::default() }
}

fn names(scenario: &Scenario) -> Vec<&str> {
    scenario.sessions.iter().map(|session| &*session.name).collect()
}

const NODES: &str = r#"
    [[node]]
    name = "s{1..3}"
    capacity = "500 Mb/s"
    [[node]]
    name = "d{1..2}"
    capacity = "1 Gb/s"
"#;

/// A file with those nodes and a line for the top.
fn file(top: &str, rest: &str) -> String {
    format!("name = 'test'\nduration = '20 s'\n{top}\n{NODES}\n{rest}")
}

#[test]
fn build__defaults_are_those_of_the_contract() {
    let scenario = one(&file("", "[[session]]\nfrom = 's1'\nto = 'd1'\nrtt = '10 ms'"));
    assert_eq!((scenario.seed, scenario.sample), (1, Duration::from_millis(100)));
    assert_eq!((scenario.packet.payload, scenario.packet.header), (Bytes::new(1000), Bytes::new(40)));
    assert!(scenario.is_lambda());
    let node = &scenario.nodes[0];
    assert_eq!((node.queue, node.gtp_share, node.discipline), (QueueLimit::Usual, 1.0, None));
    let session = &scenario.sessions[0];
    assert_eq!((&*session.name, session.from, session.to), ("s1-d1", 0, 3));
    assert_eq!((&session.demand, session.demand_by), (&Demand::Unlimited, DemandBy::Application));
    assert_eq!((session.start, session.stop, session.size), (Time::ZERO, None, None));
    assert_eq!((session.weight, session.minimum, session.initial_rate), (1.0, Rate::ZERO, Rate::ZERO));
}

#[test]
fn build__ranges_mean_every_pair_and_counts_are_numbered() {
    let scenario = one(&file(
        "",
        "[[session]]
        from = 's{1..2}'
        to = 'd{1..2}'
        rtt = { each = ['1 ms', '2 ms', '3 ms', '4 ms'] }
        [[session]]
        from = 's1'
        to = 'd1'
        rtt = '5 ms'
        count = 2
        [[session]]
        name = 'x'
        from = 's3'
        to = 'd1'
        rtt = '5 ms'
        count = 3
        [[session]]
        name = 'y{08..10}'
        from = 's{1..3}'
        to = 'd2'
        rtt = '5 ms'",
    ));
    assert_eq!(
        names(&scenario),
        ["s1-d1", "s1-d2", "s2-d1", "s2-d2", "s1-d1#2", "s1-d1#3", "x", "x#2", "x#3", "y08", "y09", "y10"]
    );
    let rtts: Vec<u64> = scenario.sessions.iter().map(|session| session.rtt.as_nanos() / 1_000_000).collect();
    assert_eq!(rtts[..6], [1, 2, 3, 4, 5, 5]);
    assert_eq!((scenario.sessions[10].from, scenario.sessions[10].to), (1, 4));
}

#[test]
fn build__default_names_step_aside_for_given_ones() {
    let scenario = one(&file(
        "",
        "[[session]]
        from = 's1'
        to = 'd1'
        rtt = '5 ms'
        [[session]]
        name = 's1-d1'
        from = 's2'
        to = 'd1'
        rtt = '5 ms'",
    ));
    assert_eq!(names(&scenario), ["s1-d1#2", "s1-d1"]);
}

#[test]
fn build__a_change_to_one_component_never_moves_anothers_draws() {
    let session =
        |from: &str| format!("[[session]]\nfrom = '{from}'\nto = 'd1'\nrtt = {{ uniform = ['1 ms', '100 ms'] }}\n");
    let both = one(&file("", &(session("s2") + &session("s1"))));
    let alone = one(&file("", &session("s1")));
    assert_eq!(both.sessions[1].rtt, alone.sessions[0].rtt);
    assert_ne!(both.sessions[0].rtt, both.sessions[1].rtt);
    let other_seed = one(&file("seed = 2", &session("s1")));
    assert_ne!(other_seed.sessions[0].rtt, alone.sessions[0].rtt);
    for session in &both.sessions {
        assert!((1_000_000..100_000_000).contains(&session.rtt.as_nanos()), "{}", session.rtt);
    }
}

#[test]
fn build__session_keys() {
    let scenario = one(&file(
        "scheme = 'gtp'",
        "[[session]]
        name = 'a'
        from = 's1'
        to = 'd1'
        rtt = '10 ms'
        demand = [['0 s', '400 Mb/s'], ['4 s', 'inf']]
        demand_by = 'window'
        start = '1 s'
        stop = '15 s'
        size = '1.5 GB'
        weight = 2
        minimum = '1 Mb/s'
        scheme = 'newreno'
        options.max_window = '64 packets'
        alpha = 0.3
        beta = 0.1
        initial_rate = '5 Mb/s'
        [[session]]
        from = 's2'
        to = 'd1'
        rtt = '10 ms'
        demand = inf
        stop = 'inf'
        size = 'inf'",
    ));
    let a = &scenario.sessions[0];
    assert_eq!(a.demand.at(Time::from_secs(3)), Some(Rate::mbps(400.0)));
    assert_eq!(a.demand.at(Time::from_secs(4)), None);
    assert_eq!(a.demand_by, DemandBy::Window);
    assert_eq!(
        (a.start, a.stop, a.size),
        (Time::from_secs(1), Some(Time::from_secs(15)), Some(Bytes::new(1_500_000_000)))
    );
    assert_eq!((a.weight, a.minimum, a.initial_rate), (2.0, Rate::mbps(1.0), Rate::mbps(5.0)));
    assert_eq!((a.alpha, a.beta), (Some(0.3), Some(0.1)));
    let choice = scenario.scheme_of(a);
    assert_eq!((choice.scheme.name, MAX_WINDOW.of(&choice.options)), ("newreno", Some(64)));
    let b = &scenario.sessions[1];
    assert_eq!((scenario.scheme_of(b).scheme.name, &b.demand, b.stop, b.size), ("gtp", &Demand::Unlimited, None, None));
}

#[test]
fn build__node_keys() {
    let scenario = one("
        name = 'nodes'
        duration = '1 s'
        [[node]]
        name = 'a'
        capacity = '1 Gb/s'
        receive = '2 Gb/s'
        loss = 0.1
        receive_loss = 0.2
        queue = '0.5bdp'
        discipline = 'red'
        gtp_share = 0.8
        yield = 0.5
        alpha = 0.05
        interval = 'rtt'
        [[node]]
        name = 'b'
        send = 'inf'
        queue = '3 MB'
        interval = '20 ms'
        [[session]]
        from = 'a'
        to = 'b'
        rtt = '1 ms'");
    let (a, b) = (&scenario.nodes[0], &scenario.nodes[1]);
    assert_eq!((a.send, a.receive), (Some(Rate::gbps(1.0)), Some(Rate::gbps(2.0))));
    assert_eq!((a.send_loss, a.receive_loss), (0.1, 0.2));
    assert_eq!((a.queue, a.discipline), (QueueLimit::Bdp(0.5), Some(Discipline::Red)));
    assert_eq!((a.gtp_share, a.alpha, a.beta), (0.8, Some(0.05), None));
    assert_eq!((a.yields, b.yields), (Some(0.5), None));
    assert_eq!((a.interval, a.interval_is_rtt), (None, true));
    assert_eq!((b.send, b.receive, b.queue), (None, None, QueueLimit::Bytes(Bytes::new(3_000_000))));
    assert_eq!((b.interval, b.interval_is_rtt), (Some(Duration::from_millis(20)), false));
}

const ROUTED: &str = "
    name = 'routed'
    duration = '1 s'
    [[router]]
    name = 'r{1..3}'
    [[node]]
    name = 'a'
    router = 'r1'
    [[node]]
    name = 'b'
    [[link]]
    from = 'r1'
    to = 'r2'
    capacity = '155 Mb/s'
    delay = '20 ms'
    duplex = true
    [[link]]
    name = 'detour'
    from = 'r{1..1}'
    to = 'r3'
    capacity = '155 Mb/s'
    delay = '4 ms'
    duplex = true
    [[link]]
    from = 'r3'
    to = 'r2'
    capacity = '155 Mb/s'
    delay = '5 ms'
    duplex = true
    [[link]]
    from = 'r2'
    to = 'b'
    capacity = 'inf'
    delay = '1 ms'
    queue = '100 packets'
    duplex = true
";

#[test]
fn build__red_takes_max_p_and_wait_of_ns_2() {
    let red = |keys: &str| {
        let text = format!(
            "name = 'red'\nduration = '1 s'\nscheme = 'sack'\n[[router]]\nname = 'r{{1..2}}'\n\
             [[node]]\nname = 'a'\nrouter = 'r1'\n[[node]]\nname = 'b'\nrouter = 'r2'\n\
             [[link]]\nfrom = 'r1'\nto = 'r2'\ncapacity = '1 Gb/s'\ndelay = '1 ms'\nduplex = true\ndiscipline = 'red'\n{keys}\n\
             [[session]]\nfrom = 'a'\nto = 'b'\n"
        );
        one(&text).links[0].red
    };
    // ns-2's `wait_ true`; its max_p is 1 / `linterm_` by default.
    assert_eq!((red("").max_p, red("").wait), (0.0, true));
    let named = red("red = { adaptive = false, max_p = 0.02, wait = false }");
    assert_eq!((named.max_p, named.wait, named.adaptive), (0.02, false, false));
}

#[test]
fn build__paths_are_shortest_by_delay_or_named() {
    let scenario = one(&format!(
        "{ROUTED}
        [[session]]
        from = 'a'
        to = 'b'
        [[session]]
        from = 'b'
        to = 'a'
        rtt = '100 ms'
        [[session]]
        name = 'named'
        from = 'a'
        to = 'b'
        path = ['r1', 'r2']"
    ));
    let link_names: Vec<&str> = scenario.links.iter().map(|link| &*link.name).collect();
    assert_eq!(link_names, ["r1-r2", "r2-r1", "detour", "detour:back", "r3-r2", "r2-r3", "r2-b", "b-r2"]);
    assert_eq!((scenario.links[6].from, scenario.links[6].to), (LinkEnd::Router(1), LinkEnd::Node(1)));
    assert_eq!((scenario.links[6].capacity, scenario.links[6].queue), (None, QueueLimit::Packets(100)));
    let [short, back, named] = &scenario.sessions[..] else { panic!("three sessions") };
    // 4 + 5 + 1 ms beats 20 + 1 ms; 20 ms in both directions.
    assert_eq!((&*short.path, &*short.path_back), (&[2, 4, 6][..], &[7, 5, 3][..]));
    assert_eq!(short.rtt, Duration::from_millis(20));
    assert_eq!((&*back.path, &*back.path_back, back.rtt), (&[7, 5, 3][..], &[2, 4, 6][..], Duration::from_millis(100)));
    assert_eq!((&*named.path, named.rtt), (&[0, 6][..], Duration::from_millis(42)));
}

#[test]
fn build__background() {
    let text = file(
        "",
        "[[session]]
        from = 's1'
        to = 'd1'
        rtt = '10 ms'
        [[background]]
        kind = 'web'
        from = 's2'
        to = 'd1'
        rate = '80 Mb/s'
        sources = 400
        rtt = { uniform = ['10 ms', '50 ms'] }
        [[background]]
        kind = 'web'
        from = 's3'
        to = 'd1'
        rate = '8 Mb/s'
        [[background]]
        kind = 'on-off'
        from = 's2'
        to = 'd2'
        rate = '8 Mb/s'
        on = '1 s'
        off = '2 s'
        start = '1 s'
        stop = '9 s'",
    );
    let scenario = one(&text);
    let made: Vec<_> = scenario.background.iter().map(|b| (&*b.name, b.from, b.to, b.sources)).collect();
    assert_eq!(made, [("web", 1, 3, 400), ("web#2", 2, 3, 1), ("on-off", 1, 4, 1)]);
    assert_eq!(scenario.background[0].kind, BackgroundKind::Web { mean_size: Bytes::new(12_000), shape: 1.2 });
    let (on, off) = (Duration::from_secs(1), Duration::from_secs(2));
    assert_eq!(scenario.background[2].kind, BackgroundKind::OnOff { on, off });
    assert_eq!(scenario.background[2].stop, Some(Time::from_secs(9)));
    let (changed, _) = all(&text, &set(&[("background.web.rate", "1 Mb/s")])).remove(0);
    let rates: Vec<_> = changed.background.iter().map(|background| background.rate.as_bps()).collect();
    assert_eq!(rates, [1e6, 1e6, 8e6]);

    // One for each source if they are drawn; 100 ms by default.
    let (least, most) = (Duration::from_millis(10), Duration::from_millis(50));
    let drawn = &scenario.background[0].rtts;
    assert!(drawn.len() == 400 && drawn.iter().all(|rtt| (least..most).contains(rtt)), "{drawn:?}");
    assert!(
        drawn.iter().min() < Some(&Duration::from_millis(11)) && drawn.iter().max() > Some(&Duration::from_millis(49))
    );
    assert_eq!(*scenario.background[1].rtts, [Duration::from_millis(100)]);
}

/// With links, the sum of their delays; an RTT in the file is the total.
#[test]
fn build__background_over_links() {
    let scenario = one("name = 'b'
        duration = '1 s'
        [[node]]
        name = 'x{1..2}'
        router = 'r1'
        [[node]]
        name = 'y'
        router = 'r2'
        [[router]]
        name = 'r{1..2}'
        [[link]]
        from = 'r1'
        to = 'r2'
        capacity = '1 Gb/s'
        delay = '7 ms'
        duplex = true
        [[session]]
        from = 'x1'
        to = 'y'
        [[background]]
        kind = 'web'
        from = 'x2'
        to = 'y'
        rate = '1 Mb/s'
        [[background]]
        kind = 'web'
        from = 'x2'
        to = 'y'
        rate = '1 Mb/s'
        sources = 2
        rtt = { each = ['14 ms', '20 ms'] }");
    assert_eq!(*scenario.background[0].rtts, [Duration::from_millis(14)]);
    assert_eq!(*scenario.background[1].rtts, [14, 20].map(Duration::from_millis));
    assert_eq!((&*scenario.background[1].path, &*scenario.background[1].path_back), (&[0][..], &[1][..]));
}

const LAMBDA: &str = "
    name = 'lambda'
    duration = '15 s'
    [generate]
    kind = 'lambda'
    sources = 20
    sinks = 10
    sessions_per_source = 4
    capacity = '1 Gb/s'
    rtt = ['1 ms', '100 ms']
    interval = ['10 ms', '100 ms']
    alpha = [0.05, 0.15]
    beta = 0.1
";

#[test]
fn build__generate_draws_within_its_ranges() {
    let scenario = one(LAMBDA);
    assert_eq!((scenario.nodes.len(), scenario.sessions.len()), (30, 80));
    assert_eq!((&*scenario.nodes[0].name, &*scenario.nodes[19].name, &*scenario.nodes[20].name), ("s1", "s20", "d1"));
    for node in &scenario.nodes {
        assert_eq!((node.send, node.receive, node.beta), (Some(Rate::gbps(1.0)), Some(Rate::gbps(1.0)), Some(0.1)));
        assert!((0.05..0.15).contains(&node.alpha.unwrap()));
        assert!((10_000_000..100_000_000).contains(&node.interval.unwrap().as_nanos()));
    }
    for (index, session) in scenario.sessions.iter().enumerate() {
        assert_eq!(session.from as usize, index / 4);
        assert!((20..30).contains(&session.to));
        assert!((1_000_000..100_000_000).contains(&session.rtt.as_nanos()));
    }
    // With replacement: among 20 x 4 draws from 10 sinks, some source draws a sink twice (probability of none
    // 0.504^20).
    assert!(names(&scenario).iter().any(|name| name.ends_with("#2")), "{:?}", names(&scenario));
    let mut sorted = names(&scenario);
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 80);
    // The mean of 30 draws from U(0.05, 0.15) is 0.1 with a standard error of 0.0053.
    let mean = scenario.nodes.iter().filter_map(|node| node.alpha).sum::<f64>() / 30.0;
    assert!((mean - 0.1).abs() < 0.02, "{mean}");
    assert_eq!(one(LAMBDA), scenario);
}

#[test]
fn build__generated_elements_are_changed_by_name() {
    let selection = set(&[
        ("node.s2.capacity", "10 Mb/s"),
        ("node.d1.interval", "rtt"),
        ("generate.sinks", "1"),
        ("session.s3-d1.demand", "25 Mb/s"),
        ("session.s3-d1#2.rtt", "7 ms"),
    ]);
    let (changed, _) = all(LAMBDA, &selection).remove(0);
    let (plain, _) = all(LAMBDA, &set(&[("generate.sinks", "1")])).remove(0);
    assert_eq!(changed.nodes[1].send, Some(Rate::mbps(10.0)));
    assert_eq!((changed.nodes[1].alpha, changed.nodes[1].interval), (plain.nodes[1].alpha, plain.nodes[1].interval));
    assert_eq!((changed.nodes[20].interval, changed.nodes[20].interval_is_rtt), (None, true));
    assert_eq!(changed.sessions[8].demand, Demand::Constant(Rate::mbps(25.0)));
    assert_eq!(changed.sessions[8].rtt, plain.sessions[8].rtt);
    assert_eq!(changed.sessions[9].rtt, Duration::from_millis(7));
    assert_eq!(changed.sessions[10], plain.sessions[10]);
}

#[test]
fn cases__variants_times_runs_in_order() {
    let text = file(
        "runs = 2\nseed = 5",
        "[[session]]\nname = 'a'\nfrom = 's1'\nto = 'd1'\nrtt = '1 ms'
        [[variant]]\nlabel = 'x'\n[[variant]]\nlabel = 'y'\nseed = 9\nruns = 1",
    );
    let labels = |selection: &Selection| {
        let (_, cases) = cases(&text, selection);
        cases.iter().map(|case| (case.variant.clone().unwrap(), case.seed)).collect::<Vec<_>>()
    };
    let own =
        |pairs: &[(&str, u64)]| pairs.iter().map(|(label, seed)| ((*label).to_owned(), *seed)).collect::<Vec<_>>();
    assert_eq!(labels(&Selection::default()), own(&[("x", 5), ("x", 6), ("y", 9)]));
    let chosen = Selection { variant: Some("y".into()), seed: Some(100), ..Selection::default() };
    assert_eq!(labels(&chosen), own(&[("y", 100)]));
    assert_eq!(labels(&set(&[("runs", "1")])), own(&[("x", 5), ("y", 9)]));
}

#[test]
fn build__variants_change_keys_by_path_and_elements_by_name() {
    let text = format!(
        "{}
        [[variant]]
        label = 'changed'
        options.alpha = 0.025
        packet.payload = '500 B'
        duration = '3 s'
        session.a.demand = '25 Mb/s'
        session.'s{{1..3}}-d2'.weight = 3
        session.s2-d2.weight = 4
        node.'s{{1..3}}'.capacity = '10 Mb/s'
        node.s3.queue = '7 packets'",
        file(
            "options.beta = 0.3",
            "[[session]]\nname = 'a'\nfrom = 's1'\nto = 'd1'\nrtt = '1 ms'
            [[session]]\nfrom = 's{1..3}'\nto = 'd2'\nrtt = { each = ['1 ms', '2 ms', '3 ms'] }"
        )
    );
    let scenario = one(&text);
    assert_eq!(scenario.variant.as_deref(), Some("changed"));
    let options = &scenario.scheme.options;
    assert_eq!((ALPHA.given(options), BETA.given(options)), (Some(0.025), Some(0.3)));
    assert_eq!((scenario.packet.payload, scenario.duration), (Bytes::new(500), Duration::from_secs(3)));
    assert_eq!(scenario.sessions[0].demand, Demand::Constant(Rate::mbps(25.0)));
    let weights: Vec<f64> = scenario.sessions.iter().map(|session| session.weight).collect();
    assert_eq!(weights, [1.0, 3.0, 4.0, 3.0]);
    assert_eq!(scenario.sessions[2].rtt, Duration::from_millis(2));
    assert_eq!(scenario.nodes[2].send, Some(Rate::mbps(10.0)));
    assert_eq!((scenario.nodes[2].queue, scenario.nodes[1].queue), (QueueLimit::Packets(7), QueueLimit::Usual));
}

#[test]
fn build__another_scheme_starts_from_its_own_defaults() {
    let text = file(
        "scheme = 'gtp'",
        "[options]\nalpha = 0.3\nphase = '0 s'
        [[session]]\nname = 'a'\nfrom = 's1'\nto = 'd1'\nrtt = '1 ms'\nscheme = 'newreno'\noptions.sack = true
        [[variant]]\nlabel = 'same'\nscheme = 'gtp'\noptions.beta = 0.4
        [[variant]]\nlabel = 'other'\nscheme = 'cubic'\noptions.c = 0.8\nsession.a.scheme = 'bic'",
    );
    let [(same, no_notes), (other, notes)] = &all(&text, &Selection::default())[..] else { panic!("two variants") };
    assert_eq!((ALPHA.given(&same.scheme.options), BETA.given(&same.scheme.options)), (Some(0.3), Some(0.4)));
    assert!(no_notes.is_empty(), "{no_notes:?}");
    assert_eq!(other.scheme.scheme.name, "cubic");
    assert_eq!(other.scheme.options.iter().collect::<Vec<_>>(), [("c", OptionValue::Number(0.8))]);
    assert_eq!(other.sessions[0].scheme.as_ref().unwrap().scheme.name, "bic");
    assert!(other.sessions[0].scheme.as_ref().unwrap().options.is_empty());
    assert_eq!(
        *notes,
        [
            "scheme cubic in place of gtp: dropped options.alpha, options.phase",
            "session \"a\": another scheme: dropped options.sack"
        ]
    );
    let call = Selection { scheme: Some("gtp-printed".into()), ..set(&[("options.alpha", "0.2")]) };
    let [(called, notes), (called_too, _)] = &all(&text, &call)[..] else { panic!("two variants") };
    for scenario in [called, called_too] {
        assert_eq!(scenario.scheme.scheme.name, "gtp-printed");
        assert_eq!(scenario.scheme.options.iter().collect::<Vec<_>>(), [("alpha", OptionValue::Number(0.2))]);
    }
    assert_eq!(
        *notes,
        [
            "--scheme overrides variant \"same\", which sets another value",
            "scheme gtp-printed in place of gtp: dropped options.alpha, options.beta, options.phase"
        ]
    );
}

#[test]
fn build__set_takes_toml_or_bare_text() {
    let text = file(
        "",
        "[[session]]\nname = 'a'\nfrom = 's1'\nto = 'd1'\nrtt = '1 ms'
        [[session]]\nfrom = 's{1..3}'\nto = 'd2'\nrtt = '1 ms'",
    );
    let selection = set(&[
        ("session.a.demand", "25 Mb/s"),
        ("session.a.start", "\"2 s\""),
        ("session.a.weight", "2.5"),
        ("session.s{1..3}-d2.rtt", "{ uniform = ['5 ms', '6 ms'] }"),
        ("session.\"s2-d2\".demand", "inf"),
        ("options.drain", "true"),
        ("duration", "7 s"),
        ("scheme", "gtp"),
        ("session.a.demand", "50 Mb/s"),
    ]);
    let (scenario, notes) = all(&text, &selection).remove(0);
    assert!(notes.is_empty(), "{notes:?}");
    let a = &scenario.sessions[0];
    assert_eq!((&a.demand, a.start, a.weight), (&Demand::Constant(Rate::mbps(50.0)), Time::from_secs(2), 2.5));
    for session in &scenario.sessions[1..] {
        assert!((5_000_000..6_000_000).contains(&session.rtt.as_nanos()), "{}", session.rtt);
    }
    assert!(DRAIN.of(&scenario.scheme.options));
    assert_eq!(scenario.duration, Duration::from_secs(7));
    let by_argument = Selection { duration: Some(Duration::from_millis(1500)), ..selection };
    assert_eq!(all(&text, &by_argument).remove(0).0.duration, Duration::from_millis(1500));
}

#[test]
fn build__missing_duration_and_scheme_have_defaults() {
    let text = format!("name = 'short'\n{NODES}\n[[session]]\nfrom = 's1'\nto = 'd1'\nrtt = '1 ms'");
    let (scenario, notes) = all(&text, &Selection::default()).remove(0);
    assert_eq!((scenario.duration, scenario.scheme.scheme.name), (Duration::from_secs(60), "gtp"));
    assert_eq!(notes, ["the file sets no duration: using 60 s"]);
}

#[test]
fn build__schemes_are_shared() {
    let text = file(
        "",
        "[[session]]\nfrom = 's{1..3}'\nto = 'd1'\nrtt = '1 ms'\nscheme = 'sack'
        [[session]]\nfrom = 's{1..3}'\nto = 'd2'\nrtt = '1 ms'\nscheme = 'sack'",
    );
    let scenario = one(&text);
    let first = scenario.sessions[0].scheme.as_ref().unwrap();
    assert!(scenario.sessions.iter().all(|s| std::sync::Arc::ptr_eq(s.scheme.as_ref().unwrap(), first)));
}

#[test]
fn notes__name_dropped_settings() {
    // Two spines of equal delay, and a queue whose marks no session answers.
    let text = "
        name = 't'
        scheme = 'bbr'
        duration = '1 s'
        router = [{ name = 'leaf{1..2}' }, { name = 'spine{1..2}' }]
        node = [
            { name = 'a', capacity = '1 Gb/s', router = 'leaf1' },
            { name = 'b', capacity = '1 Gb/s', router = 'leaf2', discipline = 'ecn-step' },
        ]
        link = [{ from = 'leaf{1..2}', to = 'spine{1..2}', capacity = '1 Gb/s', delay = '1 us', duplex = true }]
        session = [{ from = 'a', to = 'b' }]
    ";
    let notes = all(text, &Selection::default()).remove(0).1.join("\n");
    assert!(notes.contains("several shortest paths lead from \"a\" to \"b\"") && notes.contains("ecmp"), "{notes}");
    assert!(notes.contains("node \"b\" marks packets (ecn-step), and bbr does not respond"), "{notes}");
    let single = text.replace("bbr", "path").replace("spine{1..2}", "spine{1..1}");
    let notes = all(&single, &Selection::default()).remove(0).1;
    assert!(notes.is_empty(), "{notes:?}");
}

/// A Poisson process: gaps with the mean that the load gives, as long as they vary.
#[test]
fn arrivals__start_at_the_rate_of_their_load() {
    let web = "[[arrivals]]\nname = 'web'\nfrom = 's{1..3}'\nto = 'd{1..2}'\nrtt = '10 ms'\ncount = 20000\nload = 0.5\n\
               sizes = { exponential = '1 MB' }\nstart = '3 s'";
    let scenario = one(&file("", web));
    let sessions = &scenario.sessions;
    assert_eq!((&*sessions[0].name, &*sessions[19_999].name, sessions.len()), ("web-1", "web-20000", 20_000));
    // Two sinks of 1 Gb/s at 0.5, and packets of 1000 of 1077 B: 1 MB each 8.616 ms.
    let starts: Vec<f64> =
        sessions.iter().map(|session| session.start.since(Time::from_secs(3)).as_secs_f64()).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    assert!((mean(&gaps) / 8.616e-3 - 1.0).abs() < 0.03, "{}", mean(&gaps)); // standard error 0.007
    let squares: Vec<f64> = gaps.iter().map(|gap| gap * gap).collect();
    assert!((mean(&squares) / (2.0 * mean(&gaps).powi(2)) - 1.0).abs() < 0.06, "not exponential");
    let sizes: Vec<f64> = sessions.iter().map(|session| session.size.unwrap().get() as f64).collect();
    assert!((mean(&sizes) / 1e6 - 1.0).abs() < 0.03, "{}", mean(&sizes));
    for pair in (0..3).flat_map(|from| (3..5).map(move |to| (from, to))) {
        let share = sessions.iter().filter(|session| (session.from, session.to) == pair).count() as f64 / 2e4;
        assert!((share - 1.0 / 6.0).abs() < 0.01, "{pair:?}: {share}");
    }
    // Another load spreads the same transfers over another time.
    let fast = &all(&file("", web), &set(&[("arrivals.web.load", "1")]))[0].0.sessions;
    assert!(fast.iter().zip(sessions).all(|(fast, slow)| fast.size == slow.size && fast.from == slow.from));
    let part = fast[19_999].start.since(Time::from_secs(3)).as_secs_f64() / starts[19_999];
    assert!((part - 0.5).abs() < 1e-6, "{part}");
}

#[test]
fn arrivals__single_transfers_and_shared_nodes() {
    let text = file(
        "",
        "[[arrivals]]\nname = 'a'\nfrom = 's{1..3}'\nto = 's{1..3}'\nrtt = '10 ms'\ncount = 50\nrate = '1 Gb/s'\nsizes = '1 kB'",
    );
    let sessions = |pairs: &[(&str, &str)]| all(&text, &set(pairs)).remove(0).0.sessions;
    assert!(sessions(&[]).iter().all(|session| session.from != session.to));
    let changed = sessions(&[("session.a-2.size", "5 MB"), ("session.a-3.start", "0 s"), ("session.a-3.weight", "2")]);
    let plain = sessions(&[]);
    assert_eq!((changed[1].size, changed[1].start), (Some(Bytes::new(5_000_000)), plain[1].start));
    assert_eq!((changed[2].size, changed[2].start, changed[2].weight), (plain[2].size, Time::ZERO, 2.0));
    assert_eq!(changed[3], plain[3]);
}

/// Two leaves and four spines: the spines that the sessions cross, and their numbers of other paths.
fn spines(ecmp: &str, seed: u64) -> Vec<(String, usize)> {
    let text = format!(
        "name = 't'\nscheme = 'cubic'\nduration = '1 s'\n{ecmp}
        router = [{{ name = 'leaf{{1..2}}' }}, {{ name = 'spine{{1..4}}' }}]
        node = [{{ name = 'a', router = 'leaf1' }}, {{ name = 'b', router = 'leaf2' }}]
        link = [{{ from = 'leaf{{1..2}}', to = 'spine{{1..4}}', capacity = '1 Gb/s', delay = '1 us', duplex = true }}]
        session = [{{ from = 'a', to = 'b', count = 400 }}]"
    );
    let (scenario, _) = all(&text, &Selection { seed: Some(seed), ..Selection::default() }).remove(0);
    let spine = |session: &SessionSpec| scenario.links[session.path[0] as usize].name.replace("leaf1-", "");
    scenario.sessions.iter().map(|session| (spine(session), session.spread.len())).collect()
}

#[test]
fn ecmp__by_flow_spreads_sessions_by_the_seed() {
    let chosen = spines("ecmp = 'flow'", 1);
    for spine in 1..=4 {
        let count = chosen.iter().filter(|(name, _)| *name == format!("spine{spine}")).count();
        // 100 on average, standard deviation 8.7.
        assert!((65..=135).contains(&count), "spine{spine}: {count}");
    }
    assert_eq!(chosen, spines("ecmp = 'flow'", 1));
    assert_ne!(chosen, spines("ecmp = 'flow'", 2));
    assert!(chosen.iter().all(|(_, others)| *others == 0));
}

#[test]
fn ecmp__by_packet_has_all_paths() {
    assert!(spines("ecmp = 'packet'", 1).iter().all(|one| *one == ("spine1".to_owned(), 3)));
    assert!(spines("", 1).iter().all(|one| *one == ("spine1".to_owned(), 0)));
}
