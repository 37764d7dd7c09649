//! ATM switch rules at an end node: one advertised rate for all sessions.
//!
//! A switch recognises the sessions that are limited elsewhere by their rates, and advertises the fair share of the
//! rest to *every* session. At an end node that is a hazard: when a session's demand rises, it may immediately send at
//! the advertised rate, and so may all others (Wu & Chien 2006, section 2.2). docs/explanation/abr.md works the
//! example.

use fairwave_units::Rate;

use crate::scheme::{NodeRule, Scheme};
use crate::{Grant, Interval, RateAllocator, Row};

use super::compensated::Compensated;
use super::node_entries::{DRIVER_OPTIONS, entry};

/// Registry entry of consistent marking.
pub(super) const CHARNY: Scheme = Scheme {
    needs: NEEDS,
    ..entry(
        "abr-charny",
        "consistent marking: all sessions get the same advertised rate",
        "Charny, Clark & Jain 1995; Wu & Chien 2006, section 2.2",
        &DRIVER_OPTIONS,
        NodeRule { needs_claims: true, ..NodeRule::new(|_| Box::new(Charny::default())) },
    )
};
/// Generalized max-min.
pub(super) const HOU: Scheme = Scheme {
    needs: NEEDS,
    ..entry(
        "abr-hou",
        "generalized max-min: one advertised rate, with minimum and peak rates",
        "Hou, Tzeng, Panwar & Kumar 1998; Wu & Chien 2006, section 2.2",
        &DRIVER_OPTIONS,
        NodeRule { needs_claims: true, keeps_minimum: true, ..NodeRule::new(|_| Box::new(Hou::default())) },
    )
};
const NEEDS: &str = "sources that declare their demands";

/// Consistent marking (Charny, Clark & Jain 1995): sessions whose rate is at most the advertised rate are marked as
/// limited elsewhere; the advertised rate is the capacity that they leave, divided by the number of the others.
///
/// The marking is computed from scratch in every interval, until it is consistent: every marked session is at or below
/// the advertised rate, every other above. Minimum rates and weights are ignored.
#[derive(Clone, Debug, Default)]
pub struct Charny {
    limits: Vec<f64>,
}

impl Charny {
    /// The advertised rate for sessions that are limited to these rates elsewhere. Reorders `limits`.
    fn advertised(capacity: f64, limits: &mut [f64]) -> f64 {
        limits.sort_unstable_by(f64::total_cmp);
        let mut left = Compensated::new(capacity);
        for (marked, limit) in limits.iter().enumerate() {
            let share = left.value() / (limits.len() - marked) as f64;
            if *limit > share {
                return share.max(0.0);
            }
            left.subtract(*limit);
        }
        // All are marked: the largest may have the rest on top of its own rate.
        (left.value() + limits.last().copied().unwrap_or(0.0)).max(0.0)
    }
}

impl RateAllocator for Charny {
    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]) {
        assert_eq!(rows.len(), grants.len(), "one grant a row");
        self.limits.clear();
        self.limits.extend(rows.iter().map(|row| limit(row).as_bps()));
        let advertised = Rate::nearest_bps(Self::advertised(interval.capacity.as_bps(), &mut self.limits));
        grants.fill(Grant { expected: advertised, target: advertised });
    }
}

/// Generalized max-min with minimum and peak rates (Hou, Tzeng, Panwar & Kumar 1998).
///
/// The advertised rate mu solves sum of max(minimum, min(mu, rate limited elsewhere)) = capacity. A session is granted
/// max(minimum, mu); the session itself applies its peak rate. Weights are ignored. If the minimum rates exceed the
/// capacity, every session is granted its minimum: admission control is up to the caller.
#[derive(Clone, Debug, Default)]
pub struct Hou {
    bends: Vec<Bend>,
}

/// A point where the load as a function of the advertised rate changes its slope.
#[derive(Clone, Copy, Debug)]
struct Bend {
    at: f64,
    /// +1 where a session rises above its minimum, -1 where it meets its limit.
    slope: f64,
}

