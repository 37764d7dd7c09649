//! A view of the machine in words and numbers that others understand.

use std::collections::BTreeMap;

use fairwave_host::limited_by_word;
use fairwave_node::{CardId, Direction, RowState, ShareBy};
use fairwave_schemes::node::left_to_other;
use fairwave_schemes::{Others, Terms};
use fairwave_units::{Duration, Rate};

use crate::fair::{Claim, gap, max_min};
use crate::view::{MachineView, MemberView, RowView};
use fairwave_host::machine::{
    MachineSnapshot, NodeSnapshot, OtherTraffic, RowSnapshot, SNAPSHOT_VERSION, ShownState, UserSnapshot,
};

type NodeName = (CardId, Direction);

/// The snapshot of a view for a user who sees only their own sessions, or all.
pub(crate) fn snapshot(view: &MachineView, sees: Option<u32>) -> MachineSnapshot {
    let nodes: Vec<NodeShares> =
        view.nodes.iter().map(|node| NodeShares::of(view, (node.card, node.direction), node.capacity)).collect();
    let name = |card: CardId| view.cards.iter().find(|(id, _)| *id == card).and_then(|(_, name)| name.clone());
    let shown = |(number, member): (usize, &MemberView)| {
        let row = |(at, row): (usize, &RowView)| {
            let fair = nodes.iter().find_map(|node| node.shares.get(&(number, at)).copied());
            row_snapshot(member, row, row.card.and_then(name), fair)
        };
        member.rows.iter().enumerate().map(row).collect::<Vec<_>>()
    };
    let seen = |(_, member): &(usize, &MemberView)| sees.is_none_or(|user| user == member.user);
    MachineSnapshot {
        version: SNAPSHOT_VERSION,
        pid: std::process::id(),
        daemon: view.daemon,
        tick: view.tick,
        at_s: view.at.as_secs_f64(),
        uptime_s: view.at.since(view.started).as_secs_f64(),
        interval_s: view.interval.as_secs_f64(),
        tick_cost_s: view.cost.as_secs_f64(),
        is_grace: view.is_grace,
        share_by: match view.share_by {
            ShareBy::User => "user",
            ShareBy::Process => "process",
            ShareBy::Session => "session",
        }
        .to_owned(),
        nodes: nodes.iter().map(|node| node.snapshot(name(node.name.0), &view.others)).collect(),
        sessions: view.members.iter().enumerate().filter(seen).flat_map(shown).collect(),
        users: users(view),
        counts: view.counts,
    }
}

/// A node with the max-min vector of its sessions.
struct NodeShares {
    name: NodeName,
    capacity: Rate,
    claims: Vec<Claim>,
    /// By member and row.
    shares: BTreeMap<(usize, usize), f64>,
    gap: Option<f64>,
}

impl NodeShares {
    fn of(view: &MachineView, name: NodeName, capacity: Rate) -> Self {
        let mut places = Vec::new();
        let mut claims = Vec::new();
        for (number, member) in view.members.iter().enumerate() {
            for (at, row) in member.rows.iter().enumerate().filter(|(_, row)| row.node() == Some(name)) {
                places.push((number, at));
                claims.push(Claim {
                    terms: Terms { group: member.group, ..row.row.terms },
                    group_terms: member.terms,
                    measured_bps: row.row.measured.as_bps(),
                    expected_bps: row.expected.as_bps(),
                });
            }
        }
        let other = view.others.iter().find(|(node, _)| *node == name).map(|(_, other)| *other);
        let shares = shares(capacity, &claims, other);
        let gap = gap(&claims, &shares);
        Self { name, capacity, claims, shares: places.into_iter().zip(shares).collect(), gap }
    }

    fn snapshot(&self, card: Option<String>, others: &[(NodeName, Others)]) -> NodeSnapshot {
        let measured_bps: f64 = self.claims.iter().fold(0.0, |sum, claim| sum + claim.measured_bps);
        let other = others.iter().find(|(node, _)| *node == self.name).map(|(_, other)| OtherTraffic {
            weight: other.weight,
            measured_bps: other.measured.as_bps(),
            expected_bps: (self.capacity.as_bps() - measured_bps).max(0.0),
        });
        NodeSnapshot {
            card,
            receives: self.name.1 == Direction::Receiving,
            capacity_bps: self.capacity.as_bps(),
            measured_bps,
            expected_bps: self.claims.iter().fold(0.0, |sum, claim| sum + claim.expected_bps),
            sessions: self.claims.len(),
            gap_to_max_min: self.gap,
            other,
        }
    }
}

/// The max-min rates of a node's sessions, after the rule's share for other traffic.
fn shares(capacity: Rate, claims: &[Claim], other: Option<Others>) -> Vec<f64> {
    let Some(other) = other.filter(|other| other.measured > Rate::ZERO) else {
        return max_min(capacity.as_bps(), claims);
    };
    let with_other = |maximum: Option<Rate>| {
        let group_terms = Terms { weight: other.weight, ..Terms::default() };
        let terms = Terms { group: OTHER, maximum, ..Terms::default() };
        // It wants all that it can have.
        let wants = Claim { terms, group_terms, measured_bps: 1.0, expected_bps: 1.0 };
        let all: Vec<Claim> = claims.iter().copied().chain([wants]).collect();
        max_min(capacity.as_bps(), &all)
    };
    let share = with_other(None).pop().unwrap_or_default();
    let mut shares = with_other(Some(left_to_other(other, Rate::nearest_bps(share))));
    shares.pop();
    shares
}

