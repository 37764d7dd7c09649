//! Errors of parsing a quantity.

use std::fmt;

/// A text that is not a quantity: the text, the expected quantity, the problem and an accepted example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text as it was given.
    pub text: String,
    /// Expected quantity: "rate", "time" or "size".
    pub quantity: &'static str,
    /// The problem.
    pub problem: ParseProblem,
    /// A quantity that would be accepted.
    pub example: &'static str,
}

/// The reason why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseProblem {
    /// No number precedes the unit.
    NotANumber,
    /// The number is below zero.
    Negative,
    /// The unit is missing.
    NoUnit,
    /// The unit is not one of this quantity.
    UnknownUnit(String),
    /// The number is finer than the quantity can hold (one nanosecond, one byte).
    TooFine,
    /// The number is larger than the quantity can hold.
    TooLarge,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, quantity, problem, .. } = self;
        let text = text.escape_debug();
        match problem {
            ParseProblem::NotANumber => write!(f, "\"{text}\" is not a {quantity}: no number before the unit"),
            ParseProblem::Negative => write!(f, "\"{text}\" is not a {quantity}: it must not be below zero"),
            ParseProblem::NoUnit => write!(f, "\"{text}\" is not a {quantity}: the unit is missing"),
            ParseProblem::UnknownUnit(unit) => {
                write!(f, "\"{text}\" is not a {quantity}: unknown unit \"{}\"", unit.escape_debug())
            }
            ParseProblem::TooFine => write!(f, "\"{text}\" is finer than a {quantity} can be"),
            ParseProblem::TooLarge => write!(f, "\"{text}\" is larger than a {quantity} can be"),
        }
    }
}

impl ParseError {
    /// An accepted form, in one line.
    pub fn hint(&self) -> String {
        match &self.problem {
            ParseProblem::UnknownUnit(unit) if self.quantity == "rate" && unit.ends_with("ps") => {
                format!("write rates as \"{}\": b = bit, B = byte, /s", self.example)
            }
            _ => format!("write it like \"{}\"", self.example),
        }
    }
}

impl std::error::Error for ParseError {}
