//! One capacity that the sessions of several processes share.

use fairwave_units::{Rate, Time};

use super::caps::caps;
use super::claimant::Capped;
use super::claimant::Claimant;
use super::fill::{Fill, Queries};
use super::headroom::{RecentHeadroom, head_bps};
use super::options::TallyOptions;
use super::plain_step::{MAX_STEPS, scale_steps, step_bps};
use super::settle::{Settling, settle};
use crate::allocator::{Grant, Terms};

/// The arithmetic of a node whose sessions belong to several processes: groups share the capacity, and the sessions of
/// each share the group's part. Ledgers and messages stay in the processes ([`SinkNode::look`](super::SinkNode::look),
/// [`SourceNode::look`](super::SourceNode::look)).
///
/// As at any node of Tally, cuts take effect immediately and raises are paid out of unreserved capacity; so the sum of
/// the reserved rates is at most the capacity plus the headroom. That includes sources: a cap is in use by another
/// process until that process reports its end.
#[derive(Clone, Debug, Default)]
pub struct SharedNode {
    options: TallyOptions,
    headroom: RecentHeadroom,
}

/// One session in a [`SharedNode`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedRow {
    /// Index of its group.
    pub group: usize,
    /// Its terms, the weight relative to the other sessions of its group.
    pub terms: Terms,
    /// Its maximum use as far as everything else allows.
    pub claim_bps: f64,
    /// The grant that was last sent.
    pub granted_bps: f64,
    /// The maximum rate that may still arrive: at least `granted_bps`.
    pub reserved_bps: f64,
    /// The local end of the session, and the protocol of the other one.
    pub kind: SharedKind,
}

/// The end of a session at a [`SharedNode`], and its protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SharedKind {
    /// Its sink, using claims and grants.
    Sink {
        /// Whether its source is limited by its own demand.
        is_application_limited: bool,
        /// Whether its source is silent: then the grant stays unchanged, up to the capacity.
        is_silent: bool,
    },
    /// Its source, using claims and grants.
    Source {
        /// Its smallest grant in force, and its demand if that is known.
        limit_bps: f64,
        /// Whether it is limited by its own demand: then it gets no spare capacity in advance.
        is_application_limited: bool,
    },
    /// Either end, using plain GTP: its claim is its measured rate, and its grants exceed that by GTP's steps.
    Plain,
}

/// The result of the claims for one session, in bit/s.
#[derive(Clone, Copy, Debug, Default)]
struct Portion {
    share: f64,
    offer: f64,
    minimum: f64,
}

impl SharedNode {
    /// A node without sessions.
    pub fn new(options: TallyOptions) -> Self {
        Self { options, headroom: RecentHeadroom::default() }
    }

    /// Ends a control interval: the grant of each row, in their order, with its offer as the target. `held_bps` is capacity without a row here that
    /// may still be in use. Without `may_raise` grants are only cut.
    ///
    /// # Panics
    /// If a row's group does not exist.
    pub fn divide(
        &mut self,
        now: Time,
        capacity_bps: f64,
        held_bps: f64,
        may_raise: bool,
        groups: &[Terms],
        rows: &[SharedRow],
    ) -> Vec<Grant> {
        let shares = share_out(capacity_bps, groups, rows);
        let weights = effective_weights(groups, rows);
        let all_weights: f64 = weights.iter().sum();
        let steps = plain_steps(capacity_bps, rows, &shares);
        let caps = caps_of_rows(capacity_bps, groups, rows, &steps);
        let mut headroom_bps = steps.iter().sum::<f64>().min(MAX_STEPS * capacity_bps);
        let mut settling = Vec::with_capacity(rows.len());
        for ((((row, share), step), cap), weight) in rows.iter().zip(&shares).zip(&steps).zip(caps).zip(weights) {
            let (base_bps, is_limited) = match row.kind {
                SharedKind::Sink { is_application_limited, .. } => (share.share, is_application_limited),
                SharedKind::Source { is_application_limited, .. } => (cap, is_application_limited),
                SharedKind::Plain => (share.share + step, false),
            };
            let mut target_bps = base_bps.min(maximum_bps(&row.terms));
            if is_limited {
                let head = head_bps(self.options.headroom, share.share, capacity_bps, weight / all_weights);
                headroom_bps += head;
                target_bps = target_bps.max((target_bps + head).min(share.offer));
            }
            if matches!(row.kind, SharedKind::Sink { is_silent: true, .. }) {
                target_bps = row.granted_bps.min(capacity_bps);
            }
            let (granted_bps, reserved_bps) = (row.granted_bps, row.reserved_bps.max(row.granted_bps));
            settling.push(Settling { target_bps, granted_bps, reserved_bps, weight, minimum_bps: share.minimum });
        }
        self.headroom.on_tick(now, headroom_bps);
        let steps = if rows.iter().any(SharedRow::is_plain) { MAX_STEPS } else { 0.0 };
        let most_headroom_bps = (self.options.headroom + steps) * capacity_bps;
        let reserved_bps: f64 = settling.iter().map(|row| row.reserved_bps).sum();
        let budget_bps = capacity_bps + self.headroom.most_bps().min(most_headroom_bps);
        let free_bps = if may_raise { budget_bps - held_bps - reserved_bps } else { -1.0 };
        let grants = settle(free_bps, &settling);
        grants
            .into_iter()
            .zip(shares)
            .map(|(bps, share)| Grant { expected: Rate::nearest_bps(bps), target: Rate::nearest_bps(share.offer) })
            .collect()
    }