/// The group of other traffic: no user's number.
const OTHER: u32 = u32::MAX;

fn row_snapshot(member: &MemberView, view: &RowView, card: Option<String>, fair: Option<f64>) -> RowSnapshot {
    let row = &view.row;
    let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
    RowSnapshot {
        pid: member.pid,
        user: member.user,
        command: member.command.to_string(),
        id: format!("{:016x}", row.session),
        peer: Some(row.peer),
        receives: row.receives,
        card,
        state: match view.state {
            _ if view.is_still => ShownState::Still,
            RowState::Shares if view.exceeds => ShownState::Exceeds,
            RowState::Shares => ShownState::Shares,
            RowState::Free => ShownState::Free,
            RowState::Refused => ShownState::Refused,
        },
        measured_bps: row.measured.as_bps(),
        expected_bps: view.expected.as_bps(),
        target_bps: view.target.as_bps(),
        max_min_bps: fair,
        desired_bps: bps(row.terms.desired),
        weight: row.terms.weight,
        minimum_bps: row.terms.minimum.as_bps(),
        maximum_bps: bps(row.terms.maximum),
        remote_bps: bps(row.remote.map(|remote| remote.rate)),
        path_rate_bps: bps(row.path),
        limited_by: limited_by_word(row.limited_by).map(str::to_owned),
        rtt_s: Some(row.rtt).filter(|rtt| *rtt > Duration::ZERO).map(Duration::as_secs_f64),
        waiting_s: row.waiting.map(Duration::as_secs_f64),
        wire_bytes: row.wire_bytes.get(),
        lost_packets: row.lost,
    }
}

fn users(view: &MachineView) -> Vec<UserSnapshot> {
    let names = names();
    let mut users: BTreeMap<u32, UserSnapshot> = BTreeMap::new();
    for member in &view.members {
        let user = users.entry(member.user).or_insert_with(|| UserSnapshot {
            user: member.user,
            name: names.get(&member.user).cloned(),
            weight: member.terms.weight,
            ..UserSnapshot::default()
        });
        user.processes += 1;
        user.sessions += member.rows.len();
        for row in &member.rows {
            let sum = if row.row.receives { &mut user.received_bps } else { &mut user.sent_bps };
            *sum += row.row.measured.as_bps();
        }
    }
    users.into_values().collect()
}

/// Names of local users; users of a directory service have only numbers.
fn names() -> BTreeMap<u32, String> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(user).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use fairwave_node::MachineNode;
    use fairwave_table::ProcessRow;
    use fairwave_units::{Bytes, Time};

    const NODE: NodeName = (CardId(3), Direction::Receiving);

    /// A user with a session that uses all its grant of 100 Mb/s, with other traffic of weight one.
    fn view(expected_mbps: f64, other_mbps: f64) -> MachineView {
        let rate = Rate::mbps(expected_mbps);
        let said = row(rate);
        let row = RowView {
            row: said,
            state: RowState::Shares,
            card: Some(NODE.0),
            is_still: false,
            exceeds: false,
            expected: rate,
            target: rate,
        };
        let member = MemberView {
            user: 1000,
            pid: 1,
            command: Arc::from("get"),
            group: 1000,
            terms: Terms::default(),
            rows: vec![row],
        };
        MachineView {
            nodes: vec![MachineNode { card: NODE.0, direction: NODE.1, capacity: Rate::mbps(100.0), sessions: 1 }],
            others: vec![(NODE, Others { weight: 1.0, measured: Rate::mbps(other_mbps) })],
            members: vec![member],
            at: Time::ZERO,
            ..MachineView::default()
        }
    }

    fn row(measured: Rate) -> ProcessRow {
        ProcessRow {
            generation: 1,
            session: 1,
            receives: true,
            measured,
            measured_at: Time::ZERO,
            terms: Terms::default(),
            rtt: Duration::from_millis(20),
            waiting: None,
            start: measured,
            path: None,
            remote: None,
            limited_by: 0,
            peer: std::net::Ipv4Addr::LOCALHOST.into(),
            wire_bytes: Bytes::ZERO,
            lost: 0,
            holding: None,
        }
    }

    #[test]
    fn snapshot__of_an_idle_node_has_no_negative_zero() {
        let view = MachineView { members: Vec::new(), ..view(50.0, 0.0) };
        let node = &snapshot(&view, None).nodes[0];
        assert!(node.measured_bps.is_sign_positive() && node.expected_bps.is_sign_positive());
    }

    #[test]
    fn gap_to_max_min__takes_off_what_is_left_to_other_traffic() {
        let gap = |expected, other| snapshot(&view(expected, other), None).nodes[0].gap_to_max_min.unwrap();
        // Other traffic has its half, or wants more than that.
        assert!(gap(50.0, 50.0) < 1e-6 && gap(50.0, 80.0) < 1e-6);
        // 10 and a tenth of the 40 that are missing are left to it: 86.
        assert!(gap(86.0, 10.0) < 1e-6, "{}", gap(86.0, 10.0));
        assert!((gap(43.0, 10.0) - 0.5).abs() < 1e-6);
        // It uses nothing: all is the session's.
        assert!(gap(100.0, 0.0) < 1e-6);
    }
}
