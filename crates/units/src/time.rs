//! Instants and spans of time, in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

use crate::number::{self, Meant};
use crate::{ParseError, ParseProblem};

/// An instant: nanoseconds since the start of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in nanoseconds, up to 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// The latest instant.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds after the start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `secs` whole seconds after the start.
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs).0)
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This instant plus `span`; `None` if out of range.
    #[inline]
    pub const fn checked_add(self, span: Duration) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// This instant plus `span`, at most [`Time::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Span since `earlier`; zero if `earlier` is not earlier.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// An empty span.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds.
    ///
    /// # Panics
    /// Beyond 584 years.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.checked_mul(1_000).expect("a span of at most 584 years"))
    }

    /// `millis` milliseconds.
    ///
    /// # Panics
    /// Beyond 584 years.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.checked_mul(1_000_000).expect("a span of at most 584 years"))
    }

    /// `secs` seconds.
    ///
    /// # Panics
    /// Beyond 584 years.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.checked_mul(1_000_000_000).expect("a span of at most 584 years"))
    }

    /// The span nearest to `secs`; `None` if that is NaN, below zero or beyond 584 years.
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        let nanos = (secs * 1e9).round();
        // 2^64 as f64; no range contains NaN.
        (0.0..18_446_744_073_709_551_616.0).contains(&nanos).then_some(Self(nanos as u64))
    }

    /// Nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Half of the span, rounded down, such as the one-way delay of an RTT.
    #[inline]
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// True for an empty span.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Sum of both spans; `None` beyond 584 years.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        self.checked_add(span).expect("time stays within 584 years")
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Duration) -> Self {
        Self(self.0.checked_sub(span.0).expect("no time before the start"))
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("a span of at most 584 years")
    }
}

impl Sub for Duration {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("no span below zero"))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0.checked_mul(times).expect("a span of at most 584 years"))
    }
}

const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl FromStr for Duration {
    type Err = ParseError;

    /// Parses "60 ms", "1.5 s", "10us"; units ns, us, ms, s, min, h. A value that is not a whole number of nanoseconds
    /// is an error.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const MEANT: Meant = Meant { quantity: "time", example: "60 ms" };
        let (number, unit) = number::split(text, MEANT)?;
        let unit = if unit == "µs" || unit == "μs" { "us" } else { unit };
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| MEANT.error(text, ParseProblem::UnknownUnit(unit.to_owned())))?;
        number::whole(number, *factor, text, MEANT).map(Self)
    }
}

impl FromStr for Time {
    type Err = ParseError;

    /// As a [`Duration`] since the start.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse::<Duration>().map(|span| Self(span.0))
    }
}

impl fmt::Display for Duration {
    /// Prints the value in the largest of ns, us, ms, s of which it is at least one; `{:.2}` rounds, `{}` is exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) =
            UNITS[..4].iter().rev().copied().find(|(_, factor)| self.0 >= *factor).unwrap_or(("s", 1_000_000_000));
        if let Some(places) = f.precision() {
            return write!(f, "{:.places$} {unit}", self.0 as f64 / factor as f64);
        }
        write!(f, "{} {unit}", number::decimal(self.0, factor))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parse__is_exact() {
        for (text, nanos) in [
            ("60 ms", 60_000_000),
            ("1.5s", 1_500_000_000),
            ("10 us", 10_000),
            ("10 µs", 10_000),
            ("0 s", 0),
            ("2 min", 120_000_000_000),
            ("1e-3 s", 1_000_000),
            ("0.000000001 s", 1),
            ("18446744073.709551615 s", u64::MAX),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::as_nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn parse__mistakes_are_named() {
        let problem = |text: &str| text.parse::<Duration>().unwrap_err().problem;
        assert_eq!(problem("60"), ParseProblem::NoUnit);
        assert_eq!(problem("60 sec"), ParseProblem::UnknownUnit("sec".into()));
        assert_eq!(problem("-1 s"), ParseProblem::Negative);
        assert_eq!(problem("0.1 ns"), ParseProblem::TooFine);
        assert_eq!(problem("18446744074 s"), ParseProblem::TooLarge);
        assert_eq!(problem("1e300 s"), ParseProblem::TooLarge);
        assert_eq!(problem(""), ParseProblem::NotANumber);
    }

    #[test]
    #[should_panic(expected = "time stays within 584 years")]
    fn add__overflow_is_no_wrap() {
        let _ = Time::MAX + Duration::from_nanos(1);
    }

    #[test]
    fn from_secs_f64__rejects_invalid_spans() {
        assert_eq!(Duration::from_secs_f64(0.06), Some(Duration::from_millis(60)));
        assert_eq!(Duration::from_secs_f64(-1.0), None);
        assert_eq!(Duration::from_secs_f64(f64::NAN), None);
        assert_eq!(Duration::from_secs_f64(1e11), None);
    }

    proptest! {
        #[test]
        fn display__reads_back_to_the_same_span(nanos: u64) {
            let span = Duration::from_nanos(nanos);
            prop_assert_eq!(span.to_string().parse::<Duration>().unwrap(), span);
        }

        #[test]
        fn parse__never_panics(text in "\\PC{0,30}") {
            let _ = text.parse::<Duration>();
        }
    }
}
