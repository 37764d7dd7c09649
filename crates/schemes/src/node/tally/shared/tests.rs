//! A node whose sessions belong to several processes.

use super::*;
use proptest::prelude::*;

const C: f64 = 1000.0;
const INF: f64 = f64::INFINITY;

fn group(weight: f64) -> Terms {
    Terms { weight, ..Terms::default() }
}

fn sink(group: usize, claim_bps: f64) -> SharedRow {
    let kind = SharedKind::Sink { is_application_limited: false, is_silent: false };
    SharedRow { group, terms: Terms::default(), claim_bps, granted_bps: 0.0, reserved_bps: 0.0, kind }
}

fn source(group: usize, limit_bps: f64) -> SharedRow {
    SharedRow { kind: SharedKind::Source { limit_bps, is_application_limited: false }, ..sink(group, INF) }
}

fn divide(groups: &[Terms], rows: &[SharedRow], held_bps: f64) -> Vec<(f64, f64)> {
    let mut node = SharedNode::default();
    let grants = node.divide(Time::ZERO, C, held_bps, true, groups, rows);
    grants.iter().map(|grant| (grant.expected.as_bps(), grant.target.as_bps())).collect()
}

fn rates(groups: &[Terms], rows: &[SharedRow]) -> Vec<f64> {
    divide(groups, rows, 0.0).iter().map(|(rate, _)| *rate).collect()
}

#[test]
fn divide__is_by_groups_and_then_by_sessions() {
    // Half for each group; the second gets what the first cannot use.
    let rows = [sink(0, INF), sink(1, INF), sink(1, INF)];
    assert_eq!(rates(&[group(1.0), group(1.0)], &rows), [500.0, 250.0, 250.0]);
    let rows = [sink(0, 100.0), sink(1, INF), sink(1, INF)];
    let grants = divide(&[group(1.0), group(1.0)], &rows, 0.0);
    // If the first took as much as possible, it would have its half; each of the others has its maximum.
    assert_eq!(grants, [(100.0, 500.0), (450.0, 450.0), (450.0, 450.0)]);
    // One of the second group wants 50: the other could still have 850, and that one half of the second group's 900.
    let rows = [sink(0, 100.0), sink(1, INF), sink(1, 50.0)];
    assert_eq!(divide(&[group(1.0), group(1.0)], &rows, 0.0), [(100.0, 500.0), (850.0, 850.0), (50.0, 450.0)]);
}

#[test]
fn divide__respects_weights_minima_and_maxima() {
    let rows = [sink(0, INF), sink(1, INF)];
    assert_eq!(rates(&[group(4.0), group(1.0)], &rows), [800.0, 200.0]);
    let promised = Terms { minimum: Rate::nearest_bps(700.0), ..group(1.0) };
    assert_eq!(rates(&[group(1.0), promised], &rows), [300.0, 700.0]);
    let bounded = Terms { maximum: Some(Rate::nearest_bps(100.0)), ..group(1.0) };
    assert_eq!(divide(&[group(1.0), bounded], &rows, 0.0), [(900.0, 900.0), (100.0, 100.0)]);
    let bounded = SharedRow { terms: Terms { maximum: Some(Rate::nearest_bps(100.0)), ..group(1.0) }, ..sink(1, INF) };
    assert_eq!(divide(&[group(1.0), group(1.0)], &[sink(0, INF), bounded], 0.0), [(900.0, 900.0), (100.0, 100.0)]);
    let promised = SharedRow { terms: Terms { minimum: Rate::nearest_bps(700.0), ..group(1.0) }, ..sink(1, INF) };
    assert_eq!(rates(&[group(1.0), group(1.0)], &[sink(0, INF), promised]), [300.0, 700.0]);
}

#[test]
fn divide__raises_out_of_unreserved_capacity_only() {
    // The cut is immediate, and the newcomer gets nothing until it is confirmed.
    let holds = SharedRow { granted_bps: C, reserved_bps: C, ..sink(0, INF) };
    assert_eq!(rates(&[group(1.0)], &[holds, sink(0, INF)]), [500.0, 0.0]);
    let has_cut = SharedRow { granted_bps: 500.0, reserved_bps: 700.0, ..sink(0, INF) };
    assert_eq!(rates(&[group(1.0)], &[has_cut, sink(0, INF)]), [500.0, 300.0]);
    // Capacity of a process that has gone is still held.
    let grants = divide(&[group(1.0)], &[sink(0, INF)], 400.0);
    assert_eq!(grants, [(600.0, 1000.0)]);
    // Without `may_raise` no grant is raised.
    let mut node = SharedNode::default();
    let rows = [SharedRow { granted_bps: 900.0, reserved_bps: 900.0, ..sink(0, INF) }, sink(0, INF)];
    let grants = node.divide(Time::ZERO, C, 0.0, false, &[group(1.0)], &rows);
    assert_eq!(grants.iter().map(|grant| grant.expected.as_bps()).collect::<Vec<_>>(), [500.0, 0.0]);
}

#[test]
fn divide__keeps_grants_of_silent_sessions() {
    let silent = SharedKind::Sink { is_application_limited: false, is_silent: true };
    let rows = [SharedRow { granted_bps: 800.0, reserved_bps: 800.0, kind: silent, ..sink(0, INF) }, sink(0, INF)];
    assert_eq!(rates(&[group(1.0)], &rows), [800.0, 200.0]);
}