impl Hou {
    fn advertised(&mut self, capacity: f64, rows: &[Row]) -> f64 {
        self.bends.clear();
        let mut spare = Compensated::new(capacity);
        let mut largest = 0.0_f64;
        for row in rows {
            let (minimum, limit) = (row.terms.minimum.as_bps(), limit(row).as_bps());
            spare.subtract(minimum);
            // A session held at its guaranteed rate has that rate for any advertised rate: it does not affect the
            // others' share, and is not one that could have more.
            if limit > minimum * (1.0 + NEAR) {
                largest = largest.max(limit);
                self.bends.push(Bend { at: minimum, slope: 1.0 });
                self.bends.push(Bend { at: limit, slope: -1.0 });
            }
        }
        if spare.value() <= 0.0 {
            return 0.0;
        }
        // Of equal points the steepest first: the slope never falls below zero on the way.
        self.bends.sort_unstable_by(|a, b| a.at.total_cmp(&b.at).then(b.slope.total_cmp(&a.slope)));
        let (mut mu, mut rising) = (0.0, 0.0);
        for bend in &self.bends {
            let needed = rising * (bend.at - mu);
            if rising > 0.0 && needed > spare.value() {
                return mu + spare.value() / rising;
            }
            spare.subtract(needed);
            mu = bend.at;
            rising += bend.slope;
        }
        // All are limited elsewhere: the largest may have the rest on top of its own rate.
        largest + spare.value().max(0.0)
    }
}

/// A session whose measured rate exceeds its minimum rate by at most this share counts as held at it: measured rates
/// are counts of packets, and sometimes one more falls into a control interval. A twentieth is one of twenty; 40 Mb/s
/// have 93 packets of 1077 bytes in 20 ms, of which one is more than a hundredth.
const NEAR: f64 = 0.05;

impl RateAllocator for Hou {
    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]) {
        assert_eq!(rows.len(), grants.len(), "one grant a row");
        let advertised = Rate::nearest_bps(self.advertised(interval.capacity.as_bps(), rows));
        for (row, grant) in rows.iter().zip(grants) {
            *grant = Grant { expected: row.terms.minimum.max(advertised), target: advertised };
        }
    }
}

