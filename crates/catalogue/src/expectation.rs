//! The expectation of a claim, and the distance of a value from it.

use crate::judged::digits;

/// A condition on a value, in the claim's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expectation {
    /// Close to a value.
    Near(f64, Tolerance),
    /// `<=`
    AtMost(f64),
    /// `>=`
    AtLeast(f64),
    /// `<`
    Below(f64),
    /// `>`
    Above(f64),
    /// From the first to the second.
    Between(f64, f64),
}

/// Required precision of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    /// A share of the expected value.
    Relative(f64),
    /// In the claim's unit.
    Absolute(f64),
    /// A factor, up or down.
    Factor(f64),
}

impl Tolerance {
    /// Reads "3 %", "0.5" (in the claim's unit) or "factor 4".
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(|x| Self::Relative(x / 100.0));
        }
        if let Some(factor) = text.strip_prefix("factor ") {
            return number(factor).filter(|x| *x >= 1.0).map(Self::Factor);
        }
        number(text).map(Self::Absolute)
    }
}

impl Expectation {
    /// Whether a value holds. NaN never does.
    pub(crate) fn holds(&self, value: f64) -> bool {
        self.miss(value) <= 0.0
    }

    /// Distance of a value from holding: at most zero if it holds, larger if it is worse; infinite for NaN. Among
    /// values that hold, the one nearest to missing has the largest.
    pub(crate) fn miss(&self, value: f64) -> f64 {
        let miss = match *self {
            Self::Near(expected, Tolerance::Absolute(width)) => (value - expected).abs() - width,
            Self::Near(expected, Tolerance::Relative(share)) => (value - expected).abs() - share * expected.abs(),
            Self::Near(expected, Tolerance::Factor(factor)) => (value / expected).max(expected / value) - factor,
            Self::AtMost(limit) => value - limit,
            Self::AtLeast(limit) => limit - value,
            // Equality misses by the smallest positive number.
            Self::Below(limit) => {
                if value == limit {
                    f64::MIN_POSITIVE
                } else {
                    value - limit
                }
            }
            Self::Above(limit) => {
                if value == limit {
                    f64::MIN_POSITIVE
                } else {
                    limit - value
                }
            }
            Self::Between(low, high) => (low - value).max(value - high),
        };
        if miss.is_nan() { f64::INFINITY } else { miss }
    }

    /// The number that the source states.
    pub(crate) fn stated(&self) -> Option<f64> {
        match *self {
            Self::Near(value, _)
            | Self::AtMost(value)
            | Self::AtLeast(value)
            | Self::Below(value)
            | Self::Above(value) => Some(value),
            Self::Between(..) => None,
        }
    }

    /// The tolerance in words.
    pub(crate) fn tolerance(&self) -> String {
        match *self {
            Self::Near(_, Tolerance::Relative(share)) => format!("{} %", digits(share * 100.0)),
            Self::Near(_, Tolerance::Absolute(width)) => digits(width),
            Self::Near(_, Tolerance::Factor(factor)) => format!("factor {}", digits(factor)),
            Self::AtMost(limit) => format!("at most {}", digits(limit)),
            Self::AtLeast(limit) => format!("at least {}", digits(limit)),
            Self::Below(limit) => format!("below {}", digits(limit)),
            Self::Above(limit) => format!("above {}", digits(limit)),
            Self::Between(low, high) => format!("{} to {}", digits(low), digits(high)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds__at_the_edges() {
        let near = Expectation::Near(200.0, Tolerance::parse("2 %").unwrap());
        assert!(near.holds(204.0) && near.holds(196.0) && !near.holds(204.1) && !near.holds(195.9));
        assert!(Expectation::Near(0.0, Tolerance::Absolute(0.1)).holds(-0.1));
        let factor = Expectation::Near(0.5, Tolerance::parse("factor 4").unwrap());
        assert!(factor.holds(0.15) && factor.holds(2.0) && !factor.holds(0.12) && !factor.holds(2.1));
        assert!(Expectation::AtMost(1.0).holds(1.0) && !Expectation::Below(1.0).holds(1.0));
        assert!(Expectation::AtLeast(1.0).holds(1.0) && !Expectation::Above(1.0).holds(1.0));
        assert!(Expectation::Between(8.0, 12.0).holds(12.0) && !Expectation::Between(8.0, 12.0).holds(12.1));
    }

    #[test]
    fn holds__never_for_nan() {
        for expectation in [
            Expectation::Near(1.0, Tolerance::Relative(1.0)),
            Expectation::AtMost(1.0),
            Expectation::AtLeast(1.0),
            Expectation::Between(0.0, 1.0),
        ] {
            assert!(!expectation.holds(f64::NAN), "{expectation:?}");
        }
        assert!(!Expectation::AtMost(10.0).holds(f64::INFINITY)); // a time that is never reached
    }

    #[test]
    fn tolerance__reads_its_three_forms_and_nothing_else() {
        assert_eq!(Tolerance::parse("3 %"), Some(Tolerance::Relative(0.03)));
        assert_eq!(Tolerance::parse("1e-6"), Some(Tolerance::Absolute(1e-6)));
        assert_eq!(Tolerance::parse("factor 4"), Some(Tolerance::Factor(4.0)));
        for bad in ["", "about", "-1 %", "factor 0.5", "inf", "3 % or so"] {
            assert_eq!(Tolerance::parse(bad), None, "{bad}");
        }
    }
}
