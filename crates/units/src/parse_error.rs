//! Why a text is not the quantity that was asked for.

use std::fmt;

/// A text that is not a quantity: which text, which quantity was meant, what is wrong and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text as it was given.
    pub text: String,
    /// What was meant: "rate", "time" or "size".
    pub quantity: &'static str,
    /// What is wrong with it.
    pub problem: ParseProblem,
    /// A quantity that would be accepted.
    pub example: &'static str,
}

/// What is wrong with a quantity's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseProblem {
    /// There is no number in front of the unit.
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
    /// How to mend it, in one line: an accepted form.
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
