//! Units of claims.

/// Dimension of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Size,
    /// A pure number.
    Number,
}

/// A unit: its name, its dimension, and its size in bit/s, seconds, bytes or one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) dimension: Dimension,
    pub(crate) scale: f64,
}

impl Unit {
    /// The unit of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        UNITS.iter().find(|unit| unit.name == name).copied()
    }

    /// The known names, for messages.
    pub(crate) fn names() -> String {
        UNITS.iter().filter(|unit| !unit.name.is_empty()).map(|unit| unit.name).collect::<Vec<_>>().join(", ")
    }
}

const fn unit(name: &'static str, dimension: Dimension, scale: f64) -> Unit {
    Unit { name, dimension, scale }
}

const UNITS: &[Unit] = &[
    unit("", Dimension::Number, 1.0),
    unit("%", Dimension::Number, 0.01),
    unit("packets", Dimension::Number, 1.0),
    unit("RTT", Dimension::Number, 1.0),
    unit("draws", Dimension::Number, 1.0),
    unit("Mb/s", Dimension::Rate, 1e6),
    unit("Gb/s", Dimension::Rate, 1e9),
    unit("s", Dimension::Time, 1.0),
    unit("ms", Dimension::Time, 1e-3),
    unit("us", Dimension::Time, 1e-6),
    unit("h", Dimension::Time, 3600.0),
    unit("MB", Dimension::Size, 1e6),
];
