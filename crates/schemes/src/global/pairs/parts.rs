//! Sessions and resources of the lambda network.

use super::super::double::Double;

/// Stands for an infinite capacity in bit/s, so that subtracting from it gives a number.
pub(super) const BOUNDLESS: f64 = 1e300;

/// Above all levels of finite capacities (at most 1e100 bit/s), below those of [`BOUNDLESS`] ones (at least 1e300 /
/// 2^32).
const BOUNDLESS_LEVEL: f64 = 1e200;

/// An undetermined session: the resources at its ends and its demand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edge<D> {
    pub(super) ends: [u32; 2],
    pub(super) demand: D,
}

/// A demand that may be infinite, or () if all demands are infinite, so that they cost no memory and time.
pub(super) trait OptionalDemand: Copy + Default {
    /// Whether some demands are finite.
    const FINITE: bool;
    /// The number of a session, stored only if its demand may determine it.
    type Number: Copy;

    fn bps(self) -> f64;
    fn number(session: usize) -> Self::Number;
    fn index(number: Self::Number) -> usize;
}

impl OptionalDemand for () {
    const FINITE: bool = false;
    type Number = ();

    #[inline]
    fn bps(self) -> f64 {
        f64::INFINITY
    }

    fn number(_: usize) {}

    fn index((): ()) -> usize {
        0
    }
}

impl OptionalDemand for f64 {
    const FINITE: bool = true;
    type Number = u32;

    #[inline]
    fn bps(self) -> f64 {
        self
    }

    #[inline]
    fn number(session: usize) -> u32 {
        session as u32
    }

    #[inline]
    fn index(number: u32) -> usize {
        number as usize
    }
}

/// Remaining capacity of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairShare {
    /// Capacity minus the rates of the determined sessions; once the resource is filled, its level.
    pub(super) remaining: Double,
    /// Number of the undetermined sessions.
    pub(super) undetermined: u32,
}

impl PairShare {
    /// The level to about a unit in the last place, but never below `before`: only rounding could lower it.
    #[inline]
    pub(super) fn level(&self, before: f64) -> f64 {
        // Clears the sign, even of zero: `max` may return the -0.0.
        before.max(self.remaining.value() / f64::from(self.undetermined)).abs()
    }

    /// The level in twice the precision. It may be slightly below the level by which the resource was found to be
    /// lowest, but no more: capacity that is missing because sessions were determined at a neighbour's level, equal
    /// except for rounding, must not be taken from the few that remain.
    #[inline]
    pub(super) fn exact_level(&self, before: f64) -> Double {
        let level = self.remaining.divide_by_count(self.undetermined);
        // Not `>=`: the result must not be -0.0, whose sign would count as a mark.
        if level.value() > before * (1.0 - 2.0 * f64::EPSILON) { level } else { Double::from(before) }
    }

    /// Removes a session that was determined elsewhere.
    #[inline]
    pub(super) fn take(&mut self, rate: Double) {
        self.remaining.subtract(rate);
        self.undetermined -= 1;
    }
}

/// A level, or infinity for the level of an unlimited resource.
#[inline]
pub(super) fn finite(level: f64) -> f64 {
    if level > BOUNDLESS_LEVEL { f64::INFINITY } else { level }
}
