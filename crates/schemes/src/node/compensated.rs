//! A running difference that compensates rounding.

/// A number in two parts whose sum is exact to about twice the precision of an f64 (Knuth's two-sum).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compensated {
    sum: f64,
    rest: f64,
}

impl Compensated {
    #[inline]
    pub(super) const fn new(value: f64) -> Self {
        Self { sum: value, rest: 0.0 }
    }

    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let added = sum - self.sum;
        self.rest += (self.sum - (sum - added)) + (value - added);
        self.sum = sum;
    }

    #[inline]
    pub(super) fn subtract(&mut self, value: f64) {
        self.add(-value);
    }

    #[inline]
    pub(super) fn value(self) -> f64 {
        self.sum + self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value__keeps_digits_that_a_plain_sum_loses() {
        let mut left = Compensated::new(1e16);
        for _ in 0..1000 {
            left.subtract(1.0); // 1e16 - 1 is not an f64
        }
        left.subtract(1e16 - 2000.0);
        assert_eq!(left.value(), 1000.0);
    }
}
