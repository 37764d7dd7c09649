//! How the sessions of one path divide its rate.

use fairwave_schemes::node::tally::{Claimant, Fill};
use fairwave_units::Rate;

/// A session's claim on the rate of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Whose the session is. Groups divide the rate first, each with weight one, and then their sessions what the group
    /// has; in group 0 each session is for itself.
    pub(crate) group: u32,
    pub(crate) weight: f64,
    /// Rate that all other limits allow it.
    pub(crate) most: Rate,
    /// Whether it has anything to send.
    pub(crate) wants: bool,
}

/// Max-min fair portions of a rate by weights: no session gets more than it can use while another could use more, and
/// what is left over is for all.
///
/// The portion of a session that cannot use it all is what the path would take of it, not what it sends: the path is
/// not what holds it. One that wants nothing has the portion that it would have if it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Division {
    claims: Vec<Claim>,
    /// Those that want something.
    claimants: Vec<Claimant>,
    portions: Vec<Portion>,
    /// The groups in order, each with its claims by their places.
    by_group: Vec<(u32, usize)>,
}

/// A session's portion of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Portion {
    /// Of its rate.
    pub(crate) rate: Rate,
    /// Of what may be in flight, up to one: the part of all that the sessions send.
    pub(crate) window_share: f64,
}

impl Division {
    /// The claims to divide by; to be filled again each time.
    pub(crate) fn claims(&mut self) -> &mut Vec<Claim> {
        &mut self.claims
    }

    /// The portions, in the order of the claims.
    pub(crate) fn portions(&self) -> &[Portion] {
        &self.portions
    }

    /// Divides a rate: whether all of it is claimed.
    pub(crate) fn divide(&mut self, rate: Rate) -> bool {
        let first = self.claims.first().map_or(0, |claim| claim.group);
        if self.claims.iter().all(|claim| claim.group == first) {
            return self.divide_among_sessions(rate);
        }
        self.by_group.clear();
        self.by_group.extend(self.claims.iter().enumerate().map(|(at, claim)| (claim.group, at)));
        self.by_group.sort_unstable();
        let (mut outer, mut inner) = (Self::default(), Self::default());
        let members = |group: &[(u32, usize)]| group.iter().map(|(_, at)| self.claims[*at]).collect::<Vec<_>>();
        outer.claims.extend(self.by_group.chunk_by(|one, next| one.0 == next.0).map(|group| {
            let claims = members(group);
            let weight = if group[0].0 == 0 { claims.iter().map(|claim| claim.weight).sum() } else { 1.0 };
            let wanting = claims.iter().filter(|claim| claim.wants);
            let most = wanting.clone().fold(0.0, |sum, claim| sum + claim.most.as_bps());
            Claim { group: 0, weight, most: Rate::nearest_bps(most), wants: wanting.count() > 0 }
        }));
        let is_claimed = outer.divide_among_sessions(rate);
        let mut portions = vec![Portion { rate: Rate::ZERO, window_share: 1.0 }; self.claims.len()];
        for (group, all) in self.by_group.chunk_by(|one, next| one.0 == next.0).zip(&outer.portions) {
            inner.claims.clear();
            inner.claims.extend(members(group));
            inner.divide_among_sessions(all.rate);
            for ((_, at), portion) in group.iter().zip(&inner.portions) {
                let window_share = (portion.window_share * all.window_share).min(1.0);
                portions[*at] = Portion { window_share, ..*portion };
            }
        }
        self.portions = portions;
        is_claimed
    }

