//! The volume of a set of vessels as a function of the level: the common part of filling, settling and capping.

use std::ops::Range;

use crate::global::double::Double;

/// One vessel: at level L it holds `max(floor, weight x L)`, but no more than `top`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vessel {
    /// Volume at level zero.
    pub(super) floor: f64,
    /// Maximum volume, infinity if unlimited. A vessel with `top <= floor` always holds `top`.
    pub(super) top: f64,
    /// Slope while it fills, above zero.
    pub(super) weight: f64,
}

/// The sum over all vessels from one bend to the next: `fixed + slope x L`.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: Double,
    slope: Double,
    /// Number of vessels that are filling: without any the slope is exactly zero, which a sum of rounded numbers is
    /// not.
    filling: u32,
}

/// The start of a vessel's filling, or its end.
#[derive(Clone, Copy, Debug)]
struct Step {
    fixed: f64,
    weight: f64,
}

/// The sum over all vessels as a function of the level: non-decreasing, piecewise linear. One sort creates it, a binary
/// search evaluates it.
///
/// If the range of the levels in question is known, the sum may be limited to a range ([`within`](Self::within)): bends
/// outside are not sorted.
///
/// The running sums have twice the precision of f64, so that vessels of very different weights do not blur each other.
#[derive(Clone, Debug)]
pub(super) struct Water {
    /// The level at the start of each line, with the sum there. Separate from the lines, since searches read them.
    bends: Vec<(f64, f64)>,
    lines: Vec<Line>,
    /// The level up to which the sum is known.
    ends: f64,
}

impl Water {
    /// The sum at all levels.
    pub(super) fn new(vessels: impl Iterator<Item = Vessel>) -> Self {
        Self::within(0.0..f64::INFINITY, vessels)
    }

    /// The sum at the levels of a range: a result below is its start, and a result above its end.
    pub(super) fn within(range: Range<f64>, vessels: impl Iterator<Item = Vessel>) -> Self {
        let (mut line, steps, order) = steps(&range, vessels);
        let (bends, lines) = (Vec::with_capacity(order.len() + 1), Vec::with_capacity(order.len() + 1));
        let mut water = Self { bends, lines, ends: range.end };
        water.push(range.start, line);
        for turn in order {
            let (level, step) = (turn.level(), steps[turn.place as usize]);
            line.fixed.add(step.fixed);
            line.slope.add(step.weight);
            // Each vessel starts before it ends: ties are sorted that way. Rows of extreme rates and weights were seen
            // in another order: the count then wraps below zero, and is right again at the end.
            line.filling = if step.weight > 0.0 { line.filling.wrapping_add(1) } else { line.filling.wrapping_sub(1) };
            if line.filling == 0 {
                line.slope = Double::ZERO;
            }
            water.push(level, line);
        }
        water
    }

    fn push(&mut self, level: f64, line: Line) {
        self.bends.push((level, line.fixed.value() + line.slope.value() * level));
        self.lines.push(line);
    }

    /// Whether a level that was found is that of the sum at all levels.
    pub(super) fn knows(&self, level: f64) -> bool {
        (level > self.bends[0].0 || level == 0.0) && (level < self.ends || self.ends == f64::INFINITY)
    }

    /// The largest level at which the sum is at most `volume`: infinity if the sum never exceeds it, zero if it exceeds
    /// it at all levels.
    pub(super) fn level(&self, volume: f64) -> f64 {
        if volume == f64::INFINITY {
            return f64::INFINITY;
        }
        let below = self.bends.partition_point(|(_, sum)| *sum <= volume);
        let Some(last) = below.checked_sub(1) else { return self.bends[0].0 };
        let here = self.lines[last];
        let next = self.bends.get(below).map_or(self.ends, |(level, _)| *level);
        if here.filling == 0 {
            return next;
        }
        let mut left = Double::from(volume);
        left.subtract(here.fixed);
        left.divide(here.slope).value().max(self.bends[last].0).min(next)
    }

    /// [`level`](Self::level) for the sum and one more vessel without a top, of which the sum already contains the
    /// volume `there`, independent of the level: correct for levels at which that one is at its top.
    pub(super) fn level_with(&self, volume: f64, weight: f64, floor: f64, there: f64) -> f64 {
        let volume_beside = volume + there;
        if volume_beside == f64::INFINITY {
            return f64::INFINITY;
        }
        let is_below = |&(level, sum): &(f64, f64)| sum + floor.max(weight * level) <= volume_beside;
        // Bisection without branches that depend on the data.
        let (mut last, mut count) = (0, self.bends.len());
        if !is_below(&self.bends[0]) {
            return self.bends[0].0;
        }
        while count > 1 {
            let half = count / 2;
            last = if is_below(&self.bends[last + half]) { last + half } else { last };
            count -= half;
        }
        let here = self.lines[last];
        let next = self.bends.get(last + 1).map_or(self.ends, |(level, _)| *level);
        let mut left = Double::from(volume);
        left.subtract(here.fixed);
        left.add(there);
        // Up to the floor the line is below the true sum: there the vessel does not depend on the level.
        let level = left.value() / (here.slope.value() + weight);
        level.max(self.bends[last].0).min(next)
    }
}

/// The line at the start of a range, and the steps within the range with their order.
fn steps(range: &Range<f64>, vessels: impl Iterator<Item = Vessel>) -> (Line, Vec<Step>, Vec<StepOrder>) {
    let mut line = Line { fixed: Double::ZERO, slope: Double::ZERO, filling: 0 };
    let count = if *range == (0.0..f64::INFINITY) { vessels.size_hint().0 } else { 0 };
    let (mut steps, mut order) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for Vessel { floor, top, weight } in vessels {
        let (begins, ends) = (floor / weight, top / weight);
        if top <= floor || ends <= range.start {
            line.fixed.add(top);
            continue;
        }
        // Most vessels have no floor: they fill from level zero.
        let is_filling = floor <= 0.0 || begins <= range.start;
        if is_filling {
            line.slope.add(weight);
            line.filling += 1;
        } else {
            line.fixed.add(floor);
            if begins < range.end {
                order.push(StepOrder::new(begins, false, steps.len()));
                steps.push(Step { fixed: -floor, weight });
            }
        }
        if ends < range.end {
            order.push(StepOrder::new(ends, true, steps.len()));
            steps.push(Step { fixed: top, weight: -weight });
        }
    }
    order.sort_unstable_by_key(|turn| turn.key);
    (line, steps, order)
}

/// The level of a step.
#[derive(Clone, Copy, Debug)]
struct StepOrder {
    /// Sorts by level, then starts before ends. The bits of non-negative numbers have the order of the numbers,
    /// including zero, and integers sort faster.
    key: u64,
    place: u32,
}

impl StepOrder {
    fn new(level: f64, is_end: bool, place: usize) -> Self {
        Self { key: level.to_bits() << 1 | u64::from(is_end), place: place as u32 }
    }

    fn level(self) -> f64 {
        f64::from_bits(self.key >> 1)
    }
}
