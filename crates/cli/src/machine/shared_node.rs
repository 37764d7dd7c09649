//! The role of the machine's end node for one session, for `why`: its capacity, and the other sessions that share it.

use std::fmt::Write as _;

use fairwave_host::machine::{MachineSnapshot, NodeSnapshot, RowSnapshot, ShownState};
use fairwave_host::{LimitedBy, ProcessStatus};
use serde::Serialize;

use crate::common::quantity::rate;
use crate::common::terminal::{BOLD, paint};

/// A session's end node of this machine.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct SharedNode<'a> {
    /// "daemon"
    origin: &'static str,
    /// Role of the end node for the session: "sink" or "source".
    role: &'static str,
    card: Option<&'a str>,
    capacity_bps: f64,
    total_bps: f64,
    /// The session's rate in the max-min vector, bit/s.
    max_min_bps: Option<f64>,
    /// Whether it is what holds the session.
    holds: bool,
    /// How many sessions share it, this one too.
    sessions: usize,
    /// The others that this user may see, those that use most first.
    others: Vec<Sharer<'a>>,
}

/// One that shares it.
#[derive(Debug, PartialEq, Serialize)]
struct Sharer<'a> {
    session: &'a str,
    pid: u32,
    user: u32,
    command: &'a str,
    measured_bps: f64,
    expected_bps: f64,
}

/// So many others are named to people.
const NAMED: usize = 5;

/// The machine's end node for a session of a process, by its name there and its direction.
pub(crate) fn node_of<'a>(
    machine: &'a MachineSnapshot,
    (pid, id, is_source): (u32, &str, bool),
    limited_by: Option<LimitedBy>,
) -> Option<SharedNode<'a>> {
    let is_it = |row: &&RowSnapshot| row.pid == pid && row.id == id && row.receives != is_source;
    let row = machine.sessions.iter().find(is_it)?;
    of_row(machine, row, limited_by == Some(LimitedBy::Node))
}

fn of_row<'a>(machine: &'a MachineSnapshot, row: &RowSnapshot, holds: bool) -> Option<SharedNode<'a>> {
    let shares = |row: &RowSnapshot| !matches!(row.state, ShownState::Free | ShownState::Refused);
    let is_here = |node: &&NodeSnapshot| node.card == row.card && node.receives == row.receives;
    let node = machine.nodes.iter().find(is_here).filter(|_| shares(row))?;
    let mut others: Vec<Sharer<'_>> = machine
        .sessions
        .iter()
        .filter(|other| shares(other) && (&other.card, other.receives) == (&row.card, row.receives))
        .filter(|other| (other.pid, &other.id) != (row.pid, &row.id))
        .map(|other| Sharer {
            session: &other.id,
            pid: other.pid,
            user: other.user,
            command: &other.command,
            measured_bps: other.measured_bps,
            expected_bps: other.expected_bps,
        })
        .collect();
    others.sort_by(|one, other| other.measured_bps.total_cmp(&one.measured_bps));
    Some(SharedNode {
        origin: "daemon",
        role: if row.receives { "sink" } else { "source" },
        card: node.card.as_deref(),
        capacity_bps: node.capacity_bps,
        total_bps: node.measured_bps,
        max_min_bps: row.max_min_bps,
        holds,
        sessions: node.sessions,
        others,
    })
}

/// The sessions of processes that do not speak for themselves here, as the daemon knows them: each in the direction in
/// which it moves more.
pub(crate) fn of_others<'a>(machine: &'a MachineSnapshot, processes: &[ProcessStatus]) -> Vec<&'a RowSnapshot> {
    let is_known = |row: &RowSnapshot| processes.iter().any(|process| process.pid == row.pid);
    let moves_more = |row: &RowSnapshot| {
        let back = machine
            .sessions
            .iter()
            .find(|other| (other.pid, &other.id) == (row.pid, &row.id) && other.receives != row.receives);
        back.is_none_or(|back| (row.wire_bytes, row.receives) > (back.wire_bytes, back.receives))
    };
    machine.sessions.iter().filter(|row| !is_known(row) && moves_more(row)).collect()
}

