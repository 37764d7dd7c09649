//! For any scenario, a run ends, conserves its packets (each run checks that) and gives finite results.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection};
use fairwave_schemes::scheme::{Model, schemes};
use fairwave_sim::{Settings, SimError, simulate};
use fairwave_units::Time;
use proptest::prelude::*;
use proptest::sample::select;

/// The schemes that the packet model runs.
fn names() -> Vec<&'static str> {
    schemes().iter().filter(|scheme| scheme.runs_in(Model::Packet)).map(|scheme| scheme.name).collect()
}

/// The disciplines of a queue in the packet model.
fn disciplines() -> Vec<&'static str> {
    let rules = schemes().iter().filter(|scheme| scheme.link_controller.is_some()).map(|scheme| scheme.name);
    ["drop-tail", "red", "ecn-step", "codel", "fq-codel", "fq", "pie", "dualpi2", "rem", "avq"]
        .into_iter()
        .chain(rules)
        .collect()
}

prop_compose! {
    fn capacity()(capacity in select(vec!["64 kb/s", "1 Mb/s", "10 Mb/s", "30 Mb/s"])) -> &'static str {
        capacity
    }
}

prop_compose! {
    /// A link or a node's queue and losses.
    fn queue()(
        queue in select(vec!["bdp", "1 packets", "2 packets", "0.1 bdp", "100 kB"]),
        loss in select(vec!["0", "0", "0.001", "0.3"]),
    ) -> String {
        format!("queue = \"{queue}\"\n{}", if loss == "0" { String::new() } else { format!("loss = {loss}\n") })
    }
}

prop_compose! {
    /// A constant rate, or a schedule that switches between rates, zero and unlimited.
    fn demand()(
        rates in proptest::collection::vec(select(vec!["0 Mb/s", "64 kb/s", "10 Mb/s", "30 Mb/s", "inf"]), 1..5),
    ) -> String {
        if let [only] = rates[..] {
            return format!("\"{only}\"");
        }
        let steps = rates.iter().enumerate().map(|(step, rate)| format!("[\"{} ms\", \"{rate}\"]", step * 370));
        format!("[{}]", steps.collect::<Vec<_>>().join(", "))
    }
}

prop_compose! {
    fn session()(
        reverse in any::<bool>(),
        count in select(vec![1, 1, 5]),
        rtt in select(vec!["70 ms", "200 ms", "3 s"]),
        demand in proptest::option::of((demand(), select(vec!["application", "window"]))),
        size in proptest::option::of(select(vec!["1 B", "100 kB"])),
        span in proptest::option::of(select(vec![("0.5 s", "0.9 s"), ("0 s", "inf")])),
        scheme in proptest::option::of(select(names())),
    ) -> String {
        let (from, to) = if reverse { ("b", "a") } else { ("a", "b") };
        let demand = demand.map(|(rate, by)| format!("demand = {rate}\ndemand_by = \"{by}\"\n"));
        let size = size.map(|size| format!("size = \"{size}\"\n"));
        let span = span.map(|(start, stop)| format!("start = \"{start}\"\nstop = \"{stop}\"\n"));
        let scheme = scheme.map(|scheme| format!("scheme = \"{scheme}\"\n"));
        let rest: String = [demand, size, span, scheme].into_iter().flatten().collect();
        format!("[[session]]\nfrom = \"{from}\"\nto = \"{to}\"\ncount = {count}\nrtt = \"{rtt}\"\n{rest}")
    }
}

prop_compose! {
    fn network()(
        scheme in select(names()),
        payload in select(vec!["1 B", "1000 B", "8960 B"]),
        is_routed in any::<bool>(),
        discipline in proptest::option::of(select(disciplines())),
        [one, other] in [capacity(), capacity()],
        queue in queue(),
        sessions in proptest::collection::vec(session(), 1..4),
        seed in 0..100_u32,
    ) -> String {
        let rule = discipline.map(|rule| format!("discipline = \"{rule}\"\n")).unwrap_or_default();
        let elements = if is_routed {
            format!(
                "[[router]]\nname = \"r{{1..3}}\"\n[[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r3\"\n\
                 [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"{one}\"\ndelay = \"1 ms\"\nduplex = true\n{queue}{rule}\
                 [[link]]\nfrom = \"r2\"\nto = \"r3\"\ncapacity = \"{other}\"\ndelay = \"30 ms\"\nduplex = true\n"
            )
        } else {
            format!("[[node]]\nname = \"a\"\ncapacity = \"{one}\"\n{queue}{rule}[[node]]\nname = \"b\"\ncapacity = \"{other}\"\n")
        };
        format!(
            "name = \"any\"\nduration = \"2 s\"\nseed = {seed}\nscheme = \"{scheme}\"\n[packet]\npayload = \"{payload}\"\n\
             {elements}{}",
            sessions.concat()
        )
    }
}

