use std::collections::BTreeSet;

use super::*;
use fairwave_host::machine::{DaemonCounts, OtherTraffic};

pub(in crate::metrics) fn machine() -> MachineSnapshot {
    let row = RowSnapshot {
        pid: 77,
        user: 1000,
        command: "get".into(),
        id: "00000000000000aa".into(),
        receives: true,
        card: Some("eth0".into()),
        measured_bps: 2.5e8,
        expected_bps: 3e8,
        target_bps: 3.5e8,
        max_min_bps: Some(3.5e8),
        rtt_s: Some(0.06),
        wire_bytes: 12_345,
        limited_by: Some("peer node".into()),
        ..RowSnapshot::default()
    };
    MachineSnapshot {
        tick: 500,
        uptime_s: 10.0,
        interval_s: 0.02,
        nodes: vec![NodeSnapshot {
            card: Some("eth0".into()),
            receives: true,
            capacity_bps: 7e8,
            measured_bps: 2.5e8,
            expected_bps: 3e8,
            sessions: 1,
            gap_to_max_min: Some(0.25),
            other: Some(OtherTraffic { weight: 1.0, measured_bps: 1e8, expected_bps: 3.5e8 }),
        }],
        sessions: vec![row],
        users: vec![UserSnapshot {
            user: 1000,
            name: Some("ann".into()),
            processes: 1,
            sessions: 1,
            ..UserSnapshot::default()
        }],
        counts: DaemonCounts { joined: 3, ..DaemonCounts::default() },
        ..MachineSnapshot::default()
    }
}

#[test]
fn prometheus_text__says_what_the_machine_does() {
    let text = prometheus_text(&machine());
    for line in [
        "fairwave_daemon_ticks_total 500",
        "fairwave_daemon_processes_joined_total 3",
        "fairwave_node_capacity_bps{card=\"eth0\",direction=\"receive\"} 700000000",
        "fairwave_node_gap_to_max_min_ratio{card=\"eth0\",direction=\"receive\"} 0.25",
        "fairwave_node_other_bps{card=\"eth0\",direction=\"receive\"} 100000000",
        "fairwave_user_sessions{user=\"ann\",uid=\"1000\"} 1",
        "fairwave_session_measured_bps{pid=\"77\",session=\"00000000000000aa\",direction=\"receive\",command=\"get\"} \
         250000000",
        "fairwave_sessions_left_out 0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    // Unknown values are omitted.
    assert!(!text.contains("session_desired_bps"));
}

/// Checks the format by Prometheus' page "Exposition formats": each name has its type before its first line and its
/// lines are contiguous, no line is repeated, and lines other than comments are a name, labels and a number.
fn check(text: &str) {
    assert!(text.ends_with('\n'));
    let (mut family, mut families, mut lines) = (String::new(), BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
            assert!(families.insert(family.clone()), "{family} twice");
            assert!(["gauge", "counter"].contains(&rest.split(' ').nth(1).unwrap()));
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(["+Inf", "-Inf", "NaN"].contains(&value) || value.parse::<f64>().is_ok(), "{line}");
            assert_eq!(series.split('{').next().unwrap(), family, "{line}");
            assert!(lines.insert(series.to_owned()), "{series} twice");
            assert_eq!(series.contains('{'), series.ends_with('}'), "{line}");
        }
    }
}

#[test]
fn prometheus_text__is_the_format_whatever_processes_say_of_themselves() {
    let mut machine = machine();
    check(&prometheus_text(&machine));
    for (command, id) in
        [("a\"b", "x\\"), ("\n# TYPE fairwave_node_sessions counter\n", "x"), ("{}", "\u{0}\""), ("", "")]
    {
        machine.sessions.push(RowSnapshot { command: command.into(), id: id.into(), ..machine.sessions[0].clone() });
    }
    // One name twice, and rates that are not numbers.
    machine.sessions.push(machine.sessions[0].clone());
    machine.sessions[1].measured_bps = f64::NAN;
    machine.sessions[2].expected_bps = f64::INFINITY;
    let text = prometheus_text(&machine);
    check(&text);
    assert!(text.contains("command=\"a\\\"b\""), "{text}");
    assert!(text.contains("fairwave_sessions_left_out 1\n"), "{text}");
}

#[test]
fn dashboard__asks_for_what_there_is() {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etc/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_slice(&std::fs::read(place).unwrap()).unwrap();
    let mut machine = machine();
    machine.sessions[0].desired_bps = Some(1e9);
    let text = prometheus_text(&machine);
    let there: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let panels = dashboard["panels"].as_array().unwrap();
    let asked: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|one| one["expr"].as_str().unwrap())
        .collect();
    assert!(asked.len() >= 8, "{asked:?}");
    for expression in asked {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let names = expression.split(|letter| !is_word(letter)).filter(|word| word.starts_with("fairwave_"));
        let names: Vec<&str> = names.collect();
        assert!(!names.is_empty(), "{expression}");
        assert!(names.iter().all(|name| there.contains(name)), "{expression}");
    }
}
