use super::*;

#[test]
fn json__has_exactly_the_keys_of_the_contract() {
    let results = feed(&["simulate", "-", "--model", "fluid", "--json"], PAIR).json();
    let [run] = &results[..] else { panic!("one object") };
    let top = "version scenario scheme options model seed duration_s variant window sessions schemes links background \
               metrics engine";
    assert_eq!(keys(run), words(top));
    let session = "name from to scheme rtt_s rate_bps wire_rate_bps final_rate_bps final_wire_rate_bps max_min_bps \
                   delivered_bytes sent_packets lost_packets retransmitted_packets timeouts completed_s";
    assert_eq!(keys(&run["sessions"][0]), words(session));
    let link = "name capacity_bps utilisation mean_queue_packets max_queue_packets dropped_packets";
    assert_eq!(keys(&run["links"][0]), words(link));
    let metrics = "total_bps jain distance_start_bps distance_final_bps gap_to_max_min converged_s peak_overload";
    assert_eq!(keys(&run["metrics"]), words(metrics));
    assert_eq!(keys(&run["engine"]), words("events packet_hops wall_s packet_hops_per_s"));
}

#[test]
fn json__says_what_ran_and_what_came_out() {
    let run =
        &feed(&["simulate", "-", "--model", "fluid", "--json", "--seed", "7", "--duration", "12 s"], PAIR).json()[0];
    assert_eq!(run["scenario"], "pair");
    assert_eq!((&run["scheme"], &run["model"]), (&"gtp".into(), &"fluid".into()));
    assert_eq!((run["seed"].as_u64(), run["duration_s"].as_f64()), (Some(7), Some(12.0)));
    assert!(run["variant"].is_null());
    // 50 = 100 / 2
    for session in run["sessions"].as_array().unwrap() {
        assert_eq!(session["max_min_bps"].as_f64(), Some(5e7));
        assert!((session["final_wire_rate_bps"].as_f64().unwrap() / 5e7 - 1.0).abs() < 1e-6, "{session}");
    }
    let names: BTreeSet<_> =
        run["links"].as_array().unwrap().iter().map(|link| link["name"].as_str().unwrap()).collect();
    assert_eq!(names, words("d:in s1:out s2:out"));
    assert!(run["engine"]["wall_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn json__of_several_runs_is_a_line_each_in_order() {
    let text = format!("{PAIR}{FOUR}");
    let runs = feed(&["simulate", "-", "--model", "fluid", "--json"], &text).json();
    let which: Vec<_> =
        runs.iter().map(|run| (run["variant"].as_str().unwrap(), run["seed"].as_u64().unwrap())).collect();
    assert_eq!(which, [("alpha 0.1", 1), ("alpha 0.1", 2), ("alpha 0.2", 1), ("alpha 0.2", 2)]);
    let chosen =
        feed(&["simulate", "-", "--model", "fluid", "--json", "--variant", "alpha 0.2", "--set", "runs=1"], &text)
            .json();
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0]["metrics"], runs[2]["metrics"]);
}

#[test]
fn json__of_several_schemes_is_a_line_each_in_order() {
    let args = ["simulate", "-", "--model", "fluid", "--json", "--set", "runs=1", "--scheme", "gtp-printed,gtp"];
    let label = |run: &Value| format!("{} {}", run["scheme"].as_str().unwrap(), run["variant"].as_str().unwrap());
    let both: Vec<_> = feed(&args, PAIR).json().iter().map(label).collect();
    assert_eq!(both, ["gtp-printed gtp-printed", "gtp gtp"]);
    let with_variants: Vec<_> = feed(&args, &format!("{PAIR}{FOUR}")).json().iter().map(label).collect();
    let [.., last] = &with_variants[..] else { panic!("four") };
    assert_eq!((with_variants.len(), last.as_str()), (4, "gtp gtp, alpha 0.2"));
}

#[test]
fn json__changes_with_set_and_seed_alone() {
    let metrics = |args: &[&str]| {
        let args = [&["simulate", "-", "--model", "fluid", "--json"], args].concat();
        feed(&args, PAIR).json()[0]["metrics"].to_string()
    };
    let plain = metrics(&[]);
    assert_eq!(plain, metrics(&[]));
    assert_ne!(plain, metrics(&["--seed", "2"]));
    assert_ne!(plain, metrics(&["--set", "options.alpha=0.2"]));
    assert_eq!(metrics(&["--set", "options.alpha=0.2"]), metrics(&["--set", "options.alpha = 0.2"]));
}

#[test]
fn window__replaces_the_second_half() {
    let mean = |window: &[&str]| {
        let run = feed(&[&["simulate", "-", "--model", "fluid", "--json"], window].concat(), PAIR).json().remove(0);
        run["sessions"][0]["rate_bps"].as_f64().unwrap()
    };
    // The start is slower than the second half, where the rate is the fair one.
    assert!((mean(&[]) / 5e7 - 1.0).abs() < 1e-6);
    assert!(mean(&["--window", "0 s..0.5 s"]) < 4.5e7);
    assert!((mean(&["--window", "5s..10s"]) / mean(&[]) - 1.0).abs() < 1e-12);
}

#[test]
fn report__says_what_ran_the_rates_and_the_measures_in_80_columns() {
    let text = run(&["simulate", "five-to-one", "--model", "fluid"]).good();
    for words in [
        "Five sources, five RTTs, one sink",
        "after Wu & Chien 2006, Fig. 2",
        "gtp, fluid model, 20 s, seed 1; 5 sessions, 6 nodes",
        "s5-d1",
        "100.00 Mb/s",
        "Jain's index",
        "every session stays within 5 % of max-min",
        "peak load",
        "▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄",
    ] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn report__of_many_sessions_shows_the_four_fastest_and_the_distance() {
    let text = run(&["simulate", "sixteen-nodes", "--model", "fluid", "--variant", "as printed", "--quiet"]).good();
    // Max-min of Table 2 as printed: 232.14, 214.29, 200.89, 156.25 Mb/s; total 3388.39 Mb/s.
    for words in
        ["232.14", "214.29", "200.89", "156.25", "3.388 Gb/s", "28 more sessions", "distance to max-min", "100 %"]
    {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn report__of_many_runs_is_a_line_each_variant() {
    let text = format!("{PAIR}{}", FOUR.replace("runs = 2", "runs = 7"));
    let report = feed(&["simulate", "-", "--model", "fluid"], &text).good();
    assert_eq!(report.lines().filter(|line| line.trim_start().starts_with("alpha 0.")).count(), 2, "{report}");
}

#[test]
fn stderr__has_no_escapes_and_no_bar_where_nobody_watches() {
    let done = feed(&["simulate", "-", "--model", "fluid"], PAIR);
    assert_eq!(done.stderr(), "");
    assert!(!done.good().contains('\u{1b}'));
}

#[test]
fn notes__go_to_stderr_and_quiet_stops_them() {
    let text = PAIR.replacen("duration", "options = { beta = 0.3 }\nduration", 1);
    let args = ["simulate", "-", "--scheme", "abr-charny", "--duration", "1 s", "--json"];
    let loud = feed(&args, &text);
    assert!(loud.stderr().contains("dropped options.beta"), "{}", loud.stderr());
    assert_eq!(feed(&[&args[..], &["--quiet"]].concat(), &text).stderr(), "");
    assert_eq!(loud.json().len(), 1);
}
