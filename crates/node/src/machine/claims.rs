//! A node of a machine at which sessions of Tally are: claims divide it, and those of GTP are measured.

use std::collections::BTreeMap;

use fairwave_schemes::node::tally::{SharedKind, SharedNode, SharedRow};
use fairwave_schemes::{Grant, Others, Row, Terms};
use fairwave_units::{Rate, Time};

use super::held::{Counted, Held};
use crate::flow_table::{FlowEntry, FlowTable};
use crate::session::Direction;
use crate::share::{Share, Shares};

/// The inputs of a node's division, next to its rows.
pub(super) struct NodeTerms<'a> {
    pub(super) now: Time,
    pub(super) tick: u64,
    pub(super) direction: Direction,
    /// Whether grants may be raised.
    pub(super) may_raise: bool,
    pub(super) capacity: Rate,
    /// Traffic that may still arrive for processes that are gone, by their users.
    pub(super) left_behind: BTreeMap<u32, Rate>,
    /// Whether groups are users.
    pub(super) is_by_user: bool,
    /// The card's other traffic.
    pub(super) other: Option<Others>,
    pub(super) users: &'a BTreeMap<u32, Terms>,
}

/// A row of the node, in the order of the node's rows.
pub(super) struct Claiming<'a> {
    pub(super) group: u32,
    pub(super) user: u32,
    /// Of plain GTP: the largest grant recently that was the machine's, and not what it started with.
    pub(super) given: Rate,
    /// When its process last said anything.
    pub(super) changed: Time,
    /// None of plain GTP.
    pub(super) held: Option<&'a mut Held>,
}

/// A row of a node, and the largest grant that what is seen of it may go back to.
#[derive(Clone, Copy, Debug)]
struct RecentRow {
    row: Row,
    recent: Rate,
}

/// Returns each row's share.
pub(super) fn divide(
    node: &mut SharedNode,
    terms: &NodeTerms<'_>,
    flows: &FlowTable,
    rows: &[Row],
    mut claiming: Vec<Claiming<'_>>,
    to: &mut Shares,
) {
    let recent = |(row, entry): (&Row, &FlowEntry)| RecentRow { row: *row, recent: entry.recent };
    let rows: Vec<RecentRow> = rows.iter().zip(flows.iter()).map(recent).collect();
    let mut names: Vec<u32> = claiming.iter().map(|row| row.group).collect();
    names.sort_unstable();
    names.dedup();
    let mut groups: Vec<Terms> = names.iter().map(|name| terms.users.get(name).copied().unwrap_or_default()).collect();
    let weights: f64 = groups.iter().map(|group| group.weight).sum();
    let capacity_bps =
        terms.capacity.as_bps() - terms.other.map_or(0.0, |other| left_to(other, terms.capacity, weights));
    let counted: Vec<Option<Counted>> =
        claiming.iter_mut().map(|row| row.held.as_mut().and_then(|held| held.count(terms.now, row.changed))).collect();
    let mut shared: Vec<SharedRow> = rows
        .iter()
        .zip(&claiming)
        .zip(&counted)
        .map(|((row, claiming), counted)| {
            let group = names.binary_search(&claiming.group).unwrap_or(0);
            match claiming.held.as_deref() {
                Some(held) => row_of_tally(group, row, terms.direction, held, *counted),
                None => row_of_gtp(group, row, claiming.given),
            }
        })
        .collect();
    let beyond: Vec<Beyond> = rows
        .iter()
        .zip(&claiming)
        .zip(&counted)
        .map(|((row, claiming), counted)| beyond(row, claiming, *counted))
        .collect();
    let owners: Vec<u32> = claiming.iter().map(|row| row.user).collect();
    believe(capacity_bps, &terms.left_behind, &owners, &groups, &mut shared, &beyond);
    if terms.is_by_user {
        narrow(capacity_bps, &terms.left_behind, &names, &mut groups, &shared);
    }
    let left_bps = terms.left_behind.values().copied().sum::<Rate>().as_bps();
    let grants = node.divide(terms.now, capacity_bps, left_bps, terms.may_raise, &groups, &shared);
    let granted = |((grant, row), claiming): ((Grant, &SharedRow), Claiming<'_>)| {
        // Of a session of GTP the node's own table remembers for how long an earlier grant may still be used.
        let mut allowed = grant.expected;
        if let Some(held) = claiming.held {
            allowed = Rate::nearest_bps(row.reserved_bps).max(grant.expected);
            held.grant(terms.now, terms.tick, grant.expected);
        }
        Some(Share { allowed, ..Share::of_grant(grant) })
    };
    to.clear();
    to.extend(grants.into_iter().zip(&shared).zip(claiming).map(granted));
}

/// The share that remains for traffic without grants: what it uses and a step as of a session, up to its share.
fn left_to(other: Others, capacity: Rate, weights: f64) -> f64 {
    let Terms { alpha, beta, .. } = Terms::default();
    let share = capacity.as_bps() * other.weight / (other.weight + weights);
    let gap = (share - other.measured.as_bps()).max(0.0);
    let step = (alpha * gap).max(alpha * beta * share).min(gap);
    (other.measured.as_bps() + step).min(share)
}

fn base(group: usize, row: &RecentRow) -> SharedRow {
    SharedRow {
        group,
        terms: row.row.terms,
        claim_bps: 0.0,
        granted_bps: 0.0,
        reserved_bps: 0.0,
        kind: SharedKind::Plain,
    }
}

/// A session of GTP claims what it uses, and holds what it was granted recently.
fn row_of_gtp(group: usize, row: &RecentRow, given: Rate) -> SharedRow {
    let base = base(group, row);
    let held_bps = row.recent.min(given).as_bps();
    let terms = Terms { maximum: base.terms.limit(), ..base.terms };
    let claim_bps = row.row.measured.as_bps();
    SharedRow { terms, claim_bps, granted_bps: held_bps, reserved_bps: held_bps, ..base }
}

