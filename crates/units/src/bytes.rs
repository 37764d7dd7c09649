//! A size in bytes.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use crate::number::{self, Meant};
use crate::{ParseError, ParseProblem};

/// A size in whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits.
    pub fn as_bits_f64(self) -> f64 {
        self.0 as f64 * 8.0
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("a size of at most 2^64 bytes"))
    }
}

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl FromStr for Bytes {
    type Err = ParseError;

    /// "1000 B", "1.5 kB", "64 KiB"; k M G T decimal, Ki Mi Gi Ti binary. Part of a byte is an error.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const MEANT: Meant = Meant { quantity: "size", example: "1.5 GB" };
        let (number, unit) = number::split(text, MEANT)?;
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| MEANT.error(text, ParseProblem::UnknownUnit(unit.to_owned())))?;
        number::whole(number, *factor, text, MEANT).map(Self)
    }
}

impl fmt::Display for Bytes {
    /// Prints the value in the largest decimal unit of which it is at least one; `{:.2}` rounds, `{}` is exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = UNITS[..5].iter().rev().copied().find(|(_, factor)| self.0 >= *factor).unwrap_or(UNITS[0]);
        if let Some(places) = f.precision() {
            return write!(f, "{:.places$} {unit}", self.0 as f64 / factor as f64);
        }
        write!(f, "{} {unit}", number::decimal(self.0, factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parse__decimal_and_binary_units() {
        for (text, bytes) in [("1000 B", 1_000), ("1.5kB", 1_500), ("64 KiB", 65_536), ("1.5 GB", 1_500_000_000)] {
            assert_eq!(text.parse::<Bytes>().map(Bytes::get), Ok(bytes), "{text}");
        }
        assert_eq!("0.5 B".parse::<Bytes>().unwrap_err().problem, ParseProblem::TooFine);
        assert_eq!("1 Kb".parse::<Bytes>().unwrap_err().problem, ParseProblem::UnknownUnit("Kb".into()));
        assert_eq!("20000000 TB".parse::<Bytes>().unwrap_err().problem, ParseProblem::TooLarge);
    }

    proptest! {
        #[test]
        fn display__reads_back_to_the_same_size(bytes: u64) {
            let size = Bytes::new(bytes);
            prop_assert_eq!(size.to_string().parse::<Bytes>().unwrap(), size);
        }
    }
}
