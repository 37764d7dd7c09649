//! The max-min vector of a node's sessions, and the distance of the grants from it.

use std::collections::BTreeMap;

use fairwave_schemes::Terms;
use fairwave_schemes::node::tally::{SharedKind, SharedNode, SharedRow};
use fairwave_units::Rate;

/// A session at a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Its terms within its group.
    pub(crate) terms: Terms,
    /// Terms of its group.
    pub(crate) group_terms: Terms,
    /// Its measured rate, bit/s: a session that uses less than its grant wants no more than that.
    pub(crate) measured_bps: f64,
    /// Its grant, bit/s.
    pub(crate) expected_bps: f64,
}

/// Below this share of its grant a session is held by something else than its node.
const USED_UP: f64 = 0.95;

impl Claim {
    fn demand(&self) -> f64 {
        let is_held_here = self.measured_bps >= USED_UP * self.expected_bps;
        (if is_held_here { f64::INFINITY } else { self.measured_bps })
            .min(self.terms.limit().map_or(f64::INFINITY, Rate::as_bps))
    }
}

/// The rate of each session if groups, and then the sessions of each, share a capacity by max-min fairness with their
/// weights, minima and maxima.
pub(crate) fn max_min(capacity_bps: f64, claims: &[Claim]) -> Vec<f64> {
    let owners: BTreeMap<u32, Terms> = claims.iter().map(|claim| (claim.terms.group, claim.group_terms)).collect();
    let names: Vec<u32> = owners.keys().copied().collect();
    let groups: Vec<Terms> = owners.values().copied().collect();
    let row = |claim: &Claim| SharedRow {
        group: names.binary_search(&claim.terms.group).expect("each claim's group is among them"),
        terms: Terms { maximum: claim.terms.limit(), ..claim.terms },
        claim_bps: claim.demand(),
        granted_bps: 0.0,
        reserved_bps: 0.0,
        kind: SharedKind::Sink { is_application_limited: false, is_silent: false },
    };
    SharedNode::shares(capacity_bps, &groups, &claims.iter().map(row).collect::<Vec<_>>())
}

/// Max distance of the grants from such a vector, as a share of a session's rate in it.
pub(crate) fn gap(claims: &[Claim], shares: &[f64]) -> Option<f64> {
    let gap = |(claim, share): (&Claim, &f64)| {
        // A grant that is not used up is no more than a limit.
        let has = claim.expected_bps.min(claim.demand());
        if *share > 0.0 { (has - share).abs() / share } else { 0.0 }
    };
    claims.iter().zip(shares).map(gap).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(group: u32, used: f64) -> Claim {
        Claim {
            terms: Terms { group, ..Terms::default() },
            group_terms: Terms::default(),
            measured_bps: used,
            expected_bps: 100.0,
        }
    }

    fn rounded(shares: &[f64]) -> Vec<f64> {
        shares.iter().map(|share| (share * 1e3).round() / 1e3).collect()
    }

    #[test]
    fn max_min__is_of_groups_and_then_of_sessions() {
        // Of 300, group 1 wants 50 and leaves 250 to group 2, of whose three one wants 10.
        let claims = [claim(1, 50.0), claim(2, 100.0), claim(2, 100.0), claim(2, 10.0)];
        let shares = max_min(300.0, &claims);
        assert_eq!(rounded(&shares), [50.0, 120.0, 120.0, 10.0]);
        // The second and the third are granted 100 of 120.
        assert!((gap(&claims, &shares).unwrap() - 1.0 / 6.0).abs() < 1e-6);
    }

    #[test]
    fn max_min__knows_weights_minima_and_maxima() {
        let one = claim(1, 100.0).terms;
        let with = |terms| Claim { terms, ..claim(1, 100.0) };
        let heavy = with(Terms { weight: 3.0, ..one });
        assert_eq!(rounded(&max_min(100.0, &[claim(1, 100.0), heavy])), [25.0, 75.0]);
        let promised = with(Terms { minimum: Rate::nearest_bps(60.0), ..one });
        assert_eq!(rounded(&max_min(100.0, &[claim(1, 100.0), promised])), [40.0, 60.0]);
        let capped = with(Terms { maximum: Some(Rate::nearest_bps(10.0)), ..one });
        assert_eq!(rounded(&max_min(100.0, &[claim(1, 100.0), capped])), [90.0, 10.0]);
        assert_eq!(gap(&[], &[]), None);
    }

    #[test]
    fn max_min__gives_no_more_than_there_is_to_those_who_want_little() {
        let shares = max_min(100.0, &[claim(1, 20.0), claim(2, 30.0)]);
        assert_eq!(rounded(&shares), [20.0, 30.0]);
        assert_eq!(gap(&[claim(1, 20.0), claim(2, 30.0)], &shares), Some(0.0));
    }
}