/// Maximum progress reports of a run: there is one per 65 536 events, and none of these runs has as many as 100
/// million.
const MAX_BEATS: u32 = 1500;

/// Fails a run that does not end.
fn counts_to(most: u32) -> impl FnMut(Time) {
    let mut turns = 0;
    move |at| {
        turns += 1;
        assert!(turns <= most, "the run does not end: it stands at {} s", at.as_secs_f64());
    }
}

/// A session of one scheme that alternates between 25 Mb/s and unlimited demand, and whose window is never the limit at
/// first.
fn to_and_from_inf(scheme: &str) -> String {
    format!(
        "name = \"turns\"\nduration = \"10 s\"\nscheme = \"{scheme}\"\n\
         [[node]]\nname = \"a\"\ncapacity = \"100 Mb/s\"\n[[node]]\nname = \"b\"\ncapacity = \"100 Mb/s\"\n\
         [[session]]\nname = \"only\"\nfrom = \"a\"\nto = \"b\"\nrtt = \"20 ms\"\n\
         demand = [[\"0 s\", \"25 Mb/s\"], [\"4 s\", \"inf\"], [\"7 s\", \"5 Mb/s\"]]\n"
    )
}

/// Mean wire rate of the only session between two instants, Mb/s.
fn rate_mbps(text: &str, window_s: (u64, u64)) -> f64 {
    let document = Document::parse("turns.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let scenario = document.build(&case).unwrap().0;
    let window = Some((Time::from_secs(window_s.0), Time::from_secs(window_s.1)));
    let mut progress = counts_to(MAX_BEATS);
    let settings = Settings { window, progress: Some(&mut progress), ..Settings::default() };
    simulate(&scenario, settings).unwrap().summary.sessions[0].wire_rate_bps / 1e6
}

#[test]
fn simulate__a_demand_may_become_unlimited_and_limited_again() {
    for scheme in ["sack", "cubic", "xcp", "gtp"] {
        let text = to_and_from_inf(scheme);
        let (low, high) = (rate_mbps(&text, (2, 4)), rate_mbps(&text, (5, 7)));
        let last = rate_mbps(&text, (8, 10));
        assert!((low / 25.0 - 1.0).abs() < 0.02, "{scheme}: {low} Mb/s of a demand of 25");
        assert!(high > 50.0, "{scheme}: {high} Mb/s where nothing but 100 Mb/s of capacity limits it");
        assert!((last / 5.0 - 1.0).abs() < 0.02, "{scheme}: {last} Mb/s of a demand of 5");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn simulate__ends_with_numbers(text in network()) {
        let document = Document::parse("any.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        let scenario = match document.build(&case) {
            Ok((scenario, _)) => scenario,
            // A window of less than a packet.
            Err(error) => {
                prop_assert!(error.to_string().contains("by window is less than one packet"), "{error}\n{text}");
                return Ok(());
            }
        };
        match simulate(&scenario, Settings { progress: Some(&mut counts_to(MAX_BEATS)), ..Settings::default() }) {
            // No link leads a session that has to be led, nothing limits one that has to be limited, a blast lacks its
            // rate or its size, or a node would have to run two rules.
            Err(refusal) => {
                let is_known = matches!(refusal, SimError::Incomplete { .. } | SimError::Mixed { .. });
                prop_assert!(is_known, "{refusal}\n{text}");
            }
            Ok(run) => {
                for session in &run.summary.sessions {
                    prop_assert!(session.wire_rate_bps.is_finite() && session.wire_rate_bps >= 0.0, "{text}");
                }
                for link in &run.summary.links {
                    prop_assert!((0.0..1.001).contains(&link.utilisation), "{} {}\n{text}", link.name, link.utilisation);
                    prop_assert!(link.mean_queue_packets >= 0.0, "{text}");
                }
            }
        }
    }
}
