//! GTP over owners, and then over the sessions of each.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate};

use crate::scheme::Options;
use crate::{Grant, Interval, Others, RateAllocator, Row, Terms};

use super::compensated::Compensated;
use super::drain::Drain;
use super::gtp::options::{BUDGET, DRAIN};
use super::gtp::{Gtp, Reading};

/// GTP in two levels: owners ("groups") share a capacity, and the sessions of each share what it gets.
///
/// The outer level sees groups as the sums of their sessions' measured rates, and yields only *target rates*; GTP
/// itself then runs inside each group, with the group's target as its capacity. Alpha is therefore applied once: with
/// two rules in series, sessions would approach their shares by alpha squared. If sessions use their grants, this
/// converges to the hierarchical max-min allocation.
///
/// One group without terms equals [`Gtp`], to the last bit; so does one session per group, apart from rounding. Unless
/// [`RateAllocator::set_group`] sets other terms, a group has weight one, no minimum and no maximum. The minima of
/// sessions apply as far as the sessions use them: such a minimum raises its group.
///
/// Traffic outside the rule's control counts as one more group, if a driver reports it ([`RateAllocator::see_other`]):
/// the part of its share that it uses is left to it.
///
/// ```
/// use fairwave_schemes::node::Groups;
/// use fairwave_schemes::{Grant, Interval, RateAllocator, Row, Terms};
/// use fairwave_units::{Duration, Rate};
///
/// // Two owners; the second has three sessions. All use more than their share of 120 Mb/s.
/// let of = |group| Row { measured: Rate::mbps(70.0), terms: Terms { group, ..Terms::default() } };
/// let rows = [of(1), of(2), of(2), of(2)];
/// let mut grants = [Grant::default(); 4];
/// let interval = Interval { capacity: Rate::mbps(120.0), elapsed: Duration::from_millis(20) };
/// Groups::default().allocate(&interval, &rows, &mut grants);
/// assert_eq!(grants.map(|grant| grant.expected.as_mbps()), [60.0, 20.0, 20.0, 20.0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Groups {
    terms: BTreeMap<u32, Terms>,
    /// Largest sum of expected rates as a multiple of the capacity.
    budget: Option<f64>,
    drain: Option<Drain>,
    /// Traffic outside the rule's control.
    other: Option<Others>,
    /// The outer level's rule, for its targets only.
    outer: Gtp,
    /// Initial rule of a group.
    inner: Gtp,
    /// The rows by group: (group, index). Nearly in order from call to call.
    by_group: Vec<(u32, u32)>,
    /// Of each group, in order: the start of its rows in `by_group`, its row of the outer level, and its rule, which
    /// remembers the order of its sessions in the last call.
    found: Vec<GroupRange>,
    rules: Vec<Gtp>,
    totals: Vec<Row>,
    targets: Vec<Grant>,
    gathered: Vec<Row>,
    granted: Vec<Grant>,
}

#[derive(Clone, Copy, Debug)]
struct GroupRange {
    group: u32,
    begins: usize,
}

impl Groups {
    /// The rule with the options `drain`, `budget` and `exponential_start` of a scheme, as in [`Gtp::new`].
    pub fn new(reading: Reading, options: &Options) -> Self {
        // Both apply to the whole capacity, not to a group's allocation.
        let (budget, drain) = (BUDGET.of(options), DRAIN.of(options).then(Drain::default));
        Self { budget, drain, inner: Gtp::within_group(reading, options), ..Self::default() }
    }

    /// Terms of a group.
    pub fn terms(&self, group: u32) -> Terms {
        self.terms.get(&group).copied().unwrap_or_default()
    }

