//! Quantities with units in the experiments' data.

use std::str::FromStr;

use fairwave_units::ParseError;
use serde::{Deserialize, Deserializer, de};

/// A quantity written as a string with its unit, as in scenario files: "60 ms", "10 Gb/s", "1500 B".
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity<T>(pub(crate) T);

impl<'de, T: FromStr<Err = ParseError>> Deserialize<'de> for Quantity<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}
