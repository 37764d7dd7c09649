//! Reduction of values for a claim: over sessions, over runs, over variants.

use serde::Deserialize;

use crate::expectation::Expectation;
use crate::judged::digits;

/// A way to combine several values into one, or to keep several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Reduce {
    /// Each must hold separately.
    #[default]
    Each,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The middle one, or the mean of the two in the middle.
    Median,
    /// Minimum.
    Least,
    /// Maximum.
    Most,
    /// (largest - least) / mean.
    Spread,
    /// The n-th largest, from one.
    Rank(usize),
    /// Number of values below a limit, in bit/s, seconds or plain.
    CountBelow(f64),
    /// The last minus the first.
    Difference,
    /// Each must be larger than its predecessor.
    Increasing,
    /// Each must be smaller than its predecessor.
    Decreasing,
}

impl Reduce {
    /// Whether it compares values with each other instead of giving a number.
    pub(crate) fn is_order(self) -> bool {
        matches!(self, Self::Increasing | Self::Decreasing)
    }

    /// Whether its result is a pure number, for any input.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Spread | Self::CountBelow(_))
    }

    /// One number from several, `None` if they stay several; NaN from an empty list.
    pub(crate) fn apply(self, values: &[f64]) -> Option<f64> {
        let sum: f64 = values.iter().sum();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
        let (least, most) = (at(0), at(n.wrapping_sub(1)));
        Some(match self {
            Self::Each | Self::Increasing | Self::Decreasing => return None,
            Self::Sum => sum,
            Self::Mean => sum / n as f64,
            Self::Median if n % 2 == 1 => at(n / 2),
            // Not their mean if they are equal: two infinite times have a median.
            Self::Median => {
                let (low, high) = (at((n / 2).wrapping_sub(1)), at(n / 2));
                if low == high { low } else { f64::midpoint(low, high) }
            }
            Self::Least => least,
            Self::Most => most,
            Self::Spread => (most - least) / (sum / n as f64),
            Self::Rank(rank) => at(n.wrapping_sub(rank)),
            Self::Difference => values.last().zip(values.first()).map_or(f64::NAN, |(last, first)| last - first),
            Self::CountBelow(limit) => values.iter().filter(|value| **value < limit).count() as f64,
        })
    }

    /// Whether values are in this order, strictly, and their text.
    pub(crate) fn order(self, values: &[f64]) -> (bool, String) {
        let increasing = self == Self::Increasing;
        let holds = values.len() > 1
            && values.windows(2).all(|pair| if increasing { pair[0] < pair[1] } else { pair[0] > pair[1] });
        (holds, values.iter().map(|value| digits(*value)).collect::<Vec<_>>().join(", "))
    }
}

/// The value among several that is worst for an expectation.
pub(crate) fn worst(values: &[f64], expectation: &Expectation) -> f64 {
    let worse = |a: f64, b: f64| if expectation.miss(b) > expectation.miss(a) { b } else { a };
    values.iter().copied().reduce(worse).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::Tolerance;

    #[test]
    fn apply__on_a_few_numbers() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(Reduce::Sum.apply(&values), Some(10.0));
        assert_eq!(Reduce::Mean.apply(&values), Some(2.5));
        assert_eq!(Reduce::Median.apply(&values), Some(2.5));
        assert_eq!(Reduce::Median.apply(&values[..3]), Some(3.0));
        assert_eq!(Reduce::Least.apply(&values), Some(1.0));
        assert_eq!(Reduce::Most.apply(&values), Some(4.0));
        assert_eq!(Reduce::Spread.apply(&values), Some(1.2)); // 3 / 2.5
        assert_eq!(Reduce::Rank(1).apply(&values), Some(4.0));
        assert_eq!(Reduce::Rank(4).apply(&values), Some(1.0));
        assert_eq!(Reduce::CountBelow(3.0).apply(&values), Some(2.0));
        assert_eq!(Reduce::Difference.apply(&values), Some(-2.0)); // 2 - 4
        assert_eq!(Reduce::Each.apply(&values), None);
    }

    #[test]
    fn apply__without_values_or_rank_is_no_number() {
        assert!(Reduce::Median.apply(&[]).unwrap().is_nan());
        assert!(Reduce::Most.apply(&[]).unwrap().is_nan());
        assert!(Reduce::Difference.apply(&[]).unwrap().is_nan());
        assert!(Reduce::Rank(3).apply(&[1.0, 2.0]).unwrap().is_nan());
        assert!(Reduce::Rank(0).apply(&[1.0, 2.0]).unwrap().is_nan());
        assert_eq!(Reduce::Median.apply(&[f64::INFINITY; 4]), Some(f64::INFINITY));
    }

    #[test]
    fn order__is_strict_and_needs_two() {
        assert!(Reduce::Increasing.order(&[1.0, 2.0, 3.0]).0);
        assert!(!Reduce::Increasing.order(&[1.0, 1.0]).0);
        assert!(!Reduce::Increasing.order(&[1.0]).0);
        assert!(Reduce::Decreasing.order(&[3.0, 1.0]).0);
        assert!(!Reduce::Decreasing.order(&[f64::INFINITY, f64::INFINITY]).0);
    }

    #[test]
    fn worst__is_the_one_nearest_to_missing() {
        let near = Expectation::Near(10.0, Tolerance::Absolute(5.0));
        assert_eq!(worst(&[10.0, 6.0, 13.0], &near), 6.0);
        assert_eq!(worst(&[1.0, 3.0, 2.0], &Expectation::AtMost(9.0)), 3.0);
        assert!(worst(&[1.0, f64::NAN], &near).is_nan());
        assert!(worst(&[], &near).is_nan());
    }
}