    /// Finds the groups of a table.
    fn gather(&mut self, rows: &[Row]) {
        let is_warm = self.by_group.len() == rows.len()
            && self
                .by_group
                .iter()
                .all(|&(group, at)| rows.get(at as usize).is_some_and(|row| row.terms.group == group));
        if is_warm {
            return;
        }
        self.by_group.clear();
        self.by_group.extend((0..).zip(rows).map(|(at, row)| (row.terms.group, at)));
        self.by_group.sort_unstable();
        self.found.clear();
        for (begins, &(group, _)) in self.by_group.iter().enumerate() {
            if self.found.last().is_none_or(|last| last.group != group) {
                self.found.push(GroupRange { group, begins });
            }
        }
        let inner = &self.inner;
        self.rules.resize_with(self.found.len(), || inner.clone());
    }

    /// The row of a group at the outer level.
    fn total(&self, at: usize, rows: &[Row]) -> Row {
        let terms = self.terms(self.found[at].group);
        let (mut measured, mut minima) = (Compensated::default(), Compensated::default());
        for row in self.members(at).map(|index| &rows[index]) {
            measured.add(row.measured.as_bps());
            minima.add(row.terms.minimum.min(row.measured).as_bps());
        }
        let minimum = Rate::nearest_bps(minima.value()).max(terms.minimum);
        Row {
            measured: Rate::nearest_bps(measured.value()),
            terms: Terms { minimum, desired: None, group: 0, alpha: OUTER_ALPHA, beta: 0.0, ..terms },
        }
    }

    /// The rows of a group, in order.
    fn members(&self, at: usize) -> impl Iterator<Item = usize> {
        let begins = self.found[at].begins;
        let ends = self.found.get(at + 1).map_or(self.by_group.len(), |next| next.begins);
        self.by_group[begins..ends].iter().map(|(_, index)| *index as usize)
    }

    fn fill(&mut self, capacity: Rate, rows: &[Row], grants: &mut [Grant]) {
        self.totals.clear();
        for at in 0..self.found.len() {
            let total = self.total(at, rows);
            self.totals.push(total);
        }
        // Last, after the groups: its target is not used below.
        self.totals.extend(self.other.map(row_of_other));
        self.targets.clear();
        self.targets.resize(self.totals.len(), Grant::default());
        self.outer.fill(capacity, &self.totals, &mut self.targets);
        if let (Some(_), Some((other, grant))) = (self.other, self.totals.last_mut().zip(self.targets.last())) {
            // It gets its grant and not only its use from the groups: it does not push its way in as a session does
            // that sends at its grant. See "Traffic that asks nobody" in docs/explanation/design-notes.md.
            other.measured = grant.expected;
            self.outer.fill(capacity, &self.totals, &mut self.targets);
        }
        for at in 0..self.found.len() {
            let mut gathered = std::mem::take(&mut self.gathered);
            gathered.clear();
            gathered.extend(self.members(at).map(|index| rows[index]));
            self.granted.clear();
            self.granted.resize(gathered.len(), Grant::default());
            self.rules[at].fill(self.targets[at].target, &gathered, &mut self.granted);
            for (index, grant) in self.members(at).zip(&self.granted) {
                grants[index] = *grant;
            }
            self.gathered = gathered;
        }
    }
}

/// Steps of the outer level are not used.
const OUTER_ALPHA: f64 = 0.5;

impl RateAllocator for Groups {
    fn see_queue(&mut self, waiting: Duration) {
        if let Some(drain) = &mut self.drain {
            drain.see(waiting);
        }
    }

    /// # Panics
    /// If the weight is not above zero and finite.
    fn see_other(&mut self, other: Option<Others>) {
        let is_fit = other.is_none_or(|other| other.weight > 0.0 && other.weight.is_finite());
        assert!(is_fit, "a weight is above zero and finite");
        // Idle traffic has no share, and does not tie with groups that use nothing yet.
        self.other = other.filter(|other| other.measured > Rate::ZERO);
    }

