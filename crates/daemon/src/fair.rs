//! The max-min vector of a node's sessions, and the distance of the grants from it.

use std::collections::BTreeMap;

use fairwave_schemes::GroupTerms;

/// A session at a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Its owner.
    pub(crate) group: u32,
    /// Terms of its owner.
    pub(crate) terms: GroupTerms,
    /// Its weight within its group.
    pub(crate) weight: f64,
    /// Its measured rate, bit/s: a session that uses less than its grant wants no more than that.
    pub(crate) measured_bps: f64,
    /// Its grant, bit/s.
    pub(crate) expected_bps: f64,
    /// Its max rate, bit/s.
    pub(crate) most_bps: f64,
    /// Its promised min rate, bit/s.
    pub(crate) least_bps: f64,
}

/// Below this share of its grant a session is held by something else than its node.
const USED_UP: f64 = 0.95;
/// Shares are found to this part of what is shared out.
const EXACT: f64 = 1e-9;

impl Claim {
    fn demand(&self) -> f64 {
        let is_held_here = self.measured_bps >= USED_UP * self.expected_bps;
        (if is_held_here { f64::INFINITY } else { self.measured_bps }).min(self.most_bps)
    }
}

/// The rate of each session if groups, and then the sessions of each, share a capacity by max-min fairness with their
/// weights, minima and maxima.
pub(crate) fn max_min(capacity_bps: f64, claims: &[Claim]) -> Vec<f64> {
    let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        groups.entry(claim.group).or_default().push(at);
    }
    let outer: Vec<Part> = groups
        .values()
        .map(|members| {
            let terms = claims[members[0]].terms;
            let demand: f64 = members.iter().map(|at| claims[*at].demand()).sum();
            let minima: f64 = members.iter().map(|at| claims[*at].least_bps.min(claims[*at].demand())).sum();
            let most = terms.maximum.map_or(f64::INFINITY, fairwave_units::Rate::as_bps).min(demand);
            Part { weight: terms.weight, least: terms.minimum.as_bps().max(minima).min(demand), most }
        })
        .collect();
    let mut shares = vec![0.0; claims.len()];
    for (members, share) in groups.values().zip(fill(capacity_bps, &outer)) {
        let inner: Vec<Part> = members
            .iter()
            .map(|at| {
                let claim = &claims[*at];
                Part { weight: claim.weight, least: claim.least_bps.min(claim.demand()), most: claim.demand() }
            })
            .collect();
        for (at, share) in members.iter().zip(fill(share, &inner)) {
            shares[*at] = share;
        }
    }
    shares
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

/// One that shares.
#[derive(Clone, Copy, Debug)]
struct Part {
    weight: f64,
    least: f64,
    most: f64,
}

/// Each has max(least, min(most, weight x level)), with the level at which all of it is used, if it can be.
fn fill(capacity: f64, parts: &[Part]) -> Vec<f64> {
    let at = |level: f64| parts.iter().map(move |part| (part.weight * level).min(part.most).max(part.least));
    let largest = parts.iter().map(|part| capacity / part.weight).fold(0.0, f64::max);
    if at(largest).sum::<f64>() <= capacity {
        return at(largest).collect();
    }
    let (mut low, mut high) = (0.0, largest);
    // The sum rises with the level: halves until nothing is left that could be seen.
    while high - low > EXACT * largest {
        let middle = f64::midpoint(low, high);
        if at(middle).sum::<f64>() <= capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(group: u32, used: f64) -> Claim {
        Claim {
            group,
            terms: GroupTerms::default(),
            weight: 1.0,
            measured_bps: used,
            expected_bps: 100.0,
            most_bps: f64::INFINITY,
            least_bps: 0.0,
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
        let heavy = Claim { weight: 3.0, ..claim(1, 100.0) };
        assert_eq!(rounded(&max_min(100.0, &[claim(1, 100.0), heavy])), [25.0, 75.0]);
        let promised = Claim { least_bps: 60.0, ..claim(1, 100.0) };
        assert_eq!(rounded(&max_min(100.0, &[claim(1, 100.0), promised])), [40.0, 60.0]);
        let capped = Claim { most_bps: 10.0, ..claim(1, 100.0) };
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