/// Explanation of such a session.
pub(crate) fn explanation<'a>(machine: &'a MachineSnapshot, row: &'a RowSnapshot) -> (String, Option<SharedNode<'a>>) {
    let node = of_row(machine, row, row.limited_by.as_deref() == Some("node"));
    let verb = if row.receives { "receives from" } else { "sends to" };
    let peer = row.peer.map_or_else(|| "somebody".to_owned(), |peer| peer.to_string());
    let mut text = format!(
        "{} {verb} {peer} at {} ({}, process {}, user {})\n",
        paint(BOLD, &row.id),
        rate(row.measured_bps),
        row.command,
        row.pid,
        row.user
    );
    let by = row.limited_by.as_deref().unwrap_or("unknown");
    let _ = writeln!(text, "  limited by: {by}, as reported to the daemon");
    let _ = writeln!(text, "  {:<14} {}", "node", rate(row.expected_bps));
    if let Some(node) = &node {
        text += &lines(node);
    }
    (text, node)
}

/// The node as text, each line with a line end.
pub(crate) fn lines(node: &SharedNode<'_>) -> String {
    let card = node.card.map_or_else(|| "this machine".to_owned(), |card| format!("{card} of this machine"));
    let fair = node.max_min_bps.map_or_else(String::new, |fair| format!(", fair share {}", rate(fair)));
    let mark = if node.holds { " <- this" } else { "" };
    let mut text =
        format!("  {:<14} {card}, {} for all its sessions{fair}{mark}\n", node.role, rate(node.capacity_bps));
    let used: Vec<_> = node.others.iter().filter(|other| other.measured_bps > 0.0).collect();
    let mut names: Vec<String> = used
        .iter()
        .take(NAMED)
        .map(|other| format!("{} (process {}) {}", other.command, other.pid, rate(other.measured_bps)))
        .collect();
    // Idle ones, those beyond the list, and those of other users.
    let rest = node.sessions.saturating_sub(1).saturating_sub(names.len());
    if rest > 0 {
        names.push(format!("{rest} more, smaller or hidden"));
    }
    let with = if names.is_empty() { "no other session".to_owned() } else { names.join(", ") };
    let _ = writeln!(text, "  {:<14} {with}", "shared with");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, id: &str, measured_bps: f64) -> RowSnapshot {
        RowSnapshot {
            pid,
            id: id.into(),
            user: 1000,
            command: "bench".into(),
            receives: true,
            measured_bps,
            expected_bps: 2.333e8,
            max_min_bps: Some(2.333e8),
            wire_bytes: 5,
            ..RowSnapshot::default()
        }
    }

    fn machine() -> MachineSnapshot {
        let node = NodeSnapshot {
            receives: true,
            capacity_bps: 7e8,
            measured_bps: 6.9e8,
            sessions: 4,
            ..NodeSnapshot::default()
        };
        let sessions = vec![row(1, "aa", 2e8), row(2, "aa", 2.4e8), row(2, "bb", 0.0)];
        // The way back of the first.
        let back = RowSnapshot { receives: false, wire_bytes: 1, ..row(1, "aa", 1e3) };
        MachineSnapshot { nodes: vec![node], sessions: [sessions, vec![back]].concat(), ..MachineSnapshot::default() }
    }

    #[test]
    fn node_of__names_the_sink_and_who_else_shares_it() {
        let machine = machine();
        let node = node_of(&machine, (1, "aa", false), Some(LimitedBy::Node)).unwrap();
        assert_eq!((node.role, node.holds, node.sessions, node.others.len()), ("sink", true, 4, 2));
        let text = lines(&node);
        let expected = "  sink           this machine, 700.00 Mb/s for all its sessions, fair share 233.30 Mb/s <- this\n  shared with    bench (process 2) 240.00 Mb/s, 2 more, smaller or hidden\n";
        assert_eq!(text, expected);
        let json = serde_json::to_value(&node).unwrap();
        assert_eq!(
            (&json["origin"], &json["role"], &json["others"][0]["pid"]),
            (&"daemon".into(), &"sink".into(), &2.into())
        );
        // A session limited by its path is not limited by a node; and other processes, or the capacity of that
        // direction, are unknown.
        assert!(!node_of(&machine, (1, "aa", false), Some(LimitedBy::Path)).unwrap().holds);
        assert_eq!(node_of(&machine, (3, "aa", false), None), None);
        assert_eq!(node_of(&machine, (1, "aa", true), None), None);
    }

    #[test]
    fn of_others__are_sessions_of_processes_that_say_nothing_here() {
        let machine = machine();
        let found: Vec<_> = of_others(&machine, &[]).into_iter().map(|row| (row.pid, row.receives)).collect();
        assert_eq!(found, [(1, true), (2, true), (2, true)]);
        let (text, node) = explanation(&machine, &machine.sessions[0]);
        assert!(text.contains("aa") && text.contains("receives from somebody at 200.00 Mb/s"), "{text}");
        assert!(text.contains("  sink           this machine") && !node.unwrap().holds, "{text}");
    }
}
