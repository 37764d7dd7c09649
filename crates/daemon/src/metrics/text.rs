//! Prometheus' text format (version 0.0.4).

use std::fmt::Write as _;

use super::shown::shown;
use fairwave_host::machine::{MachineSnapshot, NodeSnapshot, RowSnapshot, ShownState, UserSnapshot};

/// A machine as Prometheus reads it: rates are in bit/s, and names end in their unit.
///
/// The 200 sessions that use most are shown individually, by process and name; sums of nodes and users have them all.
///
/// ```
/// use fairwave_daemon::metrics::prometheus_text;
/// use fairwave_host::machine::MachineSnapshot;
///
/// let text = prometheus_text(&MachineSnapshot { interval_s: 0.02, ..MachineSnapshot::default() });
/// assert!(text.lines().any(|line| line == "fairwave_daemon_interval_seconds 0.02"));
/// ```
pub fn prometheus_text(machine: &MachineSnapshot) -> String {
    let (machine, left_out) = shown(machine);
    let mut text = Text::default();
    text.daemon(&machine, left_out);
    text.nodes(&machine.nodes);
    text.users(&machine.users);
    text.sessions(&machine.sessions);
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn daemon(&mut self, machine: &MachineSnapshot, left_out: usize) {
        self.one("daemon_uptime_seconds", GAUGE, "Uptime of the daemon", machine.uptime_s);
        self.one("daemon_ticks_total", COUNTER, "Control intervals since the start", machine.tick as f64);
        self.one("daemon_interval_seconds", GAUGE, "Control interval", machine.interval_s);
        self.one("daemon_tick_cost_seconds", GAUGE, "Recent CPU time of a tick", machine.tick_cost_s);
        let help = "1 during the grace period after a restart, when only earlier grants are honoured";
        self.one("daemon_grace", GAUGE, help, f64::from(u8::from(machine.is_grace)));
        self.one("sessions_left_out", GAUGE, "Sessions that are counted in totals only", left_out as f64);
        let counts = &machine.counts;
        for (name, help, count) in [
            ("daemon_processes_joined_total", "Processes that joined", counts.joined),
            ("daemon_processes_refused_total", "Processes that were refused", counts.refused_processes),
            ("daemon_rows_refused_total", "Session rows that were refused", counts.refused_rows),
            ("daemon_rows_unread_total", "Session rows that could not be read", counts.unread_rows),
            ("daemon_sessions_exceeded_total", "Sessions that exceeded their grant", counts.exceeded),
            ("daemon_ticks_late_total", "Ticks more than a tenth of an interval late", counts.late_ticks),
        ] {
            self.one(name, COUNTER, help, count as f64);
        }
    }

    fn nodes(&mut self, nodes: &[NodeSnapshot]) {
        let labels = |node: &NodeSnapshot| {
            vec![("card", node.card.as_deref().unwrap_or("all").to_owned()), ("direction", direction(node.receives))]
        };
        let mut all = |name, help, of: &dyn Fn(&NodeSnapshot) -> Option<f64>| {
            self.family(name, GAUGE, help, nodes.iter().filter_map(|node| Some((labels(node), of(node)?))));
        };
        all("node_capacity_bps", "Capacity of an end node", &|node| Some(node.capacity_bps));
        all("node_measured_bps", "Rate of all its sessions in the last interval", &|node| Some(node.measured_bps));
        all("node_expected_bps", "Total of the grants", &|node| Some(node.expected_bps));
        all("node_sessions", "Number of sessions", &|node| Some(node.sessions as f64));
        all("node_gap_to_max_min_ratio", "Largest gap of a grant to max-min", &|node| node.gap_to_max_min);
        let other = |node: &NodeSnapshot| node.other;
        all("node_other_bps", "Other traffic of the card", &|node| other(node).map(|other| other.measured_bps));
        all("node_other_expected_bps", "Capacity left to other traffic", &|node| {
            other(node).map(|other| other.expected_bps)
        });
    }

    fn users(&mut self, users: &[UserSnapshot]) {
        let labels = |user: &UserSnapshot| {
            vec![("user", user.name.clone().unwrap_or_else(|| user.user.to_string())), ("uid", user.user.to_string())]
        };
        let mut all = |name, help, of: &dyn Fn(&UserSnapshot) -> f64| {
            self.family(name, GAUGE, help, users.iter().map(|user| (labels(user), of(user))));
        };
        all("user_processes", "Processes of a user", &|user| user.processes as f64);
        all("user_sessions", "Sessions of a user, per direction", &|user| user.sessions as f64);
        all("user_sent_bps", "Send rate of a user's sessions", &|user| user.sent_bps);
        all("user_received_bps", "Receive rate of a user's sessions", &|user| user.received_bps);
        all("user_weight", "Total weight of a user's sessions", &|user| user.weight);
    }

    fn sessions(&mut self, rows: &[RowSnapshot]) {
        let labels = |row: &RowSnapshot| {
            vec![
                ("pid", row.pid.to_string()),
                ("session", row.id.clone()),
                ("direction", direction(row.receives)),
                ("command", row.command.clone()),
            ]
        };
        let mut all = |name, kind, help, of: &dyn Fn(&RowSnapshot) -> Option<f64>| {
            self.family(name, kind, help, rows.iter().filter_map(|row| Some((labels(row), of(row)?))));
        };
        all("session_measured_bps", GAUGE, "Rate of a session in the last interval", &|row| Some(row.measured_bps));
        all("session_expected_bps", GAUGE, "Expected rate of a session", &|row| Some(row.expected_bps));
        all("session_target_bps", GAUGE, "Target rate of a session", &|row| Some(row.target_bps));
        all("session_desired_bps", GAUGE, "Desired rate of a session", &|row| row.desired_bps);
        all("session_max_min_bps", GAUGE, "Max-min rate of a session", &|row| row.max_min_bps);
        all("session_rtt_seconds", GAUGE, "Round-trip time of a session", &|row| row.rtt_s);
        all("session_wire_bytes_total", COUNTER, "Bytes sent or received by a session", &|row| {
            Some(row.wire_bytes as f64)
        });
        all("session_lost_packets_total", COUNTER, "Lost packets of a session", &|row| {
            Some(f64::from(row.lost_packets))
        });
        let states = rows.iter().map(|row| {
            let mut labels = labels(row);
            labels.push(("state", state(row.state).to_owned()));
            labels.push(("limited_by", row.limited_by.clone().unwrap_or_default()));
            (labels, 1.0)
        });
        self.family("session_info", GAUGE, "State and limit of a session", states);
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help, std::iter::once((Vec::new(), value)));
    }

    /// All lines of one name, if there are any.
    fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        lines: impl Iterator<Item = (Vec<(&'static str, String)>, f64)>,
    ) {
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            return;
        }
        let _ = writeln!(self.0, "# HELP fairwave_{name} {help}.\n# TYPE fairwave_{name} {kind}");
        for (labels, value) in lines {
            let _ = write!(self.0, "fairwave_{name}");
            for (at, (label, value)) in labels.iter().enumerate() {
                let _ = write!(self.0, "{}{label}=\"{}\"", if at == 0 { '{' } else { ',' }, escaped(value));
            }
            let _ = writeln!(self.0, "{} {}", if labels.is_empty() { "" } else { "}" }, number(value));
        }
    }
}

const GAUGE: &str = "gauge";
const COUNTER: &str = "counter";

fn direction(receives: bool) -> String {
    if receives { "receive" } else { "send" }.to_owned()
}

fn state(state: ShownState) -> &'static str {
    match state {
        ShownState::Shares => "shares",
        ShownState::Free => "free",
        ShownState::Refused => "refused",
        ShownState::Still => "still",
        ShownState::Exceeds => "exceeds",
    }
}

/// Exposition formats, "Text-based format": in a label backslash, quote and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        value => value.to_string(),
    }
}

#[cfg(test)]
pub(super) mod tests;
