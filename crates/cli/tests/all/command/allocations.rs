use super::*;

#[test]
fn json__has_exactly_the_keys_of_the_contract() {
    let results = feed(&["allocate", "-", "--json"], PAIR).json();
    assert_eq!(results.len(), 1);
    assert_eq!(keys(&results[0]), words("sessions total_bps"));
    assert_eq!(keys(&results[0]["sessions"][0]), words("name from to rate_bps limited_by"));
}

#[test]
fn json__names_what_limits_each() {
    let text = PAIR.replace("rtt = \"20 ms\"", "rtt = \"20 ms\"\ndemand = { each = [\"20 Mb/s\", \"inf\"] }");
    let result = feed(&["allocate", "-", "--json"], &text).json().remove(0);
    let sessions: Vec<_> = result["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| (session["rate_bps"].as_f64().unwrap(), session["limited_by"].as_str().unwrap()))
        .collect();
    // 80 = 100 - 20
    assert_eq!(sessions, [(2e7, "demand"), (8e7, "d")]);
    assert_eq!(result["total_bps"].as_f64(), Some(1e8));
}

#[test]
fn at__takes_the_sessions_of_that_time() {
    let text = PAIR.replace("rtt = \"20 ms\"", "rtt = \"20 ms\"\nstart = { each = [\"0 s\", \"5 s\"] }");
    let count = |at: &[&str]| {
        let result = feed(&[&["allocate", "-", "--json"], at].concat(), &text).json().remove(0);
        (result["sessions"].as_array().unwrap().len(), result["sessions"][0]["rate_bps"].as_f64())
    };
    assert_eq!(count(&[]), (2, Some(5e7)));
    assert_eq!(count(&["--at", "1 s"]), (1, Some(1e8)));
    assert_eq!(count(&["--at", "6 s"]), (2, Some(5e7)));
}

#[test]
fn text__has_total_and_limits() {
    let text = run(&["allocate", "sixteen-nodes"]).good();
    // Both readings of the connections: Wu & Chien 2006, Tables 2 and 3.
    for words in ["as printed", "two entries changed", "232.14 Mb/s", "total rate 3.388 Gb/s", "total rate 3.498 Gb/s"]
    {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
}

#[test]
fn variants__are_an_object_each() {
    let results = run(&["allocate", "scenarios/sixteen-nodes.toml", "--json"]).json();
    let totals: Vec<_> = results.iter().map(|result| result["total_bps"].as_f64().unwrap().round()).collect();
    assert_eq!(totals, [3_388_392_857.0, 3_498_214_286.0]);
}

#[test]
fn unlimited__is_an_error() {
    let text = PAIR.replace("100 Mb/s", "inf");
    let stderr = feed(&["allocate", "-"], &text).refused();
    assert!(stderr.contains("s1-d") && stderr.contains("hint: "), "{stderr}");
}
