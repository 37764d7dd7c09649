//! Files that a scenario names.
#![allow(non_snake_case)]

use fairwave_scenario::{Document, Scenario, ScenarioError, Selection};
use fairwave_units::{Duration, Rate, Time};

const TEXT: &str = r#"
    name = "files"
    duration = "1 s"
    scheme = "cubic"
    router = [{ name = "r{1..2}" }]
    node = [{ name = "a", capacity = "1 Gb/s", router = "r1" }, { name = "b", capacity = "1 Gb/s", router = "r2" }]
    link = [{ from = "r1", to = "r2", capacity = "12 Mb/s", delay = "5 ms", conditions = { trace = "cell" } },
            { from = "r2", to = "r1", capacity = "12 Mb/s", delay = "5 ms" }]
    session = [{ from = "a", to = "b" }]
    arrivals = [{ name = "web", from = "a", to = "b", count = 1000, load = 0.5, sizes = "sizes" }]
"#;
const SIZES: &str = "size_bytes probability\n0 0\n1000 50\n3000 100\n";

fn build(trace: &'static str, sizes: &'static str, set: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let document = Document::parse("a.toml", TEXT.as_bytes()).unwrap().with_files(move |name| match name {
        "cell" => Ok(trace.into()),
        "sizes" => Ok(sizes.into()),
        other => Err(format!("{other} is not there")),
    });
    let set = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let case = document.cases(&Selection { set, ..Selection::default() })?.remove(0);
    Ok(document.build(&case)?.0)
}

#[test]
fn trace__columns_have_units() {
    let text = "# a cell\ntime_ms,capacity_mbps,delay_ms,loss\n0,12,20,0\n10,1.5,30,0.25\n";
    let scenario = build(text, SIZES, &[]).unwrap();
    let conditions = scenario.links[0].conditions.clone().unwrap();
    let at = Time::from_nanos(10_000_000);
    assert_eq!(conditions.capacity.as_ref().unwrap().at(at), (Rate::mbps(1.5), None));
    assert_eq!(conditions.capacity.as_ref().unwrap().at(Time::ZERO), (Rate::mbps(12.0), Some(at)));
    assert_eq!(conditions.delay.as_ref().unwrap().at(at).0, Duration::from_millis(30));
    assert_eq!(conditions.loss.as_ref().unwrap().at(at).0, 0.25);
}

#[test]
fn trace__opportunities_of_mahimahi_repeat() {
    // 1500 B in the first millisecond, 3000 B in the fourth, 1500 B in the sixth, the last.
    let capacity = build("1\n4\n4\n6\n", SIZES, &[]).unwrap().links[0].conditions.clone().unwrap().capacity.clone();
    let capacity = capacity.unwrap();
    let mbps = |ms: u64| capacity.at(Time::from_nanos(ms * 1_000_000)).0.as_bps() / 1e6;
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 9].map(mbps), [12.0, 0.0, 0.0, 24.0, 0.0, 12.0, 12.0, 0.0, 24.0]);
}

#[test]
fn sizes__are_drawn_from_the_file() {
    let scenario = build("1\n", SIZES, &[]).unwrap();
    let sizes: Vec<u64> = scenario.sessions.iter().filter_map(|session| Some(session.size?.get())).collect();
    let small = sizes.iter().filter(|size| **size <= 1000).count();
    assert!(sizes.len() == 1000 && (450..550).contains(&small) && sizes.iter().all(|size| (1..=3000).contains(size)));
    // The content of a case includes that of its files: a sweep repeats a run whose trace changed.
    let content = |sizes: &'static str| {
        let document = Document::parse("a.toml", TEXT.as_bytes()).unwrap();
        let document = document.with_files(move |name| Ok(if name == "cell" { "1\n" } else { sizes }.into()));
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        let mut bytes = Vec::new();
        document.content(&case, &mut |piece| bytes.extend_from_slice(piece)).unwrap();
        bytes
    };
    assert_eq!(content(SIZES), content("0,0\n1000,0.5\n3000,1\n"));
    assert_ne!(content(SIZES), content("0 0\n1000 50\n3001 100\n"));
}

#[test]
fn trace__of_a_change_replaces_the_files() {
    let scenario = build("time_s,loss\n0,0.1\n", SIZES, &[("link.r1-r2.conditions.loss", "[[\"0 s\", 0.5]]")]);
    let error = scenario.unwrap_err().to_string();
    assert!(error.contains("link \"r1-r2\": trace \"cell\" has loss, which the conditions set as well"), "{error}");
    let error = build("1\n", SIZES, &[("link.r1-r2.conditions.trace", "other")]).unwrap_err().to_string();
    assert!(error.starts_with("--set: link \"r1-r2\": trace \"other\": other is not there"), "{error}");
}

#[test]
fn mistakes__name_file_and_line() {
    for (trace, expected) in [
        ("", "trace \"cell\": no lines"),
        ("0\n", "trace \"cell\": ends at 0 ms"),
        ("5\n4\n", "trace \"cell\", line 2: \"4\" is not a valid time"),
        ("5\nx\n", "trace \"cell\", line 2: \"x\" is not a valid time"),
        (
            "time_s,capacity\n",
            "trace \"cell\", line 1: unknown column \"capacity\"\nhint: did you mean \"capacity_bps\"?",
        ),
        ("capacity_bps,loss\n0,0\n", "trace \"cell\", line 1: needs a column of times"),
        ("time_s,loss\n", "trace \"cell\": no lines below the names"),
        ("time_s,loss\n0,0\n\n1,x\n", "trace \"cell\", line 4: \"x\" is not a number"),
        ("time_s,loss\n0,0\n1\n", "trace \"cell\", line 3: 1 cells, the first line has 2"),
        ("time_s,loss\n1,0\n", "trace \"cell\", line 2: \"1\" is not a valid time"),
        ("time_s,loss\n0,1\n", "trace \"cell\", line 2: the loss 1 is not below 1"),
    ] {
        let error = build(trace, SIZES, &[]).unwrap_err().to_string();
        assert!(error.starts_with("a.toml:7: link \"r1-r2\": ") && error.contains(expected), "{error}");
    }
    for (sizes, expected) in [
        ("", "sizes \"sizes\": must end at the share 1"),
        ("0 0\n1000 0.5\n", "sizes \"sizes\": must end at the share 1"),
        ("0 0\n1000 0.5 1\n", "sizes \"sizes\", line 2: 3 cells"),
        ("0 0\n1000 0.5\n900 1\n", "sizes \"sizes\", line 3: a point that is not after"),
    ] {
        let error = build("1\n", sizes, &[]).unwrap_err().to_string();
        assert!(error.starts_with("a.toml:10: arrivals \"web\": ") && error.contains(expected), "{error}");
    }
    let document = Document::parse("a.toml", TEXT.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    assert!(document.build(&case).unwrap_err().message.contains("has no files"));
}
