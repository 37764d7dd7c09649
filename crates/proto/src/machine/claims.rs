//! A node of a machine at which sessions of Tally are: claims divide it, and those of GTP are measured.

use std::collections::BTreeMap;

use fairwave_schemes::node::tally::{SharedGrant, SharedGroup, SharedKind, SharedNode, SharedRow};
use fairwave_schemes::{Grant, GroupTerms, Others};
use fairwave_units::{Rate, Time};

use super::held::{Counted, Held};
use crate::end_node::{DividedGrant, DividedRow};
use crate::session::Direction;

/// What a node is divided by, beside its rows.
pub(super) struct Terms<'a> {
    pub(super) now: Time,
    pub(super) tick: u64,
    pub(super) direction: Direction,
    /// Whether grants may be raised.
    pub(super) may_raise: bool,
    pub(super) capacity: Rate,
    /// What may still come of processes that are gone.
    pub(super) left_behind: Rate,
    /// The card's other traffic.
    pub(super) other: Option<Others>,
    pub(super) users: &'a BTreeMap<u32, GroupTerms>,
}

/// A row of the node, in the order of the node's rows.
pub(super) struct Claiming<'a> {
    pub(super) group: u32,
    /// When its process last said anything.
    pub(super) changed: Time,
    /// None of plain GTP.
    pub(super) held: Option<&'a mut Held>,
}

/// Other traffic gets what it uses and a step, up to its share: Wu 2007, VII.
const OTHER_ALPHA: f64 = 0.1;
const OTHER_BETA: f64 = 0.2;

/// What each row is granted.
pub(super) fn divide(
    node: &mut SharedNode,
    terms: &Terms<'_>,
    rows: &[DividedRow],
    mut claiming: Vec<Claiming<'_>>,
) -> Vec<DividedGrant> {
    let mut names: Vec<u32> = claiming.iter().map(|row| row.group).collect();
    names.sort_unstable();
    names.dedup();
    let groups: Vec<SharedGroup> = names
        .iter()
        .map(|name| {
            let terms = terms.users.get(name).copied().unwrap_or_default();
            let maximum_bps = terms.maximum.map_or(f64::INFINITY, Rate::as_bps);
            SharedGroup { weight: terms.weight, minimum_bps: terms.minimum.as_bps(), maximum_bps }
        })
        .collect();
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
                None => row_of_gtp(group, row),
            }
        })
        .collect();
    believe(capacity_bps, &groups, &mut shared, &counted);
    let grants = node.divide(terms.now, capacity_bps, terms.left_behind.as_bps(), terms.may_raise, &groups, &shared);
    let granted = |((grant, row), claiming): ((SharedGrant, &SharedRow), Claiming<'_>)| {
        let SharedGrant { rate_bps, offer_bps } = grant;
        let (expected, target) = (Rate::nearest_bps(rate_bps), Rate::nearest_bps(offer_bps));
        let allowed = Rate::nearest_bps(row.reserved_bps).max(expected);
        if let Some(held) = claiming.held {
            held.grant(terms.now, terms.tick, expected, allowed);
        }
        DividedGrant { grant: Grant { expected, target }, allowed }
    };
    grants.into_iter().zip(&shared).zip(claiming).map(granted).collect()
}

/// What is left to traffic that no grant holds.
fn left_to(other: Others, capacity: Rate, weights: f64) -> f64 {
    let share = capacity.as_bps() * other.weight / (other.weight + weights);
    let gap = (share - other.measured.as_bps()).max(0.0);
    let step = (OTHER_ALPHA * gap).max(OTHER_ALPHA * OTHER_BETA * share).min(gap);
    (other.measured.as_bps() + step).min(share)
}

fn base(group: usize, row: &DividedRow) -> SharedRow {
    SharedRow {
        group,
        weight: row.row.weight,
        minimum_bps: row.row.minimum.as_bps(),
        maximum_bps: row.row.maximum.map_or(f64::INFINITY, Rate::as_bps),
        claim_bps: 0.0,
        granted_bps: 0.0,
        reserved_bps: 0.0,
        kind: SharedKind::Plain { alpha: row.row.alpha, beta: row.row.beta },
    }
}

/// A session of GTP claims what it uses, and holds what it was granted of late.
fn row_of_gtp(group: usize, row: &DividedRow) -> SharedRow {
    let base = base(group, row);
    let desired_bps = row.row.desired.map_or(f64::INFINITY, Rate::as_bps);
    let recent_bps = row.recent.as_bps();
    let maximum_bps = base.maximum_bps.min(desired_bps);
    let claim_bps = row.row.measured.as_bps();
    SharedRow { maximum_bps, claim_bps, granted_bps: recent_bps, reserved_bps: recent_bps, ..base }
}

fn row_of_tally(
    group: usize,
    row: &DividedRow,
    direction: Direction,
    held: &Held,
    counted: Option<Counted>,
) -> SharedRow {
    let base = base(group, row);
    // What is over claims nothing, and is granted nothing: no step of GTP either.
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
    let reserved_bps = counted.proven.as_bps() + counted.brought.as_bps();
    let granted_bps = counted.granted.as_bps().min(counted.last.as_bps() + counted.brought.as_bps());
    SharedRow { claim_bps: limitless(standing.claim), granted_bps, reserved_bps, kind, ..base }
}

/// What rows brought that nobody here granted them counts as far as their groups could have that much: who says that it
/// holds all there is takes no more by that than who claims it.
fn believe(capacity_bps: f64, groups: &[SharedGroup], rows: &mut [SharedRow], counted: &[Option<Counted>]) {
    let brought = |counted: &Option<Counted>| counted.map_or(0.0, |counted| counted.brought.as_bps());
    if counted.iter().all(|counted| brought(counted) == 0.0) {
        return;
    }
    let mut sums = vec![(0.0, 0.0); groups.len()];
    for (row, counted) in rows.iter().zip(counted) {
        sums[row.group].0 += counted.map_or(0.0, |counted| counted.proven.as_bps());
        sums[row.group].1 += brought(counted);
    }
    let most = SharedNode::most_of_groups(capacity_bps, groups, rows);
    for (row, counted) in rows.iter_mut().zip(counted) {
        let ((proven, sum), most) = (sums[row.group], most[row.group]);
        let (extra, room) = (brought(counted), (most - proven).max(0.0));
        if extra > 0.0 && sum > room {
            let believed = extra * room / sum;
            row.reserved_bps -= extra - believed;
            let last = counted.map_or(0.0, |counted| counted.last.as_bps());
            row.granted_bps = row.granted_bps.min(last + believed);
        }
    }
}