    /// Each row's share by the claims only.
    ///
    /// # Panics
    /// If a row's group does not exist.
    pub fn shares(capacity_bps: f64, groups: &[Terms], rows: &[SharedRow]) -> Vec<f64> {
        share_out(capacity_bps, groups, rows).into_iter().map(|portion| portion.share).collect()
    }

    /// The rate that each group could have if all its sessions claimed without limit.
    pub fn most_of_groups(capacity_bps: f64, groups: &[Terms], rows: &[SharedRow]) -> Vec<f64> {
        let outer = outer_claims(groups, rows);
        let fill = Fill::new(capacity_bps, &outer);
        outer.iter().zip(groups).map(|(claim, group)| fill.offer_bps(claim).min(maximum_bps(group))).collect()
    }
}

impl SharedRow {
    fn is_plain(&self) -> bool {
        matches!(self.kind, SharedKind::Plain)
    }

    fn claimant(&self) -> Claimant {
        let claim_bps = self.claim_bps.min(maximum_bps(&self.terms));
        Claimant { claim_bps, weight: self.terms.weight, minimum_bps: self.terms.minimum.as_bps() }
    }

    /// Its input for [`caps()`](super::caps()).
    fn capped(&self) -> Capped {
        let (limit_bps, grows) = match self.kind {
            SharedKind::Source { limit_bps, is_application_limited } => (limit_bps, !is_application_limited),
            SharedKind::Sink { .. } | SharedKind::Plain => (self.claim_bps, false),
        };
        let limit_bps = limit_bps.min(maximum_bps(&self.terms));
        Capped { limit_bps, weight: self.terms.weight, minimum_bps: self.terms.minimum.as_bps(), grows }
    }
}

/// The maximum of a session's or a group's grants; infinity if unlimited.
fn maximum_bps(terms: &Terms) -> f64 {
    terms.maximum.map_or(f64::INFINITY, Rate::as_bps)
}

/// Of each group, the indices of its rows.
fn members(groups: &[Terms], rows: &[SharedRow]) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); groups.len()];
    for (place, row) in rows.iter().enumerate() {
        members[row.group].push(place);
    }
    members
}

/// Groups as claimants of the whole capacity.
fn outer_claims(groups: &[Terms], rows: &[SharedRow]) -> Vec<Claimant> {
    let mut claims: Vec<Claimant> =
        groups.iter().map(|group| Claimant { claim_bps: 0.0, weight: group.weight, minimum_bps: 0.0 }).collect();
    for row in rows {
        let (outer, claim) = (&mut claims[row.group], row.claimant());
        outer.claim_bps += claim.claim_bps;
        outer.minimum_bps += claim.minimum_bps.min(claim.claim_bps);
    }
    for (outer, group) in claims.iter_mut().zip(groups) {
        outer.claim_bps = outer.claim_bps.min(maximum_bps(group));
        outer.minimum_bps = outer.minimum_bps.max(group.minimum.as_bps()).min(outer.claim_bps);
    }
    claims
}

/// Each row's part of its group's share, and its offer.
fn share_out(capacity_bps: f64, groups: &[Terms], rows: &[SharedRow]) -> Vec<Portion> {
    let outer = outer_claims(groups, rows);
    let fill = Fill::new(capacity_bps, &outer);
    let mut shares = vec![Portion::default(); rows.len()];
    for ((places, claim), group) in members(groups, rows).iter().zip(&outer).zip(groups) {
        let claims: Vec<Claimant> = places.iter().map(|place| rows[*place].claimant()).collect();
        let share_bps = fill.share_bps(claim);
        // A row that took as much as possible would raise its group's claim.
        let most_bps = fill.offer_bps(claim).min(maximum_bps(group)).max(share_bps);
        let wide = (most_bps > share_bps).then(|| Fill::new(most_bps, &claims));
        let asked = if wide.is_some() { Queries::Shares } else { Queries::Offers };
        let inner = Fill::for_queries(asked, share_bps, &claims);
        for (place, claim) in places.iter().zip(&claims) {
            let offer = wide.as_ref().unwrap_or(&inner).offer_bps(claim).min(maximum_bps(&rows[*place].terms));
            let (share, minimum) = (inner.share_bps(claim), inner.minimum_bps(claim));
            shares[*place] = Portion { share, offer, minimum };
        }
    }
    shares
}

