//! The engine with one pending event per line compared with the one with one pending event per packet: equal runs, to
//! the last digit.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Record, Scenario, Selection, Settings};
use fairwave_schemes::scheme::{Model, SchemeKind, schemes};
use fairwave_schemes::session::window_schemes;
use fairwave_sim::{simulate, simulate_naive};
use proptest::prelude::*;

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    document.build(&case).unwrap().0
}

/// The schemes of sessions and end nodes that the packet model runs, and GTP with sealed packets as well. Those of
/// links are in `explicit.rs`: here the links have other rules.
fn names() -> Vec<&'static str> {
    let runs = schemes().iter().filter(|scheme| scheme.runs_in(Model::Packet) && scheme.kind != SchemeKind::Link);
    runs.map(|scheme| scheme.name).chain(["gtp wire"]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn engines__agree_on_every_scheme_and_network(
        seed in 0_u64..1000,
        scheme in prop::sample::select(names()),
        discipline in prop::sample::select(vec!["drop-tail", "red"]),
        queue in prop::sample::select(vec!["1 bdp", "3 packets", "20 kB"]),
        loss in prop::sample::select(vec![0.0, 0.001, 0.05]),
        rtt in prop::sample::select(vec!["1 ms", "7 ms"]),
        options in prop::sample::subsequence(vec![
            "options.max_burst = \"2 packets\"",
            "options.send_jitter = \"0.5 ms\"",
            "options.delayed_ack = true",
            "options.pacing = true",
        ], 0..=4),
        background in prop::sample::select(vec![
            "",
            "kind = \"web\"\nfrom = \"s3\"\nto = \"d\"\nrate = \"4 Mb/s\"\nstop = \"2 s\"",
            "kind = \"web\"\nfrom = \"d\"\nto = \"s1\"\nrate = \"9 Mb/s\"\nsources = 5\nrtt = { uniform = [\"2 ms\", \"30 ms\"] }",
            "kind = \"on-off\"\nfrom = \"s3\"\nto = \"s2\"\nrate = \"3 Mb/s\"\n[[background]]\nkind = \"web\"\nfrom = \"s3\"\nto = \"s2\"\nrate = \"2 Mb/s\"",
            "kind = \"on-off\"\nfrom = \"s3\"\nto = \"d\"\nrate = \"5 Mb/s\"\nsources = 3\non = \"20 ms\"\noff = \"30 ms\"\nstart = \"1 s\"",
        ]),
    ) {
        let (scheme, is_wire) = scheme.strip_suffix(" wire").map_or((scheme, false), |scheme| (scheme, true));
        let is_window = window_schemes().any(|name| name == scheme);
        let options = if is_window { options.join("\n") } else { String::new() };
        let options = if is_wire { "options.wire = true".to_owned() } else { options };
        let background = if background.is_empty() { String::new() } else { format!("[[background]]\n{background}\n") };
        let demand = match scheme {
            "cbr" | "netblt" => "demand = \"7 Mb/s\"",
            "homa" => "size = \"700 kB\"",
            "rbudp" => "demand = \"7 Mb/s\"\nsize = \"700 kB\"",
            _ => "",
        };
        let scenario = scenario(&format!(
            "name = \"oracle\"\nduration = \"3 s\"\nscheme = \"{scheme}\"\nseed = {seed}\n\
             [[node]]\nname = \"s{{1..3}}\"\ncapacity = \"20 Mb/s\"\nrouter = \"a\"\n\
             [[node]]\nname = \"d\"\ncapacity = \"15 Mb/s\"\nqueue = \"{queue}\"\nreceive_loss = {loss}\nrouter = \"b\"\n\
             [[router]]\nname = \"a\"\n[[router]]\nname = \"b\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\ncapacity = \"17 Mb/s\"\ndelay = \"0.25 ms\"\nduplex = true\ndiscipline = \"{discipline}\"\n\
             [[session]]\nfrom = \"s{{1..2}}\"\nto = \"d\"\nrtt = \"{rtt}\"\ncount = 2\nscheme = \"{scheme}\"\n{demand}\n{options}\n\
             [[session]]\nfrom = \"s3\"\nto = \"d\"\nrtt = \"20 ms\"\nscheme = \"sack\"\nsize = \"300 kB\"\nstart = \"0.5 s\"\n{background}"
        ));
        let record = Record { rates: true, queues: true, windows: true, distances: true };
        let fast = simulate(&scenario, Settings { record, ..Settings::default() }).unwrap();
        let naive = simulate_naive(&scenario, Settings { record, ..Settings::default() }).unwrap();
        // A scheme without a rate has NaN: the printed forms are compared.
        prop_assert_eq!(format!("{fast:?}"), format!("{naive:?}"));
        prop_assert!(fast.summary.engine.packet_hops > 1000);
    }
}
