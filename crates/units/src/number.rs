//! Numbers with a unit behind them, and exact decimal scaling.

use crate::parse_error::{ParseError, ParseProblem};

/// The kind of quantity that a text is parsed as, for error messages.
#[derive(Clone, Copy)]
pub(crate) struct Meant {
    pub(crate) quantity: &'static str,
    pub(crate) example: &'static str,
}

impl Meant {
    pub(crate) fn error(self, text: &str, problem: ParseProblem) -> ParseError {
        ParseError { text: shorten(text), quantity: self.quantity, problem, example: self.example }
    }
}

/// Splits "1.5 Mb/s" into the number's text and the unit's; the space between is optional.
pub(crate) fn split(text: &str, meant: Meant) -> Result<(&str, &str), ParseError> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(meant.error(text, ParseProblem::Negative));
    }
    let end = number_end(trimmed);
    let number = &trimmed[..end];
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(meant.error(text, ParseProblem::NotANumber));
    }
    match trimmed[end..].trim_start() {
        "" => Err(meant.error(text, ParseProblem::NoUnit)),
        unit => Ok((number, unit)),
    }
}

/// Length of the number at the start of a text: digits, one point, and an exponent if digits follow the `e`.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits(usize::from(bytes.first() == Some(&b'+')));
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            end = after;
        }
    }
    end
}

/// `number` x `factor` as a whole number, exactly; `factor` is a whole number of the smallest units.
pub(crate) fn whole(number: &str, factor: u64, text: &str, meant: Meant) -> Result<u64, ParseError> {
    let bad = |problem| meant.error(text, problem);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().map_err(|_| bad(ParseProblem::TooLarge))?),
        None => (number, 0),
    };
    let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
    let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let frac = frac.trim_end_matches('0');
    let digits = format!("{int}{frac}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let mut value = digits
        .parse::<u128>()
        .ok()
        .and_then(|value| value.checked_mul(u128::from(factor)))
        .ok_or_else(|| bad(if frac.len() > 20 { ParseProblem::TooFine } else { ParseProblem::TooLarge }))?;
    let places = i32::try_from(frac.len()).map_err(|_| bad(ParseProblem::TooFine))?;
    let mut scale = exponent.checked_sub(places).ok_or_else(|| bad(ParseProblem::TooFine))?;
    while scale > 0 {
        value = value.checked_mul(10).ok_or_else(|| bad(ParseProblem::TooLarge))?;
        scale -= 1;
    }
    while scale < 0 {
        if value % 10 != 0 {
            return Err(bad(ParseProblem::TooFine));
        }
        value /= 10;
        scale += 1;
    }
    u64::try_from(value).map_err(|_| bad(ParseProblem::TooLarge))
}

/// `number` x 10^`exponent` as the nearest f64.
pub(crate) fn scaled(number: &str, exponent: i32, text: &str, meant: Meant) -> Result<f64, ParseError> {
    let (mantissa, own) = match number.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().map_err(|_| meant.error(text, ParseProblem::TooLarge))?),
        None => (number, 0),
    };
    let value: f64 = format!("{mantissa}e{}", i64::from(own) + i64::from(exponent))
        .parse()
        .map_err(|_| meant.error(text, ParseProblem::NotANumber))?;
    if value.is_finite() { Ok(value) } else { Err(meant.error(text, ParseProblem::TooLarge)) }
}

/// The shortest decimal text of `value` x 10^-`exponent` that reads back to the same value.
pub(crate) fn shifted(value: f64, exponent: i32) -> String {
    let scientific = format!("{value:e}");
    let (mantissa, own) = scientific.split_once('e').expect("format {:e} always prints an exponent");
    let own: i32 = own.parse().expect("format {:e} prints a whole exponent");
    let digits = mantissa.replace('.', "");
    let point = own - exponent + 1;
    let length = i32::try_from(digits.len()).expect("an f64 has few digits");
    if point <= 0 {
        format!("0.{}{digits}", "0".repeat(usize::try_from(-point).expect("point <= 0")))
    } else if point >= length {
        format!("{digits}{}", "0".repeat(usize::try_from(point - length).expect("point >= length")))
    } else {
        let (int, frac) = digits.split_at(usize::try_from(point).expect("point > 0"));
        format!("{int}.{frac}")
    }
}

/// `value` / `factor` as an exact decimal text; `factor` is a power of ten.
pub(crate) fn decimal(value: u64, factor: u64) -> String {
    let (int, rest) = (value / factor, value % factor);
    if rest == 0 {
        return int.to_string();
    }
    let places = factor.ilog10() as usize;
    let frac = format!("{rest:0places$}");
    format!("{int}.{}", frac.trim_end_matches('0'))
}

/// At most 40 characters of a text, to keep error messages readable.
fn shorten(text: &str) -> String {
    let mut head: String = text.chars().take(40).collect();
    if head.len() < text.len() {
        head.push('…');
    }
    head
}
