//! Names with ranges: "s{1..5}" stands for s1 ... s5.

use std::fmt::Write as _;

use super::mistake::ReadResult;
use super::reader::Field;
use crate::limits;

/// A name, or a range of names in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    parts: Vec<PatternPart>,
    len: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum PatternPart {
    Plain(Box<str>),
    /// Consecutive numbers: the first one, how many there are, and the minimum number of digits.
    Range {
        first: u64,
        count: u64,
        digits: usize,
    },
}

const EXAMPLE: &str = "a range is written \"s{1..5}\"";

impl Pattern {
    /// Reads a name or a range of names.
    pub(crate) fn read(field: Field<'_>) -> ReadResult<Self> {
        let text = field.text()?;
        if text.is_empty() {
            return Err(field.wrong("must not be empty", "for instance name = \"s1\""));
        }
        if text.len() > limits::NAME_BYTES {
            return Err(field.wrong(format!("is longer than {} bytes", limits::NAME_BYTES), "choose a shorter one"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (plain, tail) = rest.split_at(open);
            push_plain(&mut parts, plain, field)?;
            let Some((range, after)) = tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) else {
                return Err(field.wrong("has an unmatched brace", EXAMPLE));
            };
            parts.push(range_part(range).ok_or_else(|| field.wrong(format!("has no range in {{{range}}}"), EXAMPLE))?);
            rest = after;
        }
        push_plain(&mut parts, rest, field)?;
        let len = parts
            .iter()
            .try_fold(1_u64, |len, part| len.checked_mul(part.count()))
            .filter(|len| *len <= limits::ELEMENTS)
            .ok_or_else(|| {
                field.wrong(
                    format!("makes more than {} names", limits::ELEMENTS),
                    "check for a range that is larger than intended",
                )
            })?;
        Ok(Self { parts, len })
    }

    /// Number of names in the range, at least one.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Name number `index`, from zero; the last range varies fastest.
    pub(crate) fn name(&self, index: u64) -> String {
        let mut name = String::new();
        self.write(index, &mut name);
        name
    }

    /// Appends name number `index`.
    pub(crate) fn write(&self, index: u64, into: &mut String) {
        let mut below = self.len;
        let mut index = index;
        for part in &self.parts {
            match part {
                PatternPart::Plain(text) => into.push_str(text),
                PatternPart::Range { first, count, digits } => {
                    below /= count;
                    let number = first + index / below;
                    index %= below;
                    // Writing into a String cannot fail.
                    let _ = write!(into, "{number:0digits$}");
                }
            }
        }
    }
}

impl PatternPart {
    fn count(&self) -> u64 {
        match self {
            Self::Plain(_) => 1,
            Self::Range { count, .. } => *count,
        }
    }
}

fn push_plain(parts: &mut Vec<PatternPart>, text: &str, field: Field<'_>) -> ReadResult<()> {
    let allowed = |c: char| c.is_alphanumeric() || "-_.#+/>@~".contains(c);
    if let Some(bad) = text.chars().find(|c| !allowed(*c)) {
        return Err(field.wrong(
            format!("must not contain '{}'", bad.escape_debug()),
            "a name may contain letters, digits and - _ . # + / > @ ~",
        ));
    }
    if !text.is_empty() {
        parts.push(PatternPart::Plain(text.into()));
    }
    Ok(())
}

fn range_part(text: &str) -> Option<PatternPart> {
    let (first, last) = text.split_once("..")?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (low, high) = (number(first)?, number(last)?);
    let count = high.checked_sub(low)? + 1;
    let digits = if first.starts_with('0') && first.len() > 1 { first.len() } else { 1 };
    Some(PatternPart::Range { first: low, count, digits })
}
