//! The data of `top`, from this user's processes or from the daemon of the machine.

use std::collections::{BTreeMap, VecDeque};

use fairwave_host::machine::{MachineSnapshot, NodeSnapshot, RowSnapshot, ShownState};
use fairwave_host::{ProcessStatus, SessionStatus};

/// One look: capacities, and the sessions that share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Board {
    /// Source of the data, with notes about it.
    pub(super) about: String,
    pub(super) nodes: Vec<NodeLine>,
    pub(super) sessions: Vec<SessionLine>,
}

/// A capacity.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeLine {
    pub(super) name: String,
    /// None where it is not known: then no end node holds its sessions.
    pub(super) capacity_bps: Option<f64>,
    pub(super) measured_bps: f64,
    /// Max distance of the grants from max-min, as a share of a session's rate in it.
    pub(super) gap_to_max_min: Option<f64>,
    pub(super) sessions: usize,
    /// Traffic of the card besides these sessions, bit/s.
    pub(super) other_bps: Option<f64>,
}

/// A session in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SessionLine {
    /// Its name among all.
    pub(super) key: String,
    pub(super) id: String,
    pub(super) process: String,
    pub(super) way: String,
    /// Capacity of its node, or its largest rate, bit/s.
    pub(super) capacity_bps: f64,
    pub(super) measured_bps: f64,
    pub(super) expected_bps: Option<f64>,
    pub(super) target_bps: Option<f64>,
    pub(super) desired_bps: Option<f64>,
    pub(super) limited_by: String,
}

/// A session that uses less than this share of its grant wants no more than it uses.
const CONTENT: f64 = 0.95;

impl Board {
    /// Of this user's processes, each of which is its own end node.
    pub(super) fn of_processes(processes: &[ProcessStatus]) -> Self {
        let mut board = Self::default();
        for process in processes {
            for (sends, capacity_bps) in [(true, process.send_capacity_bps), (false, process.receive_capacity_bps)] {
                let here: Vec<_> = process.sessions.iter().filter(|session| session.is_source == sends).collect();
                if here.is_empty() {
                    continue;
                }
                let name = format!("{} {} {}", process.command, process.pid, if sends { "sends" } else { "receives" });
                board.nodes.push(NodeLine {
                    name,
                    capacity_bps,
                    measured_bps: here.iter().map(|session| used(session)).sum(),
                    gap_to_max_min: capacity_bps.and_then(|capacity| gap(capacity, &here)),
                    sessions: here.len(),
                    other_bps: None,
                });
                board.sessions.extend(here.iter().map(|session| of_status(process, session, capacity_bps)));
            }
        }
        board.about = match processes {
            [] => "no Fairwave process of this user is running".into(),
            [only] => format!("1 process, capacity from {}", only.capacity_from),
            all => format!("{} processes, each its own end node", all.len()),
        };
        board
    }

    /// From the daemon's view of a machine.
    pub(super) fn of_machine(machine: &MachineSnapshot) -> Self {
        let nodes = machine.nodes.iter().map(of_node).collect();
        let capacity = |row: &RowSnapshot| {
            let node = machine.nodes.iter().find(|node| node.card == row.card && node.receives == row.receives);
            node.map(|node| node.capacity_bps)
        };
        let sessions = machine.sessions.iter().map(|row| of_row(row, capacity(row))).collect();
        let about = format!(
            "daemon {}, shared by {}, interval {:.0} ms, {} users{}",
            machine.pid,
            machine.share_by,
            machine.interval_s * 1e3,
            machine.users.len(),
            if machine.is_grace { ", just started" } else { "" }
        );
        Self { about, nodes, sessions }
    }
}

fn used(session: &SessionStatus) -> f64 {
    session.measured_bps.unwrap_or(session.rate_bps)
}

fn of_status(process: &ProcessStatus, session: &SessionStatus, capacity_bps: Option<f64>) -> SessionLine {
    let measured_bps = used(session);
    let largest = [session.expected_bps, session.desired_bps].into_iter().flatten().fold(measured_bps, f64::max);
    SessionLine {
        key: format!("{} {}", process.pid, session.id),
        id: session.id.clone(),
        process: format!("{} {}", process.command, process.pid),
        way: format!("{} {}", if session.is_source { "to" } else { "from" }, session.peer),
        capacity_bps: capacity_bps.unwrap_or(largest),
        measured_bps,
        expected_bps: session.expected_bps,
        target_bps: session.target_bps,
        desired_bps: session.desired_bps,
        limited_by: session.limited_by.map_or_else(|| "-".into(), |by| by.to_string()),
    }
}

fn of_node(node: &NodeSnapshot) -> NodeLine {
    let card = node.card.as_deref().unwrap_or("all cards");
    NodeLine {
        name: format!("{card} {}", if node.receives { "receives" } else { "sends" }),
        capacity_bps: Some(node.capacity_bps),
        measured_bps: node.measured_bps,
        gap_to_max_min: node.gap_to_max_min,
        sessions: node.sessions,
        other_bps: node.other.map(|other| other.measured_bps),
    }
}

