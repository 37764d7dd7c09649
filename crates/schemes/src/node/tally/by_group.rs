//! Sessions in groups at one node: groups share its capacity, and the sessions of each share the group's part.

use super::claimant::Claimant;
use super::fill::{Fill, Queries};

/// Scales the weights of a node's rows, so that one level for all rows gives each group the share of one session of
/// weight 1, and the sessions of a group parts of that by their own weights.
///
/// A row of group 0 is in no group and keeps its weight. Capacity that a session does not use goes to its siblings
/// first and then to the other groups, as in a hierarchical max-min allocation.
///
/// ```
/// use fairwave_schemes::node::tally::{Claimant, Fill, weigh_by_group};
///
/// // Three sessions of a ticket, of which one claims little, and one session of another ticket.
/// let claim = |claim_bps| Claimant { claim_bps, weight: 1.0, minimum_bps: 0.0 };
/// let mut rows = [f64::INFINITY, f64::INFINITY, 10.0, f64::INFINITY].map(claim);
/// weigh_by_group(100.0, &[1, 1, 1, 2], &mut rows);
/// let fill = Fill::new(100.0, &rows);
/// assert_eq!(rows.each_ref().map(|row| fill.share_bps(row)), [20.0, 20.0, 10.0, 50.0]);
/// ```
///
/// # Panics
/// If there is not one group for each row.
pub fn weigh_by_group(capacity_bps: f64, groups: &[u32], rows: &mut [Claimant]) {
    assert_eq!(groups.len(), rows.len(), "one group for each row");
    if groups.iter().all(|group| *group == 0) {
        return;
    }
    let mut order: Vec<usize> = (0..rows.len()).filter(|at| groups[*at] != 0).collect();
    order.sort_by_key(|at| groups[*at]);
    let members: Vec<Vec<Claimant>> =
        order.chunk_by(|one, next| groups[*one] == groups[*next]).map(|places| rows_at(places, rows)).collect();
    let alone = rows.iter().zip(groups).filter(|(_, group)| **group == 0).map(|(row, _)| *row);
    let mut outer: Vec<Claimant> = members.iter().map(|rows| sum(rows)).chain(alone).collect();
    let level = level_with_room(capacity_bps, &mut outer);
    let scales = members.into_iter().map(|mut rows| {
        let weights: f64 = rows.iter().map(|row| row.weight).sum();
        // A group has the weight 1, so the level is its part.
        let scale = level_with_room(level, &mut rows) / level;
        if scale > 0.0 && scale.is_finite() { scale } else { 1.0 / weights }
    });
    for (places, scale) in order.chunk_by(|one, next| groups[*one] == groups[*next]).zip(scales) {
        for at in places {
            rows[*at].weight *= scale;
        }
    }
}

fn rows_at(places: &[usize], rows: &[Claimant]) -> Vec<Claimant> {
    places.iter().map(|at| rows[*at]).collect()
}

/// A group as a claimant of the whole capacity.
fn sum(rows: &[Claimant]) -> Claimant {
    let mut all = Claimant { claim_bps: 0.0, weight: 1.0, minimum_bps: 0.0 };
    for row in rows {
        all.claim_bps += row.claim_bps;
        all.minimum_bps += row.minimum_bps.min(row.claim_bps);
    }
    all
}

/// The level at which the sessions with the largest claims per weight get all the capacity that the others leave. If
/// claims exceed the capacity it is the level of the rows; otherwise it is the highest level that these sessions could
/// reach.
fn level_with_room(capacity_bps: f64, rows: &mut [Claimant]) -> f64 {
    let most = rows.iter().map(|row| row.claim_bps / row.weight).fold(0.0, f64::max);
    for row in rows.iter_mut().filter(|row| row.claim_bps / row.weight >= most) {
        row.claim_bps = f64::INFINITY;
    }
    Fill::for_queries(Queries::Shares, capacity_bps, rows).level()
}

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::allocator::Terms;
    use crate::node::tally::{SharedKind, SharedNode, SharedRow};

    fn claim(claim_bps: f64) -> Claimant {
        Claimant { claim_bps, weight: 1.0, minimum_bps: 0.0 }
    }

    fn weights(groups: &[u32], claims: &[f64]) -> Vec<f64> {
        let mut rows: Vec<Claimant> = claims.iter().copied().map(claim).collect();
        weigh_by_group(100.0, groups, &mut rows);
        rows.iter().map(|row| row.weight).collect()
    }

    #[test]
    fn weigh_by_group__many_sessions_weigh_what_one_does() {
        let endless = f64::INFINITY;
        assert_eq!(weights(&[7, 7, 7, 7, 9], &[endless; 5]), [0.25, 0.25, 0.25, 0.25, 1.0]);
        // Idle sessions take nothing from the one that is not.
        assert_eq!(weights(&[7, 7, 7, 9], &[0.0, 0.0, endless, endless]), [1.0, 1.0, 1.0, 1.0]);
        // Without claims, or without capacity, each session counts.
        assert_eq!(weights(&[7, 7, 9], &[0.0; 3]), [0.5, 0.5, 1.0]);
        let mut rows = [claim(endless); 3];
        weigh_by_group(0.0, &[7, 7, 9], &mut rows);
        assert_eq!(rows.map(|row| row.weight), [0.5, 0.5, 1.0]);
    }

    #[test]
    fn weigh_by_group__sessions_without_a_group_keep_their_weights() {
        assert_eq!(weights(&[0, 0, 0], &[1.0, 5.0, f64::INFINITY]), [1.0; 3]);
        assert_eq!(weights(&[0, 3, 0, 3], &[f64::INFINITY; 4]), [1.0, 0.5, 1.0, 0.5]);
    }

    proptest! {
        /// A machine's node shares in two levels, one after the other: with these weights one level gives the same
        /// result.
        #[test]
        fn weigh_by_group__one_level_shares_as_two_do(
            rows in vec((0_usize..4, 0_u8..40, 1_u8..5, 0_u8..3), 1..20),
        ) {
            let capacity_bps = 100.0;
            let claims: Vec<Claimant> = rows
                .iter()
                .map(|&(_, claim, weight, minimum)| Claimant {
                    claim_bps: if claim == 39 { f64::INFINITY } else { f64::from(claim) },
                    weight: f64::from(weight),
                    minimum_bps: f64::from(minimum),
                })
                .collect();
            let shared: Vec<SharedRow> = rows
                .iter()
                .zip(&claims)
                .map(|(&(group, ..), claim)| SharedRow {
                    group,
                    terms: Terms {
                        weight: claim.weight,
                        minimum: Rate::nearest_bps(claim.minimum_bps),
                        ..Terms::default()
                    },
                    claim_bps: claim.claim_bps,
                    granted_bps: 0.0,
                    reserved_bps: 0.0,
                    kind: SharedKind::Plain,
                })
                .collect();
            let expected = SharedNode::shares(capacity_bps, &[Terms::default(); 4], &shared);
            let groups: Vec<u32> = rows.iter().map(|(group, ..)| *group as u32 + 1).collect();
            let mut weighed = claims.clone();
            weigh_by_group(capacity_bps, &groups, &mut weighed);
            let fill = Fill::new(capacity_bps, &weighed);
            for (row, share) in weighed.iter().zip(expected) {
                prop_assert!((fill.share_bps(row) - share).abs() <= 1e-9 * capacity_bps, "{:?}: {share}", row);
            }
        }
    }
}
