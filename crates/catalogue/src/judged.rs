//! A claim with its verdict, and how its values are written.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::value_source::Form;
use crate::verdict::Verdict;

/// One claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The claim in a few words.
    pub what: String,
    /// The value of the paper (or of the named source), in `unit`.
    pub paper: ClaimValue,
    /// Our value, in `unit`: of several values the farthest from the claim.
    pub ours: ClaimValue,
    /// Unit of both; empty for pure numbers.
    pub unit: &'static str,
    /// Required precision: "3 %", "at most", "strictly increasing".
    pub tolerance: String,
    /// Source of the expected value: "paper", "calibrated", "closed form", "derived", "reference", "arithmetic" or
    /// "ours".
    pub source: &'static str,
    /// Form in which it is stated: "number", "order" or "words".
    pub form: Form,
    /// Whether the expectation is met.
    pub holds: bool,
    /// The resulting verdict.
    pub verdict: Verdict,
    /// Our choice without which it would not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The reason why it does not hold, if known.
    pub reason: Option<String>,
    /// A value of the same quantity from an independent source, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referee: Option<f64>,
    /// The proof against the printed value and its result, for a claim with `refuted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl Claim {
    /// The verdict with its condition: "holds, if windows may be fractions of a packet".
    pub fn verdict_in_words(&self) -> String {
        let verdict = self.verdict.name();
        self.condition.as_ref().map_or_else(|| verdict.to_owned(), |condition| format!("{verdict}, if {condition}"))
    }
}

/// The proof that the printed value is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The correct value, and the reason.
    pub why: String,
    /// The checks that prove it; each of them can fail.
    pub checks: Vec<Claim>,
}

/// A number, or words.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ClaimValue {
    /// A number; an infinite time was never reached.
    Number(f64),
    /// Words.
    Text(String),
}

impl Serialize for ClaimValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) if number.is_finite() => serializer.serialize_f64(*number),
            other => serializer.collect_str(other),
        }
    }
}

impl fmt::Display for ClaimValue {
    /// Five significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&digits(*number)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A number with five significant digits, without trailing zeros.
pub(crate) fn digits(number: f64) -> String {
    if number.is_nan() {
        return "none".to_owned();
    }
    if number.is_infinite() {
        return "never".to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        let text = format!("{number:.4e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trimmed(mantissa));
    }
    let whole = if size < 1.0 { 0 } else { size.log10().floor() as usize + 1 };
    trimmed(&format!("{number:.*}", 5_usize.saturating_sub(whole))).to_owned()
}

/// A number with three significant digits, for labels.
pub(crate) fn brief(number: f64) -> String {
    if !number.is_finite() || number == 0.0 {
        return digits(number);
    }
    let unit = 10f64.powi(number.abs().log10().floor() as i32 - 2);
    digits((number / unit).round() * unit)
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits__keeps_five_and_drops_zeros() {
        for (number, text) in [
            (3_388.392_857, "3388.4"),
            (0.7, "0.7"),
            (100.0, "100"),
            (1_000_000.0, "1000000"),
            (4.166_666e8, "4.1667e8"),
            (2.4e-9, "2.4e-9"),
            (0.0, "0"),
            (f64::INFINITY, "never"),
        ] {
            assert_eq!(digits(number), text);
        }
    }

    #[test]
    fn brief__keeps_three() {
        for (number, text) in [(127.23, "127"), (6.684, "6.68"), (0.123_45, "0.123"), (0.0, "0"), (2500.4, "2500")] {
            assert_eq!(brief(number), text);
        }
    }

    #[test]
    fn value__that_is_no_number_in_json_is_a_word() {
        assert_eq!(serde_json::to_string(&ClaimValue::Number(f64::INFINITY)).unwrap(), "\"never\"");
        assert_eq!(serde_json::to_string(&ClaimValue::Number(1.5)).unwrap(), "1.5");
    }
}
