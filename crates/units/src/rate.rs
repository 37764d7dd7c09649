//! A rate in bits per second.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul, Sub};
use std::str::FromStr;

use crate::number::{self, Meant};
use crate::{Bytes, Duration, ParseError, ParseProblem};

/// A rate in bits per second: finite and not below zero. "Unlimited" is `Option<Rate>::None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Rate(f64);

/// A number that is not a rate: NaN, infinite or below zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InvalidRate(pub f64);

impl Rate {
    /// Zero bits per second.
    pub const ZERO: Self = Self(0.0);

    /// A rate of `bps` bits per second.
    pub fn from_bps(bps: f64) -> Result<Self, InvalidRate> {
        if (0.0..f64::INFINITY).contains(&bps) { Ok(Self(bps)) } else { Err(InvalidRate(bps)) }
    }

    /// The rate nearest to a calculated value: NaN and negative values become zero, infinity the largest rate. For
    /// inner loops in which rounding may yield a value slightly below zero.
    #[inline]
    #[expect(clippy::manual_clamp, reason = "clamp lets NaN through; max takes the other operand")]
    pub fn nearest_bps(bps: f64) -> Self {
        Self(bps.max(0.0).min(f64::MAX))
    }

    /// `mbps` megabits (10^6 bits) per second; for constants.
    ///
    /// # Panics
    /// If `mbps` is not a rate.
    pub fn mbps(mbps: f64) -> Self {
        Self::from_bps(mbps * 1e6).expect("a constant rate is finite and not below zero")
    }

    /// `gbps` gigabits (10^9 bits) per second; for constants.
    ///
    /// # Panics
    /// If `gbps` is not a rate.
    pub fn gbps(gbps: f64) -> Self {
        Self::from_bps(gbps * 1e9).expect("a constant rate is finite and not below zero")
    }

    /// Bits per second.
    #[inline]
    pub const fn as_bps(self) -> f64 {
        self.0
    }

    /// Megabits per second.
    pub fn as_mbps(self) -> f64 {
        self.0 / 1e6
    }

    /// The smaller of two rates.
    #[inline]
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The larger of two rates.
    #[inline]
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Time that `bytes` take at this rate, rounded up to a nanosecond; `None` at rate zero or beyond a `Duration`.
    pub fn time_for(self, bytes: Bytes) -> Option<Duration> {
        let nanos = (bytes.get() as f64 * 8e9 / self.0).ceil();
        // 2^64 as f64; NaN (0 bytes at rate 0) fails the comparison too.
        (nanos < 18_446_744_073_709_551_616.0).then(|| Duration::from_nanos(nanos as u64))
    }

    const MEANT: Meant = Meant { quantity: "rate", example: "500 Mb/s" };
}

impl Add for Rate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::nearest_bps(self.0 + other.0)
    }
}

/// The difference, at least zero.
impl Sub for Rate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::nearest_bps(self.0 - other.0)
    }
}

impl Mul<f64> for Rate {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::nearest_bps(self.0 * factor)
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// "500 Mb/s", "1.5 GB/s"; b = bit, B = byte, k M G T decimal, "/s" required.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number::split(text, Self::MEANT)?;
        let unknown = || Self::MEANT.error(text, ParseProblem::UnknownUnit(unit.to_owned()));
        let symbol = unit.strip_suffix("/s").ok_or_else(unknown)?;
        let (prefix, bytes) = match symbol.strip_suffix('b') {
            Some(prefix) => (prefix, false),
            None => (symbol.strip_suffix('B').ok_or_else(unknown)?, true),
        };
        let exponent = match prefix {
            "" => 0,
            "k" => 3,
            "M" => 6,
            "G" => 9,
            "T" => 12,
            _ => return Err(unknown()),
        };
        let value = number::scaled(number, exponent, text, Self::MEANT)?;
        let bps = if bytes { value * 8.0 } else { value };
        Self::from_bps(bps).map_err(|_| Self::MEANT.error(text, ParseProblem::TooLarge))
    }
}

impl fmt::Display for Rate {
    /// Prints the rate in the largest unit of which it is at least one; `{:.2}` rounds, `{}` reads back to the same
    /// rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (exponent, scale, unit) = match self.0 {
            bps if bps >= 1e12 => (12, 1e12, "Tb/s"),
            bps if bps >= 1e9 => (9, 1e9, "Gb/s"),
            bps if bps >= 1e6 => (6, 1e6, "Mb/s"),
            bps if bps >= 1e3 => (3, 1e3, "kb/s"),
            _ => (0, 1.0, "b/s"),
        };
        match f.precision() {
            Some(places) => write!(f, "{:.places$} {unit}", self.0 / scale),
            None => write!(f, "{} {unit}", number::shifted(self.0, exponent)),
        }
    }
}

impl fmt::Display for InvalidRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s is not a rate: it must be finite and not below zero", self.0)
    }
}

impl std::error::Error for InvalidRate {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parse__units_scale_decimally() {
        for (text, bps) in [
            ("500 Mb/s", 5e8),
            ("700Mb/s", 7e8),
            ("1.5 GB/s", 1.2e10),
            ("0 b/s", 0.0),
            ("0.1 Tb/s", 1e11),
            ("2.5e2 kb/s", 2.5e5),
        ] {
            assert_eq!(text.parse::<Rate>().map(Rate::as_bps), Ok(bps), "{text}");
        }
    }

    #[test]
    fn parse__mistakes_are_named() {
        let problem = |text: &str| text.parse::<Rate>().unwrap_err().problem;
        assert_eq!(problem("500"), ParseProblem::NoUnit);
        assert_eq!(problem("500 Mb"), ParseProblem::UnknownUnit("Mb".into()));
        assert_eq!(problem("500 Mbps"), ParseProblem::UnknownUnit("Mbps".into()));
        assert_eq!(problem("-1 Mb/s"), ParseProblem::Negative);
        assert_eq!(problem("fast"), ParseProblem::NotANumber);
        assert_eq!(problem("NaN Mb/s"), ParseProblem::NotANumber);
        assert_eq!(problem("1e400 Mb/s"), ParseProblem::TooLarge);
        assert_eq!(problem("1e99999999999 Mb/s"), ParseProblem::TooLarge);
    }

    #[test]
    fn nearest_bps__is_always_a_rate() {
        assert_eq!(Rate::nearest_bps(f64::NAN), Rate::ZERO);
        assert_eq!(Rate::nearest_bps(-1e-9), Rate::ZERO);
        assert_eq!(Rate::nearest_bps(f64::INFINITY).as_bps(), f64::MAX);
    }

    #[test]
    fn time_for__rounds_up_and_knows_never() {
        assert_eq!(Rate::mbps(500.0).time_for(Bytes::new(1040)), Some(Duration::from_nanos(16_640)));
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), None);
    }

    proptest! {
        #[test]
        fn display__reads_back_to_the_same_rate(bps in 0.0..1e18f64) {
            let rate = Rate::from_bps(bps).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        #[test]
        fn parse__never_panics(text in "\\PC{0,30}") {
            let _ = text.parse::<Rate>();
        }
    }
}
