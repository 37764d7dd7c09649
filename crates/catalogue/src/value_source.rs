//! Source of a claim's expected value, and the form in which it is stated.

use serde::{Deserialize, Serialize};

/// Source of an expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueSource {
    /// Printed in the paper, as a number, an order or words, and not used to set up the experiment.
    Paper,
    /// Printed in the paper, and used for calibration: a parameter that the paper does not state was chosen to
    /// reproduce it.
    Calibrated,
    /// A closed form that stands for a curve without printed numbers.
    #[serde(rename = "closed form")]
    ClosedForm,
    /// Follows from the paper's algorithm, not printed.
    Derived,
    /// An independent exact fluid model of the same rule.
    Reference,
    /// Exact arithmetic or the global algorithm.
    Arithmetic,
    /// Our own: suggested by the paper's text without a number.
    Ours,
}

impl ValueSource {
    /// Its name in the data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Calibrated => "calibrated",
            Self::ClosedForm => "closed form",
            Self::Derived => "derived",
            Self::Reference => "reference",
            Self::Arithmetic => "arithmetic",
            Self::Ours => "ours",
        }
    }
}

/// Form in which a value is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A number, or a bound that is printed as a number.
    Number,
    /// An order of sessions or variants.
    Order,
    /// Words without a number, such as "fully used".
    Words,
}