    fn divide_among_sessions(&mut self, rate: Rate) -> bool {
        let Self { claims, claimants, portions, .. } = self;
        let claimant =
            |claim: &Claim| Claimant { claim_bps: limit_bps(claim.most), weight: claim.weight, minimum_bps: 0.0 };
        claimants.clear();
        claimants.extend(claims.iter().filter(|claim| claim.wants).map(claimant));
        let weights: f64 = claimants.iter().map(|claimant| claimant.weight).sum();
        let used: f64 = claimants.iter().map(|claimant| claimant.claim_bps).sum();
        let rest = (rate.as_bps() - used).max(0.0);
        let is_claimed = !claimants.is_empty() && used >= rate.as_bps();
        // The level is infinite if the claims are exactly the rate.
        let level = Some(Fill::new(limit_bps(rate), claimants).level()).filter(|level| is_claimed && level.is_finite());
        portions.clear();
        let sent = if is_claimed { rate.as_bps() } else { rate.as_bps() - rest };
        portions.extend(claims.iter().map(|claim| {
            let bps = match level {
                _ if !claim.wants => rate.as_bps() * claim.weight / (weights + claim.weight),
                Some(level) => level * claim.weight,
                None => claim.most.as_bps() + rest * claim.weight / weights,
            };
            let share = if claim.wants { claim.most.as_bps().min(bps) / sent } else { bps / rate.as_bps() };
            // Of nothing at all everybody has everything.
            let window_share = if share.is_finite() { share.min(1.0) } else { 1.0 };
            Portion { rate: Rate::nearest_bps(bps), window_share }
        }));
        is_claimed
    }
}