#[test]
fn divide__sources_share_by_grants_and_get_the_rest_in_advance() {
    // With one group this is `caps`.
    let rows = [source(0, 10.0), source(0, 800.0)];
    assert_eq!(rates(&[group(1.0)], &rows), [200.0, 800.0]);
    // With two groups the spare capacity goes to each group first.
    let rows = [source(0, 0.0), source(1, 0.0), source(1, 0.0)];
    assert_eq!(rates(&[group(1.0), group(1.0)], &rows), [500.0, 250.0, 250.0]);
    let rows = [source(0, 900.0), source(1, 900.0), source(1, 900.0)];
    assert_eq!(rates(&[group(1.0), group(1.0)], &rows), [500.0, 250.0, 250.0]);
    // A group's maximum bounds the capacity given in advance.
    let bounded = Terms { maximum: Some(Rate::nearest_bps(100.0)), ..group(1.0) };
    assert_eq!(rates(&[bounded, group(1.0)], &[source(0, 0.0), source(1, 900.0)]), [100.0, 900.0]);
}

#[test]
fn divide__leaves_plain_gtp_its_use_and_a_step() {
    let plain = SharedKind::Plain;
    let row = SharedRow { kind: plain, claim_bps: 400.0, granted_bps: 420.0, reserved_bps: 420.0, ..sink(0, INF) };
    // The other one holds 400, and is offered 600; the plain one's step of 10 fits into a twentieth.
    let other = SharedRow { granted_bps: 400.0, reserved_bps: 400.0, ..sink(0, INF) };
    let grants = divide(&[group(1.0)], &[row, other], 0.0);
    assert_eq!(grants[0], (410.0, 500.0));
    assert!(grants[1].0 <= 600.0 && grants[1].0 >= 580.0, "{grants:?}");
}

/// Otherwise a source that waits for its sink would hold all the free capacity, and the other could never use more.
#[test]
fn divide__steps_of_plain_gtp_come_before_advance_capacity() {
    let kind = SharedKind::Plain;
    let plain = SharedRow { kind, claim_bps: 100.0, granted_bps: 100.0, reserved_bps: 100.0, ..sink(0, INF) };
    let waits = SharedRow { granted_bps: 900.0, reserved_bps: 900.0, ..source(0, 100.0) };
    // The plain one is offered 500, and steps 40 beyond its use: the other has 1000 - 140.
    assert_eq!(rates(&[group(1.0)], &[plain, waits])[1], 860.0);
    // And all of its step once the other has released it.
    let waits = SharedRow { granted_bps: 860.0, reserved_bps: 860.0, ..waits };
    assert_eq!(rates(&[group(1.0)], &[plain, waits]), [140.0, 860.0]);
    // A sink's grants come before steps, which go beyond the capacity: 10 of the 100 to the offer.
    let plain = SharedRow { claim_bps: 400.0, granted_bps: 400.0, reserved_bps: 400.0, ..plain };
    let granted = SharedRow { granted_bps: 500.0, reserved_bps: 500.0, ..source(0, 900.0) };
    assert_eq!(rates(&[group(1.0)], &[plain, granted]), [410.0, 600.0]);
    // The same with groups: of 120 the plain one's offer is 20 more, and its step 0.02 x 120.
    let bounded = Terms { maximum: Some(Rate::nearest_bps(120.0)), ..group(1.0) };
    let plain = SharedRow { claim_bps: 100.0, granted_bps: 100.0, reserved_bps: 100.0, ..plain };
    assert_eq!(rates(&[bounded, group(1.0)], &[plain, source(1, 100.0)])[1], 897.6);
}

proptest! {
    /// For any rows, raises cost at most the free capacity, and a group's maximum bounds its grants.
    #[test]
    fn divide__never_spends_more_than_is_free(
        said in proptest::collection::vec((0..3_usize, 0.0..3000.0_f64, 0.0..900.0_f64, 0.0..900.0_f64, 0..4_u8), 0..12),
        held_bps in 0.0..500.0_f64,
        maximum_bps in 10.0..2000.0_f64,
    ) {
        let groups = [group(1.0), group(3.0), Terms { maximum: Some(Rate::nearest_bps(maximum_bps)), ..group(0.5) }];
        let rows: Vec<SharedRow> = said.iter().map(|&(group, claim, granted_bps, more, kind)| {
            let kind = match kind {
                0 => SharedKind::Plain,
                1 => SharedKind::Source { limit_bps: claim / 2.0, is_application_limited: more > 500.0 },
                kind => SharedKind::Sink { is_application_limited: kind == 2, is_silent: more > 800.0 },
            };
            SharedRow { granted_bps, reserved_bps: granted_bps + more, kind, ..sink(group, claim) }
        }).collect();
        let mut node = SharedNode::default();
        let grants = node.divide(Time::ZERO, C, held_bps, true, &groups, &rows);
        let before: f64 = rows.iter().map(|row| row.reserved_bps).sum();
        let after: f64 = rows.iter().zip(&grants).map(|(row, grant)| row.reserved_bps.max(grant.expected.as_bps())).sum();
        let budget = 1.07 * C - held_bps;
        prop_assert!(after <= before.max(budget) + 1e-6, "{before} {after}");
        prop_assert!(before <= budget || after <= before + 1e-6, "{before} {after}");
    }
}