/// The rate that a row claims to hold beyond its grants here, bit/s.
#[derive(Clone, Copy, Default)]
struct Beyond {
    bps: f64,
    /// The grant that it reports.
    granted_bps: f64,
}

fn beyond(row: &RecentRow, claiming: &Claiming<'_>, counted: Option<Counted>) -> Beyond {
    if claiming.held.is_none() {
        let recent_bps = row.recent.as_bps();
        return Beyond { bps: (recent_bps - claiming.given.as_bps()).max(0.0), granted_bps: recent_bps };
    }
    counted.map_or(Beyond::default(), |counted| Beyond {
        bps: counted.beyond.as_bps(),
        granted_bps: counted.granted.as_bps(),
    })
}

fn row_of_tally(
    group: usize,
    row: &RecentRow,
    direction: Direction,
    held: &Held,
    counted: Option<Counted>,
) -> SharedRow {
    let base = base(group, row);
    // A session that has ended claims nothing and gets no grant: no step of GTP either.
    let nothing = SharedKind::Sink { is_application_limited: false, is_silent: false };
    let Some(counted) = counted else { return SharedRow { kind: nothing, ..base } };
    let standing = held.standing();
    let limitless = |limit: Option<Rate>| limit.map_or(f64::INFINITY, Rate::as_bps);
    let is_application_limited = standing.is_application_limited;
    let kind = if standing.is_plain {
        base.kind
    } else if direction == Direction::Sending {
        SharedKind::Source { limit_bps: limitless(standing.limit), is_application_limited }
    } else {
        SharedKind::Sink { is_application_limited, is_silent: counted.is_silent }
    };
    // Its grants here; `believe` adds the other rates that are believed.
    let reserved_bps = counted.proven.as_bps();
    let granted_bps = counted.granted.as_bps().min(counted.last.as_bps());
    SharedRow { claim_bps: limitless(standing.claim), granted_bps, reserved_bps, kind, ..base }
}

/// Rates that rows hold beyond their grants here count as far as all of them could have that: as if each claimed what
/// it reports as held. Claiming to hold the whole capacity gains no more than asking for it.
fn believe(
    capacity_bps: f64,
    left_behind: &BTreeMap<u32, Rate>,
    owners: &[u32],
    groups: &[Terms],
    rows: &mut [SharedRow],
    beyond: &[Beyond],
) {
    if beyond.iter().all(|beyond| beyond.bps <= 0.0) {
        return;
    }
    let mut claimed = rows.to_vec();
    for (row, beyond) in claimed.iter_mut().zip(beyond) {
        row.claim_bps = row.claim_bps.max((row.reserved_bps + beyond.bps).min(capacity_bps));
    }
    let shares = SharedNode::shares(capacity_bps, groups, &claimed);
    let part =
        |((row, share), beyond): ((&SharedRow, &f64), &Beyond)| beyond.bps.min((share - row.reserved_bps).max(0.0));
    let asked: Vec<f64> = rows.iter().zip(&shares).zip(beyond).map(part).collect();
    // A row that has more than its part leaves that much less to the others of its group, and of its user; and so does
    // what the user's processes left behind.
    let mut of_groups: BTreeMap<usize, Room> = BTreeMap::new();
    let mut of_users: BTreeMap<u32, Room> = BTreeMap::new();
    let mut of_all = Room { bps: capacity_bps, asked_bps: 0.0 };
    for (user, left) in left_behind {
        of_users.entry(*user).or_default().bps -= left.as_bps();
        of_all.bps -= left.as_bps();
    }
    for (((row, share), user), asked) in rows.iter().zip(&shares).zip(owners).zip(&asked) {
        of_groups.entry(row.group).or_default().ask(share - row.reserved_bps, *asked);
        of_users.entry(*user).or_default().ask(share - row.reserved_bps, *asked);
        of_all.ask(-row.reserved_bps, *asked);
    }
    for (((row, user), asked), beyond) in rows.iter_mut().zip(owners).zip(asked).zip(beyond) {
        let rooms = [of_groups.get(&row.group), of_users.get(user), Some(&of_all)];
        let believed = asked * rooms.into_iter().flatten().map(Room::scale).fold(1.0, f64::min);
        if believed > 0.0 {
            row.reserved_bps += believed;
            row.granted_bps = beyond.granted_bps.min(row.granted_bps + believed);
        }
    }
}

/// The rate that several rows may have together beyond their grants, and their demand.
#[derive(Clone, Copy, Default)]
struct Room {
    bps: f64,
    asked_bps: f64,
}

impl Room {
    fn ask(&mut self, room_bps: f64, asked_bps: f64) {
        self.bps += room_bps;
        self.asked_bps += asked_bps;
    }

    /// How much of what is asked for there is.
    fn scale(&self) -> f64 {
        let room_bps = self.bps.max(0.0);
        if self.asked_bps > room_bps { room_bps / self.asked_bps } else { 1.0 }
    }
}

/// Lowers each user's max by the traffic of its gone processes, so that both together have its part.
fn narrow(
    capacity_bps: f64,
    left_behind: &BTreeMap<u32, Rate>,
    names: &[u32],
    groups: &mut [Terms],
    rows: &[SharedRow],
) {
    if left_behind.is_empty() {
        return;
    }
    let most = SharedNode::most_of_groups(capacity_bps, groups, rows);
    for ((group, name), most) in groups.iter_mut().zip(names).zip(most) {
        if let Some(left) = left_behind.get(name) {
            group.maximum = Some(Rate::nearest_bps(most - left.as_bps()));
        }
    }
}
