//! How much water a row of vessels holds at each level: what filling, settling and capping have in common.

use crate::global::double::Double;

/// One vessel: at level L it holds `max(floor, weight x L)`, but no more than `top`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vessel {
    /// What it holds at level zero.
    pub(super) floor: f64,
    /// The most that it holds, infinity for no limit. A vessel with `top <= floor` always holds `top`.
    pub(super) top: f64,
    /// How fast it fills, above zero.
    pub(super) weight: f64,
}

/// Where the sum over all vessels changes its slope. From here to the next bend the sum is `fixed + slope x L`.
#[derive(Clone, Copy, Debug)]
struct Bend {
    level: f64,
    fixed: Double,
    slope: Double,
    /// How many vessels are filling: the slope of none is exactly zero, which a sum of rounded numbers is not.
    filling: usize,
}

/// The sum over all vessels as a function of the level: never falling, piecewise linear. One sort makes it, a binary
/// search reads it.
///
/// The running sums have twice the precision of f64, so that vessels of very different weights do not blur each other.
#[derive(Clone, Debug)]
pub(super) struct Water {
    bends: Vec<Bend>,
}

impl Water {
    pub(super) fn new(vessels: impl Iterator<Item = Vessel>) -> Self {
        let (mut fixed, mut steps) = (Double::ZERO, Vec::with_capacity(2 * vessels.size_hint().0));
        for vessel in vessels {
            fixed.add(vessel.floor.min(vessel.top));
            if vessel.top > vessel.floor {
                steps.push((vessel.floor / vessel.weight, -vessel.floor, vessel.weight));
                if vessel.top < f64::INFINITY {
                    steps.push((vessel.top / vessel.weight, vessel.top, -vessel.weight));
                }
            }
        }
        steps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(b.2.total_cmp(&a.2)));
        let mut bend = Bend { level: 0.0, fixed, slope: Double::ZERO, filling: 0 };
        let mut bends = Vec::with_capacity(steps.len() + 1);
        bends.push(bend);
        for (level, fixed, weight) in steps {
            bend.level = level;
            bend.fixed.add(fixed);
            bend.slope.add(weight);
            // Each vessel begins before it ends: ties are sorted so.
            bend.filling = if weight > 0.0 { bend.filling + 1 } else { bend.filling - 1 };
            if bend.filling == 0 {
                bend.slope = Double::ZERO;
            }
            bends.push(bend);
        }
        Self { bends }
    }

    /// The largest level at which the sum is at most `volume`: infinity if the sum never exceeds it, zero if it does
    /// so from the beginning.
    pub(super) fn level(&self, volume: f64) -> f64 {
        self.level_beside(volume, |_| 0.0, |_| (0.0, 0.0))
    }

    /// The same for the sum and a further term, which does not fall: its value at each bend, and what it adds to
    /// `fixed` and to the slope from that bend to the next.
    pub(super) fn level_beside(
        &self,
        volume: f64,
        value: impl Fn(f64) -> f64,
        line: impl Fn(f64) -> (f64, f64),
    ) -> f64 {
        if volume == f64::INFINITY {
            return f64::INFINITY;
        }
        let below = self.bends.partition_point(|bend| bend.value() + value(bend.level) <= volume);
        let Some(bend) = below.checked_sub(1).map(|last| self.bends[last]) else { return 0.0 };
        let (fixed, slope) = line(bend.level);
        if bend.filling == 0 && slope == 0.0 {
            return self.bends.get(below).map_or(f64::INFINITY, |next| next.level);
        }
        let (mut left, mut slopes) = (Double::from(volume), bend.slope);
        left.subtract(bend.fixed);
        left.subtract(Double::from(fixed));
        slopes.add(slope);
        let level = left.divide(slopes).value().max(bend.level);
        self.bends.get(below).map_or(level, |next| level.min(next.level))
    }
}

impl Bend {
    fn value(&self) -> f64 {
        self.fixed.value() + self.slope.value() * self.level
    }
}
