//! GTP at one end node: Wu 2007, Algorithm 2 at a sink and Algorithm 3 at a source, which are the same.

use fairwave_units::{Duration, Rate};

use crate::scheme::Options;
use crate::{Grant, Interval, RateAllocator, Row};

use super::compensated::Compensated;
use super::drain::Drain;
use super::floors::{Floors, is_below};
use super::order::{RowOrder, RowPlace};

pub mod options;
mod scheme;

use options::{BUDGET, DRAIN, EXPONENTIAL_START};
pub(super) use scheme::{ADOPTED, PRINTED};

/// Measured rates per unit weight that differ by less than this share are ties.
const TIE: f64 = 1e-9;

/// The node rule of GTP, once per control interval for one capacity.
///
/// It visits the sessions by measured rate (per unit weight), lowest first. Each has a *target rate*, its fair share of
/// the capacity that the measured rates of the earlier ones leave. A session below its target steps towards it; from
/// the first on that has reached it, the rest of the capacity is split evenly.
///
/// Without `drain` it keeps only scratch space between calls, so one object may serve many nodes, and steady tables of
/// any size need no heap allocation.
///
/// ```
/// use fairwave_schemes::node::Gtp;
/// use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
/// use fairwave_units::{Duration, Rate};
///
/// // One interval by hand (docs/explanation/max-min-and-gtp.md): 1000 Mb/s, alpha 0.1, beta 0.2.
/// let rows = [100.0, 310.0, 600.0].map(|mbps| Row::new(Rate::mbps(mbps), 0.1, 0.2));
/// let mut grants = [Grant::default(); 3];
/// let interval = Interval { capacity: Rate::gbps(1.0), elapsed: Duration::from_millis(50) };
/// Gtp::default().allocate(&interval, &rows, &mut grants);
///
/// let mbps = grants.map(|grant| (grant.expected.as_bps() / 1e3).round() / 1e3);
/// // 1000 / 3 = 333.333:        100 + 0.1 x 233.333
/// // (1000 - 100) / 2 = 450:    310 + 0.1 x 140
/// // 1000 - 100 - 310 = 590:    600 is above its target, so it gets the target
/// assert_eq!(mbps, [123.333, 324.0, 590.0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gtp {
    reading: Reading,
    /// Largest sum of expected rates as a multiple of the capacity.
    budget: Option<f64>,
    /// Sessions below this share of their target double.
    exponential: Option<f64>,
    drain: Option<Drain>,
    order: RowOrder,
    floors: Floors,
}

/// Reading of the printed algorithm that a [`Gtp`] follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// With the repaired step and common targets for ties: it converges.
    #[default]
    Adopted,
    /// As printed: a step may lead past the target, and ties go one at a time. See "The repaired step" in
    /// docs/explanation/design-notes.md.
    Printed,
}

impl Gtp {
    /// The rule with the options `drain`, `budget` and `exponential_start` of a scheme.
    pub fn new(reading: Reading, options: &Options) -> Self {
        Self {
            reading,
            budget: BUDGET.of(options),
            exponential: EXPONENTIAL_START.of(options),
            drain: DRAIN.of(options).then(Drain::default),
            order: RowOrder::default(),
            floors: Floors::default(),
        }
    }

    /// The rule inside a group, which shares the group's allocation: drain and budget apply to the whole capacity.
    pub(super) fn within_group(reading: Reading, options: &Options) -> Self {
        Self { budget: None, drain: None, ..Self::new(reading, options) }
    }