/// Infinite for a rate that nothing limits.
fn limit_bps(rate: Rate) -> f64 {
    if rate.as_bps() < f64::MAX { rate.as_bps() } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn portions(mbps: f64, claims: &[(f64, f64, bool)]) -> (Vec<f64>, bool) {
        let mut division = Division::default();
        let claim =
            |&(weight, most, wants): &(f64, f64, bool)| Claim { group: 0, weight, most: Rate::mbps(most), wants };
        division.claims().extend(claims.iter().map(claim));
        let is_claimed = division.divide(Rate::mbps(mbps));
        (division.portions().iter().map(|portion| (portion.rate.as_mbps() * 1e6).round() / 1e6).collect(), is_claimed)
    }

    #[test]
    fn divide__by_weights() {
        assert_eq!(portions(90.0, &[(1.0, 1e3, true)]), (vec![90.0], true));
        assert_eq!(portions(90.0, &[(1.0, 1e3, true), (2.0, 1e3, true)]), (vec![30.0, 60.0], true));
    }

    #[test]
    fn divide__what_one_cannot_use_the_others_have() {
        // 10 of its 30 are used: 80 are left for two, 1 : 3.
        let claims = [(1.0, 1e3, true), (1.0, 10.0, true), (3.0, 1e3, true)];
        assert_eq!(portions(90.0, &claims), (vec![20.0, 20.0, 60.0], true));
        // No session could use the rest: 90 - 10 - 20 go on top of what each can use, 1 : 1.
        assert_eq!(portions(90.0, &[(1.0, 10.0, true), (1.0, 20.0, true)]), (vec![40.0, 50.0], false));
    }

    #[test]
    fn divide__who_has_nothing_to_send_takes_nothing() {
        let claims = [(1.0, 1e3, true), (1.0, 1e3, false)];
        assert_eq!(portions(90.0, &claims), (vec![90.0, 45.0], true));
        assert_eq!(portions(90.0, &[(1.0, 1e3, false)]), (vec![90.0], false));
        assert_eq!(portions(90.0, &[]), (vec![], false));
    }

    /// Groups, and what each session could use of 90.
    fn of_groups(claims: &[(u32, f64, bool)]) -> Vec<f64> {
        let mut division = Division::default();
        let claim =
            |&(group, most, wants): &(u32, f64, bool)| Claim { group, weight: 1.0, most: Rate::mbps(most), wants };
        division.claims().extend(claims.iter().map(claim));
        division.divide(Rate::mbps(90.0));
        let used = |(portion, claim): (&Portion, &(u32, f64, bool))| portion.rate.as_mbps().min(claim.1);
        let rates = division.portions().iter().zip(claims).map(used);
        let shares: f64 =
            division.portions().iter().zip(claims).filter(|(_, claim)| claim.2).map(|(p, _)| p.window_share).sum();
        assert!(shares <= 1.000_001, "{shares} of the window");
        rates.map(|rate| (rate * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn divide__many_sessions_of_a_ticket_have_the_share_of_one() {
        // 45 for each ticket, and 45 / 40 for each session of the first.
        let many = [(1, 1e3, true); 40];
        let rates = of_groups(&[&many[..], &[(2, 1e3, true)]].concat());
        assert_eq!((rates[0], rates[40]), (1.125, 45.0));
        // A third ticket that wants nothing takes nothing.
        let rates = of_groups(&[&many[..], &[(2, 1e3, true), (3, 1e3, false)]].concat());
        assert_eq!((rates[0], rates[40]), (1.125, 45.0));
    }

    #[test]
    fn divide__what_a_ticket_cannot_use_the_others_have() {
        // 10 of its 45: 80 are left for two sessions of the other.
        assert_eq!(of_groups(&[(1, 1e3, true), (2, 10.0, true), (1, 1e3, true)]), [40.0, 10.0, 40.0]);
        // Within a ticket as well: 45 - 5 for the other session.
        assert_eq!(of_groups(&[(1, 1e3, true), (2, 5.0, true), (2, 1e3, true)]), [45.0, 5.0, 40.0]);
    }

    #[test]
    fn divide__sessions_without_a_ticket_are_each_for_itself() {
        assert_eq!(of_groups(&[(0, 1e3, true), (0, 1e3, true), (7, 1e3, true)]), [30.0, 30.0, 30.0]);
    }

    #[test]
    fn divide__gives_of_the_window_what_each_sends_of_all() {
        let mut division = Division::default();
        let claim = |weight: f64, most: f64, wants: bool| Claim { group: 0, weight, most: Rate::mbps(most), wants };
        let mut shares = |claims: &[Claim]| {
            division.claims().clear();
            division.claims().extend(claims);
            division.divide(Rate::mbps(90.0));
            division.portions().iter().map(|portion| (portion.window_share * 1e6).round() / 1e6).collect::<Vec<_>>()
        };
        // 10 of its 45, and 80.
        assert_eq!(shares(&[claim(1.0, 10.0, true), claim(1.0, 1e3, true)]), [0.111_111, 0.888_889]);
        // Nobody else sends, and who is held by a grant needs no less of it: reports come in lumps.
        assert_eq!(shares(&[claim(1.0, 30.0, true)]), [1.0]);
        assert_eq!(shares(&[claim(1.0, 10.0, true), claim(1.0, 30.0, true)]), [0.25, 0.75]);
        assert_eq!(shares(&[claim(1.0, 0.0, true), claim(1.0, 1e3, false)]), [1.0, 0.5]);
    }

    proptest! {
        /// The sum is at most the rate, and all of it if it is claimed; a session that could use more never has less
        /// per weight than another.
        #[test]
        fn divide__is_max_min(
            mbps in 0.1_f64..1e4,
            claims in proptest::collection::vec((0.01_f64..100.0, 0.0_f64..1e4, any::<bool>()), 1..20),
        ) {
            let (portions, is_claimed) = portions(mbps, &claims);
            let used = |at: usize| if claims[at].2 { portions[at].min(claims[at].1) } else { 0.0 };
            let all: f64 = (0..claims.len()).map(used).sum();
            prop_assert!(all <= mbps * 1.000_001 + 1e-4, "{all} of {mbps}");
            prop_assert!(!is_claimed || all >= mbps * 0.999_999 - 1e-4, "{all} of {mbps}");
            let hungry = |at: &usize| claims[*at].2 && used(*at) < claims[*at].1 * 0.999 - 1e-3;
            for at in (0..claims.len()).filter(hungry) {
                for other in 0..claims.len() {
                    let [one, other] = [at, other].map(|at| used(at) / claims[at].0);
                    prop_assert!(other <= one * 1.001 + 1e-3, "{other} above {one}");
                }
            }
        }
    }
}
