//! The daemon's view of its machine, for `status`.

use std::fmt::Write as _;

use fairwave_host::machine::{MachineSnapshot, NodeSnapshot, OtherTraffic, UserSnapshot, ask_any};
use serde::Serialize;

use crate::common::quantity::rate;
use crate::common::terminal::{self, BOLD, DIM, paint};

/// The end node that is used most, in the words that programs rely on.
#[derive(Serialize)]
pub(crate) struct NodeEntry<'a> {
    /// "daemon"
    origin: &'static str,
    card: Option<&'a str>,
    direction: &'static str,
    capacity_bps: f64,
    total_bps: f64,
    expected_bps: f64,
    sessions: usize,
    gap_to_max_min: Option<f64>,
    /// The card's other traffic, where it has a part.
    other: Option<&'a OtherTraffic>,
}

/// Cost of the daemon.
#[derive(Serialize)]
pub(crate) struct DaemonEntry {
    pid: u32,
    uptime_s: f64,
    interval_s: f64,
    tick_cost_s: f64,
    late_ticks: u64,
}

impl DaemonEntry {
    pub(crate) fn of(machine: &MachineSnapshot) -> Self {
        let MachineSnapshot { pid, uptime_s, interval_s, tick_cost_s, .. } = *machine;
        Self { pid, uptime_s, interval_s, tick_cost_s, late_ticks: machine.counts.late_ticks }
    }
}

/// The machine's state from its daemon; `None` if no daemon runs, or on an error, which is printed.
pub(crate) fn machine() -> Option<MachineSnapshot> {
    ask_any().unwrap_or_else(|error| {
        terminal::note(&error.to_string());
        if let Some(hint) = error.hint() {
            terminal::say(&format!("hint: {hint}"));
        }
        None
    })
}

/// All end nodes of a machine, that which is used most first.
pub(crate) fn nodes(machine: &MachineSnapshot) -> Vec<NodeEntry<'_>> {
    let mut nodes: Vec<&NodeSnapshot> = machine.nodes.iter().collect();
    let used = |node: &NodeSnapshot| node.measured_bps / node.capacity_bps.max(1.0);
    nodes.sort_by(|one, other| used(other).total_cmp(&used(one)));
    nodes.into_iter().map(entry).collect()
}

fn entry(node: &NodeSnapshot) -> NodeEntry<'_> {
    NodeEntry {
        origin: "daemon",
        card: node.card.as_deref(),
        direction: direction(node),
        capacity_bps: node.capacity_bps,
        total_bps: node.measured_bps,
        expected_bps: node.expected_bps,
        sessions: node.sessions,
        gap_to_max_min: node.gap_to_max_min,
        other: node.other.as_ref(),
    }
}

fn direction(node: &NodeSnapshot) -> &'static str {
    if node.receives { "receive" } else { "send" }
}

/// The state of a machine as text: its nodes, and its users if there are several.
pub(crate) fn text(machine: &MachineSnapshot) -> String {
    let mut text = format!("{} (daemon {})\n", paint(BOLD, "this machine's end node"), machine.pid);
    for node in &machine.nodes {
        let card = node.card.as_ref().map_or_else(String::new, |card| format!("{card}, "));
        let sessions = if node.sessions == 1 { "session" } else { "sessions" };
        let gap = node.gap_to_max_min.map_or_else(String::new, |gap| format!(", {:.1} % from max-min", gap * 100.0));
        let other = node.other.as_ref();
        let other = other.map_or_else(String::new, |other| format!(", other traffic {}", rate(other.measured_bps)));
        let line = format!(
            "{card}{}: {} of {}, {} {sessions}{gap}{other}",
            if node.receives { "in" } else { "out" },
            rate(node.measured_bps),
            rate(node.capacity_bps),
            node.sessions
        );
        let _ = writeln!(text, "  {}", paint(DIM, &line));
    }
    if machine.interval_s > 0.0 {
        let (cost, interval) = (machine.tick_cost_s * 1e6, machine.interval_s * 1e3);
        let share = 100.0 * machine.tick_cost_s / machine.interval_s;
        let line = format!("a tick takes {cost:.0} us of {interval:.0} ms ({share:.1} % of a core)");
        let _ = writeln!(text, "  {}", paint(DIM, &line));
    }
    if machine.is_grace {
        text += "  just started: no session gets more than it had\n";
    }
    if machine.users.len() > 1 {
        for user in &machine.users {
            let _ = writeln!(text, "  {}", user_line(user));
        }
    }
    text
}

