//! No text makes the parser panic, or take much longer than its size allows.
#![allow(clippy::disallowed_methods, reason = "tests read files")]
#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection, allocate};
use proptest::prelude::*;

/// Parses a text and builds its cases; sizes stay small, so that every case may be built.
fn exercise(bytes: &[u8], selection: &Selection) {
    let Ok(document) = Document::parse("fuzz.toml", bytes) else { return };
    let Ok(cases) = document.cases(selection) else { return };
    for case in cases.iter().take(3) {
        if let Ok((scenario, _)) = document.build(case) {
            let _ = allocate(&scenario, None);
            let _ = allocate(&scenario, Some(scenario.end()));
        }
    }
}

/// A scenario with all features.
const VALID: &str = include_str!("everything.toml");

/// Words of scenarios, and some others.
fn token() -> impl Strategy<Value = String> {
    let words = "[[node]]|[[session]]|[[link]]|[[router]]|[[variant]]|[[background]]|[generate]|[options]|[packet]|\n|\n|\
        =|=|=|.|,|{|}|[|]|name|from|to|rtt|capacity|send|receive|queue|loss|discipline|gtp_share|yield|alpha|beta|interval|router|\
        demand|demand_by|start|stop|size|count|weight|minimum|scheme|options|max_window|initial_rate|path|delay|red|duplex|\
        kind|rate|sources|sinks|sessions_per_source|label|seed|runs|duration|sample|uniform|each|\"s1\"|\"s{1..3}\"|\
        \"s{3..1}\"|\"{\"|\"d1\"|\"gtp\"|\"newreno\"|\"500 Mb/s\"|\"inf\"|\"0 Mb/s\"|\"10 ms\"|\"0 s\"|\"bdp\"|\
        \"2000 packets\"|\"3 MB\"|\"lambda\"|\"web\"|true|inf|nan|-0.0|-1|0|1|3|0.5|1e308|9223372036854775807|\
        99999999999999999999|1979-05-27|'''|\"\"\"|#|session|node|\u{0}|é|\\u00e9";
    let words: Vec<String> = words.split('|').map(str::to_owned).collect();
    prop_oneof![9 => prop::sample::select(words), 1 => "\\PC{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn parse__any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&bytes, &Selection::default());
    }

    #[test]
    fn build__any_soup_of_tokens(tokens in prop::collection::vec(token(), 0..80)) {
        exercise(tokens.join(" ").as_bytes(), &Selection::default());
    }

    #[test]
    fn build__any_soup_below_a_valid_beginning(tokens in prop::collection::vec(token(), 0..30), line in 0..60_usize) {
        let head: Vec<&str> = VALID.lines().take(line).collect();
        exercise(format!("{}\n{}", head.join("\n"), tokens.join(" ")).as_bytes(), &Selection::default());
    }

    #[test]
    fn build__any_value_in_place_of_another(nth in 0..200_usize, token in token()) {
        // Replaces the value of the nth "=".
        let Some((at, _)) = VALID.match_indices("= ").nth(nth) else { return Ok(()) };
        let end = VALID[at..].find('\n').map_or(VALID.len(), |end| at + end);
        exercise(format!("{}= {token}{}", &VALID[..at], &VALID[end..]).as_bytes(), &Selection::default());
    }

    #[test]
    fn build__any_change_of_a_byte(at in 0..VALID.len(), byte in any::<u8>(), cut in 0..4_usize) {
        let mut bytes = VALID.as_bytes().to_vec();
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, [byte]);
        exercise(&bytes, &Selection::default());
    }

    #[test]
    fn build__any_two_lines_exchanged(a in 0..100_usize, b in 0..100_usize) {
        let mut lines: Vec<&str> = VALID.lines().collect();
        let (a, b) = (a % lines.len(), b % lines.len());
        lines.swap(a, b);
        exercise(lines.join("\n").as_bytes(), &Selection::default());
    }

    #[test]
    fn build__anything_that_the_call_sets(
        path in "(session|node|link|options|generate|packet|)[.](a|s1|\"s[{]1[.][.]3[}]\"|r1-r2|[a-z]{1,3})[.]?(demand|rtt|options[.]x|name|count|\\PC{0,4})",
        value in "\\PC{0,12}|[0-9]{1,3} ?(Mb/s|ms|packets)|[{]uniform=[\\[]\"1 s\", ?\"2 s\"[\\]][}]",
        scheme in prop::option::of("gtp|newreno|[a-z]{1,4}"),
        seed in any::<Option<u64>>(),
    ) {
        let set = vec![(path, value)];
        exercise(VALID.as_bytes(), &Selection { set, scheme, seed, ..Selection::default() });
    }
}

#[test]
fn parse__deep_nesting_is_refused_without_a_stack_to_match() {
    let keys = vec!["a"; 79].join(".");
    let inline = format!("v = {}1{}", format!("{{{keys}=").repeat(79), "}".repeat(79));
    for text in [inline, format!("v = {}{}", "[".repeat(100_000), "]".repeat(100_000)), vec!["a"; 100_000].join(".")] {
        assert!(Document::parse("deep.toml", text.as_bytes()).is_err());
    }
}

#[test]
fn parse__large_files_are_refused_before_they_are_read() {
    let message = |bytes: &[u8]| Document::parse("large.toml", bytes).unwrap_err().to_string();
    let large = message(&vec![b' '; 100_000_000]);
    assert!(large.starts_with("large.toml: 100000000 bytes; the limit for a scenario file is 64 MiB"), "{large}");
    let many = message(format!("v = [{}]", "1,".repeat(3_000_000)).as_bytes());
    assert!(many.starts_with("large.toml: 3000002 values, the limit is 2000000"), "{many}");
}

#[test]
fn parse__rubbish_is_no_text() {
    let error = Document::parse("image.png", b"name = 'a'\n\x89PNG\r\n").unwrap_err();
    assert_eq!(error.to_string(), "image.png:2: not UTF-8 text\nhint: a scenario is a text file in TOML");
}
