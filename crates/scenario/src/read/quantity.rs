//! Rates, times and sizes from values, within the limits.

use fairwave_units::{Bytes, Duration, ParseError, Rate, Time};

use super::mistake::{Mistake, ReadResult};
use super::reader::Field;
use super::tree::TomlValue;
use crate::QueueLimit;
use crate::limits;

impl Field<'_> {
    /// Whether the value is "inf".
    pub(crate) fn is_inf(self) -> bool {
        match &self.item.value {
            TomlValue::Text(text) => text.trim() == "inf",
            TomlValue::Float(number) => *number == f64::INFINITY,
            _ => false,
        }
    }

    /// "inf" as `None`, and the result of `read` for everything else.
    pub(crate) fn or_inf<T>(self, read: impl FnOnce(Self) -> ReadResult<T>) -> ReadResult<Option<T>> {
        if self.is_inf() { Ok(None) } else { read(self).map(Some) }
    }

    /// A rate; may be zero.
    pub(crate) fn rate(self) -> ReadResult<Rate> {
        let rate: Rate = self.quantity("a rate", "\"500 Mb/s\"")?;
        if rate > limits::largest_rate() {
            return Err(self.wrong(
                format!("is above the limit of {}", limits::largest_rate()),
                "is the unit right? M is 10^6, G is 10^9",
            ));
        }
        Ok(rate)
    }

    /// A rate above zero.
    pub(crate) fn capacity(self) -> ReadResult<Rate> {
        let rate = self.rate()?;
        if rate == Rate::ZERO {
            return Err(self.wrong("must be above zero", "use \"inf\" if unlimited"));
        }
        if rate.as_bps() < limits::MIN_CAPACITY_BPS {
            return Err(self.wrong(
                format!("is below the minimum capacity, {} b/s", limits::MIN_CAPACITY_BPS),
                "use a larger capacity",
            ));
        }
        Ok(rate)
    }

    /// A span of time; may be zero.
    pub(crate) fn span(self, most: Duration) -> ReadResult<Duration> {
        let span: Duration = self.quantity("a time", "\"60 ms\"")?;
        if span > most {
            return Err(self.wrong(
                format!("is above the limit of {}", people(most)),
                "is the unit right? ms is 10^-3 s, us is 10^-6 s",
            ));
        }
        Ok(span)
    }

    /// A span of time above zero.
    pub(crate) fn positive_span(self, most: Duration) -> ReadResult<Duration> {
        let span = self.span(most)?;
        if span.is_zero() { Err(self.wrong("must be above zero", "use a time above zero")) } else { Ok(span) }
    }

    /// An instant of the run.
    pub(crate) fn instant(self) -> ReadResult<Time> {
        self.span(limits::RUN).map(|span| Time::ZERO + span)
    }

    /// A size within bounds.
    pub(crate) fn size(self, least: Bytes, most: Bytes) -> ReadResult<Bytes> {
        let size: Bytes = self.quantity("a size", "\"1.5 GB\"")?;
        if size < least || size > most {
            return Err(self
                .wrong(format!("must be from {least} to {most}"), "is the unit right? B is a byte, kB is 1000 bytes"));
        }
        Ok(size)
    }

    /// "bdp", "0.5 bdp", "2000 packets" or "3 MB".
    pub(crate) fn queue(self) -> ReadResult<QueueLimit> {
        const EXAMPLES: &str = "\"bdp\", \"0.5 bdp\", \"2000 packets\" or \"3 MB\"";
        let TomlValue::Text(text) = &self.item.value else { return Err(self.not("a queue", EXAMPLES)) };
        let text = text.trim();
        if text == "bdp" {
            return Ok(QueueLimit::Bdp(1.0));
        }
        if let Some(number) = text.strip_suffix("bdp") {
            const MAX: f64 = 1e6;
            return match number.trim_end().parse::<f64>() {
                // No range contains NaN.
                Ok(factor) if factor > 0.0 && factor <= MAX => Ok(QueueLimit::Bdp(factor)),
                _ => {
                    Err(self
                        .wrong(format!("must be above 0 and at most {MAX} bdp"), format!("write it like {EXAMPLES}")))
                }
            };
        }
        if text.ends_with("packets") || text.ends_with("packet") {
            return self.packets(1).map(QueueLimit::Packets);
        }
        if text.ends_with('B') {
            return self.size(Bytes::new(1), limits::SIZE).map(QueueLimit::Bytes);
        }
        Err(self.wrong("is not a queue", format!("write it like {EXAMPLES}")))
    }

    /// "64 packets".
    pub(crate) fn packets(self, least: u64) -> ReadResult<u64> {
        let wrong = || self.wrong("is not a number of packets", "write it like \"64 packets\"");
        let TomlValue::Text(text) = &self.item.value else {
            return Err(self.not("a number of packets", "\"64 packets\""));
        };
        let text = text.trim();
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")).ok_or_else(wrong)?.trim_end();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        // A number with more digits than a u64 can hold is also too large.
        match number.parse::<u64>() {
            Ok(packets) if (least..=limits::PACKETS).contains(&packets) => Ok(packets),
            _ => Err(self
                .wrong(format!("must be from {least} to {} packets", limits::PACKETS), "for instance \"64 packets\"")),
        }
    }

    /// The probability of a loss, 0 <= p < 1.
    pub(crate) fn chance(self) -> ReadResult<f64> {
        let chance = self.number(0.0, 1.0, false)?;
        if chance < 1.0 { Ok(chance) } else { Err(self.wrong("must be below 1", "at 1 no packet arrives")) }
    }

    fn quantity<T: std::str::FromStr<Err = ParseError>>(self, meant: &str, example: &str) -> ReadResult<T> {
        let place = self.item.place;
        match &self.item.value {
            TomlValue::Text(text) => text.parse().map_err(|error: ParseError| {
                Mistake::new(place, format!("{}{} {error}", self.thing, self.key), error.hint())
            }),
            _ => Err(self.not(meant, example)),
        }
    }
}

/// A long span in everyday units.
fn people(span: Duration) -> String {
    const YEAR: u64 = 365 * 24 * 3_600_000_000_000;
    const HOUR: u64 = 3_600_000_000_000;
    match span.as_nanos() {
        nanos if nanos >= YEAR && nanos % YEAR == 0 => format!("{} years", nanos / YEAR),
        nanos if nanos >= HOUR && nanos % HOUR == 0 => format!("{} h", nanos / HOUR),
        _ => span.to_string(),
    }
}
