//! Quantities: how arguments are read, and how numbers are shown.

use std::str::FromStr;

use fairwave_units::{Bytes, Duration, ParseError, Rate, Time};

/// Largest weight of a session, so that sums of weights keep their precision.
const MAX_WEIGHT: f64 = 1e6;

/// A quantity on the command line.
pub(crate) fn quantity<T: FromStr<Err = ParseError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseError| format!("{error}; {}", error.hint()))
}

/// A rate above zero.
pub(crate) fn positive_rate(text: &str) -> Result<Rate, String> {
    let rate = quantity::<Rate>(text)?;
    if rate > Rate::ZERO { Ok(rate) } else { Err("must be above zero".into()) }
}

/// A bench of no time measures nothing.
pub(crate) fn positive_time(text: &str) -> Result<Duration, String> {
    let time = quantity::<Duration>(text)?;
    if time > Duration::ZERO { Ok(time) } else { Err("must be above zero".into()) }
}

/// A weight above zero.
pub(crate) fn weight(text: &str) -> Result<f64, String> {
    let weight: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if weight > 0.0 && weight <= MAX_WEIGHT {
        Ok(weight)
    } else {
        Err(format!("must be above 0 and at most {MAX_WEIGHT}"))
    }
}

/// `PATH=VALUE`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.trim().is_empty() => Ok((path.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected PATH=VALUE, such as options.alpha=0.05".into()),
    }
}

/// `A..B`.
pub(crate) fn window(text: &str) -> Result<(Time, Time), String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B, such as 100s..600s")?;
    let (from, to): (Time, Time) = (quantity(from)?, quantity(to)?);
    if from < to { Ok((from, to)) } else { Err("the second time must be after the first".into()) }
}

/// A rate with at least four significant digits.
pub(crate) fn rate(bps: f64) -> String {
    let rate = Rate::nearest_bps(bps);
    if rate == Rate::ZERO {
        return "0 b/s".into();
    }
    if bps < 1.0 {
        return "under 1 b/s".into();
    }
    let text = format!("{rate:.2}");
    // With one digit before the point another decimal is shown: 3.388 Gb/s instead of 3.39 Gb/s.
    if text.find('.') == Some(1) { format!("{rate:.3}") } else { text }
}

/// A round-trip time.
pub(crate) fn in_ms(rtt: Duration) -> String {
    let ms = rtt.as_secs_f64() * 1e3;
    if ms >= 1000.0 { format!("{rtt:.2}") } else { format!("{:.*} ms", usize::from(ms.fract() != 0.0), ms) }
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1000 { format!("{bytes} B") } else { format!("{:.1}", Bytes::new(bytes)) }
}

/// A span of time for people: "0:07", "1:02:03".
pub(crate) fn span(seconds: f64) -> String {
    // More than a hundred days is not a forecast.
    let seconds = seconds.min(8_640_000.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window__takes_two_times_in_order() {
        assert_eq!(window("100s..600s"), Ok((Time::from_secs(100), Time::from_secs(600))));
        assert!(window("6 s .. 5 s").unwrap_err().contains("after"));
        assert!(window("5 s").unwrap_err().contains("A..B"));
        assert!(window("1..2").unwrap_err().contains("unit is missing"));
    }

    #[test]
    fn assignment__splits_at_the_first_sign() {
        assert_eq!(assignment("a.b = c=d"), Ok(("a.b".into(), "c=d".into())));
        assert!(assignment("=1").is_err() && assignment("a").is_err());
    }
}