fn of_row(row: &RowSnapshot, capacity_bps: Option<f64>) -> SessionLine {
    let largest = row.expected_bps.max(row.measured_bps);
    let peer = row.peer.map_or_else(|| "-".into(), |peer| peer.to_string());
    let state = match row.state {
        ShownState::Shares => row.limited_by.clone().unwrap_or_else(|| "-".into()),
        ShownState::Free => "no node".into(),
        ShownState::Refused => "refused".into(),
        ShownState::Still => "stalled".into(),
        ShownState::Exceeds => "above its grant".into(),
    };
    SessionLine {
        key: format!("{} {} {}", row.pid, row.id, row.receives),
        id: row.id.clone(),
        process: format!("{} {}", row.command, row.pid),
        way: format!("{} {peer}", if row.receives { "from" } else { "to" }),
        capacity_bps: capacity_bps.unwrap_or(largest),
        measured_bps: row.measured_bps,
        expected_bps: Some(row.expected_bps),
        target_bps: Some(row.target_bps),
        desired_bps: row.desired_bps,
        limited_by: state,
    }
}

/// Max distance of the grants of one node from max-min, as a share of a session's rate in it: its sessions have equal
/// weights, and a session below its grant wants no more than it uses. Limits by peers and paths are part of the
/// measured rate.
fn gap(capacity_bps: f64, sessions: &[&SessionStatus]) -> Option<f64> {
    let granted: Vec<(f64, f64)> = sessions
        .iter()
        .filter_map(|session| {
            let expected = session.expected_bps?;
            let is_content = used(session) < CONTENT * expected;
            let wants = session.desired_bps.unwrap_or(f64::INFINITY);
            Some((expected, if is_content { wants.min(used(session)) } else { wants }))
        })
        .collect();
    // In ascending order of demand: each has an even share of the rest, and no more than it wants.
    let mut order: Vec<_> = (0..granted.len()).collect();
    order.sort_by(|one, other| granted[*one].1.total_cmp(&granted[*other].1));
    let (mut left, mut worst) = (capacity_bps, None);
    for (at, index) in order.iter().enumerate() {
        let (expected, wants) = granted[*index];
        let share = wants.min(left / (granted.len() - at) as f64);
        left -= share;
        // A satisfied session is offered more than it uses: that is not a distance.
        let is_content = wants < expected && wants == share;
        if share > 0.0 && !is_content {
            worst = Some(f64::max(worst.unwrap_or(0.0), (expected - share).abs() / share));
        }
    }
    worst.or((!granted.is_empty()).then_some(0.0))
}

/// Measured rates of the last samples, of nodes and sessions by name.
#[derive(Debug, Default)]
pub(super) struct Trail {
    looks: BTreeMap<String, VecDeque<u64>>,
}

/// Looks that are kept.
const LOOKS: usize = 60;

impl Trail {
    /// Adds a sample. Names that are gone are forgotten.
    pub(super) fn add(&mut self, board: &Board) {
        let nodes = board.nodes.iter().map(|node| (&node.name, node.measured_bps));
        let now: BTreeMap<&String, f64> =
            nodes.chain(board.sessions.iter().map(|session| (&session.key, session.measured_bps))).collect();
        self.looks.retain(|name, _| now.contains_key(name));
        for (name, bps) in now {
            let looks = self.looks.entry(name.clone()).or_default();
            looks.push_back(bps.max(0.0) as u64);
            if looks.len() > LOOKS {
                looks.pop_front();
            }
        }
    }