    /// # Panics
    /// If the weight is not above zero and finite.
    fn set_group(&mut self, group: u32, terms: Option<Terms>) {
        match terms {
            Some(terms) => {
                assert!(terms.weight > 0.0 && terms.weight.is_finite(), "a weight is above zero and finite");
                self.terms.insert(group, terms);
            }
            None => {
                self.terms.remove(&group);
            }
        }
    }

    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]) {
        assert_eq!(rows.len(), grants.len(), "one grant a row");
        let capacity = match &mut self.drain {
            Some(drain) => drain.capacity(interval, rows),
            None => interval.capacity,
        };
        self.gather(rows);
        match self.found[..] {
            [only] if !rows.is_empty() && self.other.is_none() => {
                let most = self.terms(only.group).maximum.map_or(capacity, |maximum| maximum.min(capacity));
                self.rules[0].fill(most, rows, grants);
            }
            _ => self.fill(capacity, rows, grants),
        }
        if let Some(budget) = self.budget {
            limit_steps(budget, self.without_others(capacity), rows, grants);
        }
    }
}

impl Groups {
    /// Capacity that remains for the groups after other traffic's part.
    fn without_others(&self, capacity: Rate) -> Rate {
        let Some((other, grant)) = self.other.zip(self.targets.get(self.found.len())) else { return capacity };
        let weights: f64 = self.totals.iter().map(|total| total.terms.weight).sum();
        let share = capacity * (other.weight / weights);
        Rate::nearest_bps(capacity.as_bps() - grant.expected.min(share).as_bps())
    }
}

/// Traffic outside the rule's control, as a row of the outer level.
fn row_of_other(other: Others) -> Row {
    let terms = Terms { weight: other.weight, alpha: OTHER_ALPHA, beta: OTHER_BETA, ..Terms::default() };
    Row { measured: other.measured, terms }
}

/// The rate that [`Groups`] leaves to traffic outside its control, whose share of a node is `share`: its use of that
/// plus a step, so that it can grow.
///
/// ```
/// use fairwave_schemes::Others;
/// use fairwave_schemes::node::left_to_other;
/// use fairwave_units::Rate;
///
/// let other = |mbps| Others { weight: 1.0, measured: Rate::mbps(mbps) };
/// // 20 of 50 Mb/s, and a tenth of what is missing.
/// assert_eq!(left_to_other(other(20.0), Rate::mbps(50.0)), Rate::mbps(23.0));
/// assert_eq!(left_to_other(other(70.0), Rate::mbps(50.0)), Rate::mbps(50.0));
/// ```
pub fn left_to_other(other: Others, share: Rate) -> Rate {
    let row = row_of_other(other);
    let (ratio, target) = (other.measured.as_bps() / other.weight, share.as_bps() / other.weight);
    let reached = if ratio < target { Reading::Adopted.step(&row, ratio, target) } else { target };
    Rate::nearest_bps(reached * other.weight)
}

/// Alpha of other traffic's steps: Wu 2007, VII.
const OTHER_ALPHA: f64 = 0.1;
/// Beta of other traffic's steps: Wu 2007, VII.
const OTHER_BETA: f64 = 0.2;

/// Shrinks all steps by one factor, over all groups, so that expected rates sum to at most `budget` times the capacity.
/// See "Budget" in docs/explanation/design-notes.md.
fn limit_steps(budget: f64, capacity: Rate, rows: &[Row], grants: &mut [Grant]) {
    let (mut steps, mut spare) = (Compensated::default(), Compensated::new(capacity.as_bps()));
    let mut all_step = true;
    for (row, grant) in rows.iter().zip(&*grants) {
        let (measured, expected) = (row.measured.as_bps(), grant.expected.as_bps());
        spare.subtract(measured);
        if expected > measured {
            steps.add(expected - measured);
        } else {
            all_step = false;
        }
    }
    let spare = if all_step { spare.value().max(0.0) } else { 0.0 };
    let factor = ((budget - 1.0) * capacity.as_bps() + spare) / steps.value();
    // Not less than one if there is no step at all (0 / 0).
    if factor < 1.0 {
        for (row, grant) in rows.iter().zip(grants) {
            let step = grant.expected.as_bps() - row.measured.as_bps();
            if step > 0.0 {
                grant.expected = Rate::nearest_bps(row.measured.as_bps() + step * factor).max(row.terms.minimum);
            }
        }
    }
}

#[cfg(test)]
mod tests;