/// A session's limit elsewhere, as far as this node knows: its rate, or its declared demand if that is less.
fn limit(row: &Row) -> Rate {
    row.terms.desired.map_or(row.measured, |desired| desired.min(row.measured))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terms;
    use fairwave_units::Duration;
    use proptest::prelude::*;

    #[test]
    fn charny__advertises_the_rest_of_the_marked_sessions() {
        // Stamps 1, .1, .1, .1: no marks give mu = .25, which marks the last three; mu = (1 - .3) / 1 = .7.
        assert_eq!(charny(1.0, &rows(&[1.0, 0.1, 0.1, 0.1])), 0.7);
        // In equilibrium the first sends at .7, all are marked: mu = 1 - 1 + .7.
        assert_near(charny(1.0, &rows(&[0.7, 0.1, 0.1, 0.1])), 0.7);
        // A declared demand counts where it is below the measured rate.
        let mut late = rows(&[1.0, 0.5, 0.5, 0.5]);
        for row in &mut late[1..] {
            row.terms.desired = Some(Rate::nearest_bps(0.1));
        }
        assert_eq!(charny(1.0, &late), 0.7);
    }

    #[test]
    fn advertised__equal_rates_overflow_when_demands_rise() {
        // Wu & Chien 2006, Table 1 and section 2.2: all four are advertised .7; when the three small demands rise to 1,
        // four sessions send min(1, .7) each: 2.8 into a sink of capacity 1.
        for rule in [&mut Charny::default() as &mut dyn RateAllocator, &mut Hou::default()] {
            let granted = grants(rule, 1.0, &rows(&[0.7, 0.1, 0.1, 0.1]));
            for grant in &granted {
                assert_near(grant.expected.as_bps(), 0.7);
            }
            let sent: f64 = granted.iter().map(|grant| grant.expected.as_bps().min(1.0)).sum();
            assert_near(sent, 2.8);
        }
    }

    #[test]
    fn charny__marks_level_after_level() {
        // 12 over six: 2 marks the 1; 11/5 = 2.2 marks the 2; 9/4 = 2.25 marks no other.
        assert_eq!(charny(12.0, &rows(&[9.0, 1.0, 3.0, 2.0, 8.0, 3.0])), 2.25);
        assert_eq!(charny(6.0, &rows(&[7.0, 7.0, 7.0])), 2.0); // overloaded: an even split
        assert_eq!(charny(6.0, &rows(&[0.0, 0.0])), 6.0); // idle: all of it, to each
        assert_eq!(charny(0.0, &rows(&[0.0, 1.0])), 0.0);
    }

    #[test]
    fn hou__minimum_rates_go_first() {
        // C = 10. Session 1 has a minimum of 4, session 2 is limited to 1: mu + mu + 4 + 1 = 10 gives mu = 2.5.
        let mut table = rows(&[9.0, 1.0, 9.0, 9.0]);
        table[0].terms.minimum = Rate::nearest_bps(4.0);
        let granted = grants(&mut Hou::default(), 10.0, &table);
        let expected: Vec<_> = granted.iter().map(|grant| grant.expected.as_bps()).collect();
        assert_eq!(expected, [4.0, 2.5, 2.5, 2.5]);
        assert!(granted.iter().all(|grant| grant.target.as_bps() == 2.5));
        // Minimum rates beyond the capacity are granted nevertheless.
        table[1].terms.minimum = Rate::nearest_bps(8.0);
        let granted = grants(&mut Hou::default(), 10.0, &table);
        assert_eq!(granted.iter().map(|grant| grant.expected.as_bps()).collect::<Vec<_>>(), [4.0, 8.0, 0.0, 0.0]);
    }

    #[test]
    fn hou__guaranteed_session_does_not_set_the_advertised_rate() {
        // The equilibrium of the test above, exactly and as packets measure it: the others keep their rates.
        for (guaranteed, other) in [(4.0, 2.5), (4.002, 2.499), (4.15, 2.4999)] {
            let mut table = rows(&[guaranteed, 1.0, other, other]);
            table[0].terms.minimum = Rate::nearest_bps(4.0);
            let mu = grants(&mut Hou::default(), 10.0, &table)[0].target.as_bps();
            assert!((mu - 2.5).abs() < 0.01, "{mu}");
        }
        // A session above its minimum is one of those that share.
        let mut table = rows(&[5.0, 1.0, 4.0]);
        table[0].terms.minimum = Rate::nearest_bps(4.0);
        assert_eq!(grants(&mut Hou::default(), 10.0, &table)[0].target.as_bps(), 5.0);
    }

    proptest! {
        #[test]
        fn charny__marking_is_consistent(limits in prop::collection::vec(limit_of(), 1..40), capacity in 0.1..20.0_f64) {
            let mu = charny(capacity, &rows(&limits));
            let near = 1e-9 * mu.max(capacity);
            let marked: Vec<_> = limits.iter().filter(|limit| **limit <= mu + near).collect();
            let sum: f64 = marked.iter().copied().sum();
            let others = (limits.len() - marked.len()) as f64;
            if others > 0.0 {
                // Those above mu share what the marked ones leave.
                prop_assert!((mu * others + sum - capacity).abs() < 1e-6, "mu {mu}");
            } else {
                // No session is above mu: there is room for all, and the largest may have the rest.
                let largest = limits.iter().copied().fold(0.0, f64::max);
                prop_assert!((mu - (capacity - sum + largest)).abs() < 1e-6, "mu {mu}");
            }
        }

        #[test]
        fn hou__load_at_the_advertised_rate_is_the_capacity(
            table in prop::collection::vec((limit_of(), limit_of()), 1..40),
            capacity in 0.1..20.0_f64,
        ) {
            let rows: Vec<_> = table.iter().map(|(limit, minimum)| with_minimum(*limit, minimum / 10.0)).collect();
            let mu = grants(&mut Hou::default(), capacity, &rows)[0].target.as_bps();
            let is_above = |row: &&Row| row.measured > row.terms.minimum * (1.0 + NEAR);
            // A session held at its minimum rate has that rate, even if slightly more was measured.
            let load = |mu: f64| -> f64 {
                let rate = |row: &Row| if is_above(&row) { mu.min(row.measured.as_bps()) } else { 0.0 };
                rows.iter().map(|row| row.terms.minimum.as_bps().max(rate(row))).sum()
            };
            if load(0.0) >= capacity {
                prop_assert_eq!(mu, 0.0);
            } else if load(f64::MAX) > capacity {
                prop_assert!((load(mu) - capacity).abs() < 1e-6, "load {} at mu {mu}", load(mu));
            } else {
                let largest = rows.iter().filter(is_above).map(|row| row.measured.as_bps()).fold(0.0, f64::max);
                prop_assert!((mu - (capacity - load(f64::MAX) + largest)).abs() < 1e-6, "mu {mu}");
            }
        }

        #[test]
        fn hou__without_minimum_rates_is_consistent_marking(
            limits in prop::collection::vec(limit_of(), 1..40),
            capacity in 0.1..20.0_f64,
        ) {
            let table = rows(&limits);
            let (hou, charny) = (grants(&mut Hou::default(), capacity, &table), charny(capacity, &table));
            prop_assert!((hou[0].expected.as_bps() - charny).abs() < 1e-9 * capacity, "{hou:?} {charny}");
        }

        #[test]
        fn advertised__any_finite_input_gives_a_rate(
            table in prop::collection::vec((any::<f64>(), any::<f64>(), prop::option::of(any::<f64>())), 0..20),
            capacity: f64,
        ) {
            let rows: Vec<_> = table
                .iter()
                .map(|(measured, minimum, desired)| Row { measured: Rate::nearest_bps(*measured), terms: Terms { minimum: Rate::nearest_bps(*minimum), desired: desired.map(Rate::nearest_bps), ..Terms::default() } })
                .collect();
            for rule in [&mut Charny::default() as &mut dyn RateAllocator, &mut Hou::default()] {
                for grant in grants(rule, capacity, &rows) {
                    prop_assert!((0.0..=f64::MAX).contains(&grant.expected.as_bps()), "{grant:?}");
                }
            }
        }
    }

    /// Rates that sometimes coincide.
    fn limit_of() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), (0..8_u8).prop_map(f64::from), 0.0..10.0_f64]
    }

    fn with_minimum(measured: f64, minimum: f64) -> Row {
        Row {
            measured: Rate::nearest_bps(measured),
            terms: Terms { minimum: Rate::nearest_bps(minimum), ..Terms::default() },
        }
    }

    fn rows(measured: &[f64]) -> Vec<Row> {
        measured.iter().map(|rate| with_minimum(*rate, 0.0)).collect()
    }

    fn grants(rule: &mut dyn RateAllocator, capacity: f64, rows: &[Row]) -> Vec<Grant> {
        let mut grants = vec![Grant::default(); rows.len()];
        let interval = Interval { capacity: Rate::nearest_bps(capacity), elapsed: Duration::from_millis(50) };
        rule.allocate(&interval, rows, &mut grants);
        grants
    }

    fn charny(capacity: f64, rows: &[Row]) -> f64 {
        grants(&mut Charny::default(), capacity, rows)[0].expected.as_bps()
    }

    #[track_caller]
    fn assert_near(ours: f64, expected: f64) {
        assert!((ours - expected).abs() < 1e-12, "{ours}, expected {expected}");
    }
}