    /// The last samples of one name, at most this many, the newest last.
    pub(super) fn of(&self, name: &str, most: usize) -> impl Iterator<Item = u64> {
        let looks = self.looks.get(name);
        let skipped = looks.map_or(0, |looks| looks.len().saturating_sub(most));
        looks.into_iter().flatten().skip(skipped).copied()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A process with sessions of such measured, expected and desired rates in Mb/s, as a sink of 700 Mb/s.
    pub(crate) fn process(sessions: &[(f64, f64, Option<f64>)]) -> ProcessStatus {
        let sessions: Vec<_> = sessions
            .iter()
            .enumerate()
            .map(|(at, (measured, expected, desired))| {
                serde_json::json!({
                    "id": format!("{:016x}", 0xa0 + at), "peer": "192.0.2.1:8642", "is_initiator": false, "sends": false,
                    "receives": true, "is_source": false, "is_dedicated": false, "is_plain": false,
                    "rate_bps": measured * 1e6, "measured_bps": measured * 1e6, "expected_bps": expected * 1e6,
                    "target_bps": expected * 1e6, "sink_expected_bps": null, "desired_bps": desired.map(|mbps| mbps * 1e6),
                    "path_rate_bps": null, "limited_by": "node", "because": "", "rtt_s": 0.06, "datagram_bytes": 1400,
                    "sent_packets": 0, "lost_packets": 0, "received_packets": 0, "silent_s": 0.0, "unanswered_s": 0.0,
                    "transfer": null,
                })
            })
            .collect();
        serde_json::from_value(serde_json::json!({
            "version": 1, "pid": 77, "command": "get", "listen": null, "send_capacity_bps": 7e8,
            "receive_capacity_bps": 7e8, "capacity_from": "--capacity", "sessions": sessions,
        }))
        .unwrap()
    }

    /// A machine with a node that sends and two sessions of two users.
    pub(crate) fn machine() -> MachineSnapshot {
        let row = |pid, command: &str, measured_bps, limited_by: &str| RowSnapshot {
            pid,
            command: command.into(),
            id: "00000000000000ff".into(),
            peer: "192.0.2.9".parse().ok(),
            card: Some("eth0".into()),
            measured_bps,
            expected_bps: 3.5e8,
            target_bps: 3.5e8,
            limited_by: Some(limited_by.into()),
            ..RowSnapshot::default()
        };
        let still = RowSnapshot { state: ShownState::Still, peer: None, ..row(79, "serve", 1e6, "node") };
        MachineSnapshot {
            pid: 50,
            share_by: "user".into(),
            interval_s: 0.02,
            nodes: vec![NodeSnapshot {
                card: Some("eth0".into()),
                capacity_bps: 7e8,
                measured_bps: 3.51e8,
                sessions: 2,
                gap_to_max_min: Some(0.012),
                other: Some(fairwave_host::machine::OtherTraffic {
                    weight: 1.0,
                    measured_bps: 1.2e8,
                    expected_bps: 3.5e8,
                }),
                ..NodeSnapshot::default()
            }],
            sessions: vec![row(78, "put", 3.5e8, "node"), still],
            ..MachineSnapshot::default()
        }
    }

    #[test]
    fn of_processes__sums_up_what_crosses_each_capacity() {
        let board = Board::of_processes(&[process(&[(350.0, 350.0, None), (349.0, 350.0, None)])]);
        let [node] = &board.nodes[..] else { panic!("{:?}", board.nodes) };
        assert_eq!((node.name.as_str(), node.sessions), ("get 77 receives", 2));
        assert_eq!((node.measured_bps, node.capacity_bps, node.gap_to_max_min), (6.99e8, Some(7e8), Some(0.0)));
        assert_eq!((board.sessions[1].id.as_str(), board.sessions[1].capacity_bps), ("00000000000000a1", 7e8));
        assert_eq!(Board::of_processes(&[]).about, "no Fairwave process of this user is running");
    }

    #[test]
    fn gap__is_that_of_who_wants_more() {
        let gap = |sessions: &[(f64, f64, Option<f64>)]| {
            let gap = Board::of_processes(&[process(sessions)]).nodes[0].gap_to_max_min.unwrap();
            (gap * 1000.0).round() / 1000.0
        };
        // One uses 100 of its 350: the other may have 600, and has 350: 250 / 600.
        assert_eq!(gap(&[(100.0, 350.0, None), (350.0, 350.0, None)]), 0.417);
        assert_eq!(gap(&[(100.0, 135.0, None), (600.0, 600.0, None)]), 0.0);
        // A session that wants 100 wants no more, whatever its grant.
        assert_eq!(gap(&[(100.0, 100.0, Some(100.0)), (600.0, 600.0, None)]), 0.0);
        assert_eq!(gap(&[(700.0, 700.0, None)]), 0.0);
        assert_eq!(gap(&[(0.0, 0.0, None), (600.0, 600.0, None)]), 1.0);
    }

    #[test]
    fn of_machine__says_what_the_daemon_knows() {
        let board = Board::of_machine(&machine());
        assert_eq!((board.nodes[0].name.as_str(), board.nodes[0].other_bps), ("eth0 sends", Some(1.2e8)));
        assert_eq!(board.sessions[0].limited_by, "node");
        assert_eq!((board.sessions[1].limited_by.as_str(), board.sessions[1].way.as_str()), ("stalled", "to -"));
    }

    #[test]
    fn trail__has_the_last_looks_of_what_is_there() {
        let mut trail = Trail::default();
        for look in 0..100 {
            trail.add(&Board::of_processes(&[process(&[(f64::from(look), 350.0, None)])]));
        }
        assert_eq!(trail.of("get 77 receives", 3).collect::<Vec<_>>(), [97_000_000, 98_000_000, 99_000_000]);
        assert_eq!(trail.of("77 00000000000000a0", 1000).count(), LOOKS);
        trail.add(&Board::default());
        assert_eq!(trail.of("get 77 receives", 3).count(), 0);
    }
}