/// Each row's part of a sending capacity; empty if there is no source among the rows. The capacity that the limits
/// leave is for the `steps` of plain GTP, and only the rest of it is given in advance: otherwise a source that waits
/// for its sink would hold it, and a row of plain GTP could never grow into it.
fn caps_of_rows(capacity_bps: f64, groups: &[Terms], rows: &[SharedRow], steps: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; rows.len()];
    if !rows.iter().any(|row| matches!(row.kind, SharedKind::Source { .. })) {
        return found;
    }
    let group_caps = caps_of_groups(capacity_bps, groups, rows, steps);
    for (places, group_cap) in members(groups, rows).iter().zip(group_caps) {
        let mut limits: Vec<Capped> = places.iter().map(|place| rows[*place].capped()).collect();
        let steps: Vec<f64> = places.iter().map(|place| steps[*place]).collect();
        leave_room(group_cap, &mut limits, &steps);
        for (place, cap) in places.iter().zip(caps(group_cap, &limits)) {
            found[*place] = cap;
        }
    }
    found
}

/// Each group's part of a sending capacity.
fn caps_of_groups(capacity_bps: f64, groups: &[Terms], rows: &[SharedRow], steps: &[f64]) -> Vec<f64> {
    let mut limits: Vec<Capped> = outer_claims(groups, rows)
        .iter()
        .map(|claim| Capped { limit_bps: 0.0, weight: claim.weight, minimum_bps: claim.minimum_bps, grows: false })
        .collect();
    let mut group_steps = vec![0.0; groups.len()];
    for (row, step) in rows.iter().zip(steps) {
        let (outer, capped) = (&mut limits[row.group], row.capped());
        outer.limit_bps += capped.limit_bps;
        outer.grows |= capped.grows;
        group_steps[row.group] += step;
    }
    for ((limit, step), group) in limits.iter_mut().zip(&mut group_steps).zip(groups) {
        limit.limit_bps = limit.limit_bps.min(maximum_bps(group));
        *step = step.min(maximum_bps(group) - limit.limit_bps);
    }
    leave_room(capacity_bps, &mut limits, &group_steps);
    let caps = caps(capacity_bps, &limits);
    caps.into_iter().zip(groups).map(|(cap, group)| cap.min(maximum_bps(group))).collect()
}

/// Steps take the capacity that the limits leave, as far as it suffices.
fn leave_room(capacity_bps: f64, limits: &mut [Capped], steps: &[f64]) {
    let left_bps = capacity_bps - limits.iter().map(|row| row.limit_bps).sum::<f64>();
    let sum: f64 = steps.iter().sum();
    if left_bps > 0.0 && sum > 0.0 {
        let part = (left_bps / sum).min(1.0);
        limits.iter_mut().zip(steps).for_each(|(row, step)| row.limit_bps += step * part);
    }
}

/// Each row's weight among all rows: its part of its group's weight.
fn effective_weights(groups: &[Terms], rows: &[SharedRow]) -> Vec<f64> {
    let mut sums = vec![0.0; groups.len()];
    for row in rows {
        sums[row.group] += row.terms.weight;
    }
    rows.iter().map(|row| groups[row.group].weight * row.terms.weight / sums[row.group]).collect()
}

/// Permitted steps of the rows of plain GTP beyond their use.
fn plain_steps(capacity_bps: f64, rows: &[SharedRow], shares: &[Portion]) -> Vec<f64> {
    let step = |(row, share): (&SharedRow, &Portion)| match row.kind {
        SharedKind::Plain => step_bps(row.terms.alpha, row.terms.beta, row.claim_bps, share.offer),
        SharedKind::Sink { .. } | SharedKind::Source { .. } => 0.0,
    };
    let mut steps: Vec<f64> = rows.iter().zip(shares).map(step).collect();
    scale_steps(capacity_bps, shares.iter().map(|share| share.share).sum(), &mut steps);
    steps
}

#[cfg(test)]
mod tests;