    /// Gives every session in turn a step towards its target, until one has reached it; the rest share evenly.
    ///
    /// Minimum and maximum rates of sessions are respected. See [`Floors`].
    #[inline]
    pub(super) fn fill(&mut self, capacity: Rate, rows: &[Row], grants: &mut [Grant]) {
        let places = self.order.sort(rows);
        let mut remaining = Compensated::new(capacity.as_bps());
        self.floors.begin(rows, &mut remaining);
        let mut at = 0;
        while let Some(&RowPlace { ratio, weights, .. }) = places.get(at) {
            // Wu 2007, Eq. VI.3: x_f = (C - sum of determined measured rates) / undetermined sessions.
            // Differs from Algorithm 2 line 5, which prints "!= 0": the prose takes undetermined sessions.
            let has_minima = self.floors.has_minima();
            let target = if has_minima { self.floors.target(remaining) } else { remaining.value() / weights };
            // Line 12 prints "x_k >= x_f"; the prose of VI.2.D has the opposite sign.
            if ratio >= target {
                break;
            }
            // One at a time, n idle sessions would get alpha C/n, alpha C/(n-1) ... alpha C: ties share one target.
            let last = match self.reading {
                Reading::Adopted => ratio * (1.0 + TIE),
                Reading::Printed => -1.0,
            };
            loop {
                let index = places[at].row as usize;
                let row = &rows[index];
                let is_below = is_below(row);
                let target = if is_below { self.floors.target_below(row, remaining) } else { target };
                let mut reached = self.reading.step(row, ratio, target);
                if let Some(share) = self.exponential {
                    // Wu 2007, VIII.1.A: exponentially up to a threshold, and then the linear steps.
                    reached = reached.max((2.0 * ratio).min(share * target));
                }
                grants[index] = grant(row, reached, target);
                if !is_below {
                    // The measured, not the expected, rate: the session's known use (VI.2.F).
                    remaining.subtract(row.measured.as_bps());
                    self.floors.leave(row);
                }
                at += 1;
                if places.get(at).is_none_or(|next| next.ratio > last) {
                    break;
                }
            }
        }
        let (determined, rest) = places.split_at(at);
        if let [first, ..] = rest {
            let has_minima = self.floors.has_minima();
            let target = if has_minima { self.floors.target(remaining) } else { remaining.value() / first.weights };
            for place in rest {
                let index = place.row as usize;
                let row = &rows[index];
                grants[index] = if is_below(row) {
                    let target = self.floors.target_below(row, remaining);
                    grant(row, self.reading.step(row, place.ratio, target), target)
                } else {
                    grant(row, target, target)
                };
            }
        }
        if let Some(budget) = self.budget {
            let spare = if rest.is_empty() { remaining.value() } else { 0.0 };
            let most = (budget - 1.0) * capacity.as_bps() + spare;
            limit_steps(determined, most, rows, grants);
        }
        for (row, grant) in rows.iter().zip(grants) {
            if let Some(maximum) = row.terms.maximum {
                (grant.expected, grant.target) = (grant.expected.min(maximum), grant.target.min(maximum));
            }
        }
    }
}

/// Grant of a session whose new rate per unit weight is `reached`, at least its minimum.
#[inline]
fn grant(row: &Row, reached: f64, target: f64) -> Grant {
    let rate = |per_weight: f64| Rate::nearest_bps(row.terms.weight * per_weight).max(row.terms.minimum);
    Grant { expected: rate(reached), target: rate(target) }
}

impl Reading {
    /// New rate per unit weight of a session whose rate `ratio` is below its target.
    #[inline]
    pub(super) fn step(self, row: &Row, ratio: f64, target: f64) -> f64 {
        let gap = target - ratio;
        // Algorithm 2, lines 7 to 9. The cap alpha x_f never binds; it is here to match the printed line.
        let step = (row.terms.alpha * gap).max(row.terms.alpha * row.terms.beta * target).min(row.terms.alpha * target);
        if self == Self::Adopted && step >= gap {
            // Differs from Wu 2007: a step never leads past the target. See "The repaired step" in design-notes.
            return target;
        }
        ratio + step
    }
}

impl RateAllocator for Gtp {
    fn see_queue(&mut self, waiting: Duration) {
        if let Some(drain) = &mut self.drain {
            drain.see(waiting);
        }
    }

    /// Only the drain has state.
    fn is_stateless(&self) -> bool {
        self.drain.is_none()
    }

    #[inline]
    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]) {
        assert_eq!(rows.len(), grants.len(), "one grant a row");
        let capacity = match &mut self.drain {
            Some(drain) => drain.capacity(interval, rows),
            None => interval.capacity,
        };
        self.fill(capacity, rows, grants);
    }
}

/// Shrinks all steps by one factor so that they add at most `most` to the measured rates of the determined sessions.
/// See "Budget" in docs/explanation/design-notes.md.
fn limit_steps(determined: &[RowPlace], most: f64, rows: &[Row], grants: &mut [Grant]) {
    let mut steps = Compensated::default();
    for place in determined {
        let index = place.row as usize;
        steps.add(grants[index].expected.as_bps() - rows[index].measured.as_bps());
    }
    let factor = most.max(0.0) / steps.value();
    // Not less than one if there is no step at all (0 / 0).
    if factor < 1.0 {
        for place in determined {
            let index = place.row as usize;
            let measured = rows[index].measured.as_bps();
            let step = grants[index].expected.as_bps() - measured;
            grants[index].expected = Rate::nearest_bps(measured + step * factor).max(rows[index].terms.minimum);
        }
    }
}

#[cfg(test)]
mod tests;