fn user_line(user: &UserSnapshot) -> String {
    let number = user.user.to_string();
    let name = user.name.as_ref().unwrap_or(&number);
    let (out, inwards) = (rate(user.sent_bps), rate(user.received_bps));
    format!("{name}: {} sessions of {} processes, {out} out, {inwards} in", user.sessions, user.processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(receives: bool, measured_bps: f64) -> NodeSnapshot {
        NodeSnapshot {
            receives,
            capacity_bps: 7e8,
            measured_bps,
            expected_bps: 7e8,
            sessions: 3,
            gap_to_max_min: Some(0.012),
            ..NodeSnapshot::default()
        }
    }

    #[test]
    fn nodes__begin_with_the_one_that_is_used_most() {
        let machine =
            MachineSnapshot { nodes: vec![node(false, 1e8), node(true, 6.9e8)], ..MachineSnapshot::default() };
        let found = nodes(&machine);
        assert_eq!((found[0].direction, found[0].total_bps), ("receive", 6.9e8));
        assert_eq!(found[1].direction, "send");
    }

    #[test]
    fn text__names_nodes_and_several_users() {
        let user = |user: u32, name: Option<&str>| UserSnapshot {
            user,
            name: name.map(str::to_owned),
            processes: 2,
            sessions: 3,
            sent_bps: 5e8,
            received_bps: 0.0,
            weight: 1.0,
        };
        let one = MachineSnapshot { pid: 7, nodes: vec![node(true, 6.9e8)], ..MachineSnapshot::default() };
        let plain = |machine: &MachineSnapshot| anstream::adapter::strip_str(&text(machine)).to_string();
        let expected =
            "this machine's end node (daemon 7)\n  in: 690.00 Mb/s of 700.00 Mb/s, 3 sessions, 1.2 % from max-min\n";
        assert_eq!(plain(&one), expected);
        let many = MachineSnapshot { users: vec![user(0, Some("root")), user(1000, None)], ..one };
        assert!(
            plain(&many).ends_with("  1000: 3 sessions of 2 processes, 500.00 Mb/s out, 0 b/s in\n"),
            "{}",
            plain(&many)
        );
    }

    #[test]
    fn text__says_what_other_traffic_uses_and_what_a_tick_costs() {
        let other = Some(OtherTraffic { weight: 1.0, measured_bps: 1e8, expected_bps: 2e8 });
        let nodes = vec![NodeSnapshot { other, ..node(true, 5e8) }];
        let machine = MachineSnapshot {
            pid: 7,
            nodes,
            interval_s: 0.02,
            tick_cost_s: 95e-6,
            uptime_s: 3.0,
            ..MachineSnapshot::default()
        };
        let plain = anstream::adapter::strip_str(&text(&machine)).to_string();
        let expected = "this machine's end node (daemon 7)\n  in: 500.00 Mb/s of 700.00 Mb/s, 3 sessions, 1.2 % from max-min, other traffic 100.00 Mb/s\n  a tick takes 95 us of 20 ms (0.5 % of a core)\n";
        assert_eq!(plain, expected);
        let json = serde_json::to_value((super::nodes(&machine), DaemonEntry::of(&machine))).unwrap();
        assert_eq!((&json[0][0]["other"]["measured_bps"], &json[1]["tick_cost_s"]), (&1e8.into(), &95e-6.into()));
    }
}
