//! Arithmetic with twice the precision of f64, limited to the operations that filling needs.

/// The unevaluated sum of two f64, about 106 bits. It holds the capacity that remains after millions of subtractions,
/// and the quotients that are subtracted; with plain f64 the rounding errors would add up.
///
/// Valid for magnitudes far from overflow (the problem's limits ensure that).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Double {
    hi: f64,
    lo: f64,
}

impl Double {
    pub(crate) const ZERO: Self = Self { hi: 0.0, lo: 0.0 };

    /// The number if `is_all`, otherwise zero. The number must be finite: it is a multiplication, because a choice may
    /// be compiled to a branch.
    #[inline]
    pub(crate) fn all_or_none(self, is_all: bool) -> Self {
        let factor = f64::from(u8::from(is_all));
        Self { hi: self.hi * factor, lo: self.lo * factor }
    }

    /// The sum of two numbers, one of which is zero.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        Self { hi: self.hi + other.hi, lo: self.lo + other.lo }
    }

    /// The nearest f64.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        self.hi + self.lo
    }

    /// Adds one f64.
    #[inline]
    pub(crate) fn add(&mut self, other: f64) {
        self.subtract(Self::from(-other));
    }

    /// Subtracts with an error within 2^-104 of the larger operand.
    #[inline]
    pub(crate) fn subtract(&mut self, other: Self) {
        // Knuth's two-sum: the sum of `hi` and the rounding error is exactly the difference of the high parts.
        let hi = self.hi - other.hi;
        let back = hi - self.hi;
        let error = (self.hi - (hi - back)) - (other.hi + back);
        self.hi = hi;
        self.lo += error - other.lo;
    }

    /// The quotient by a divisor above zero, to about 2^-104 relative.
    #[inline]
    pub(crate) fn divide(self, divisor: Self) -> Self {
        let hi = self.value() / divisor.value();
        let mut rest = self;
        rest.subtract(divisor.times(hi));
        Self { hi, lo: rest.value() / divisor.value() }
    }

    /// The quotient by a count above zero, to about 2^-104 relative for counts below 2^26.
    #[inline]
    pub(crate) fn divide_by_count(self, count: u32) -> Self {
        let count = f64::from(count);
        let hi = self.value() / count;
        // Each half has at most 27 significant bits, the count at most 26: the products are exact.
        let (upper, lower) = halves(hi);
        let mut rest = self;
        rest.subtract(Self { hi: upper * count, lo: lower * count });
        Self { hi, lo: rest.value() / count }
    }

    /// The product with an f64, to about 2^-104 relative.
    #[inline]
    pub(crate) fn times(self, factor: f64) -> Self {
        let mut product = Self::product(self.hi, factor);
        product.lo += self.lo * factor;
        product
    }

    /// Dekker's product of two f64: exact except for one bit of the product of the low halves. A fused multiply-add
    /// would be simpler, but is a call into libm on targets without the instruction.
    #[inline]
    fn product(a: f64, b: f64) -> Self {
        let hi = a * b;
        let (a_hi, a_lo) = halves(a);
        let (b_hi, b_lo) = halves(b);
        let lo = ((a_hi * b_hi - hi) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo;
        Self { hi, lo }
    }
}

impl From<f64> for Double {
    #[inline]
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

/// Splits an f64 into two with at most 27 significant bits each.
#[inline]
fn halves(value: f64) -> (f64, f64) {
    let hi = f64::from_bits(value.to_bits() & !((1 << 27) - 1));
    (hi, value - hi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn subtract__small_parts_are_kept() {
        // 1e16 - 10 000 x 0.1 = 1e16 - 1000; a single 0.1 is lost in an f64 of that size, whose spacing is 2.
        let mut plain = 1e16;
        let mut double = Double::from(1e16);
        for _ in 0..10_000 {
            plain -= 0.1;
            double.subtract(Double::from(0.1));
        }
        assert_eq!(plain, 1e16);
        assert_eq!(double.value(), 1e16 - 1000.0);
    }

    #[test]
    fn divide__thirds_add_up() {
        let third = Double::from(1.0).divide(Double::from(3.0));
        assert_eq!(third.value(), 1.0 / 3.0);
        let mut rest = Double::from(1.0);
        for _ in 0..3 {
            rest.subtract(third);
        }
        assert!(rest.value().abs() < 1e-31, "{rest:?}");
    }

    proptest! {
        #[test]
        fn divide_by_count__is_division(a in 1e-60..1e60f64, count in 1..1_u32 << 26) {
            let found = Double::from(a).divide_by_count(count);
            let mut difference = Double::from(a).divide(Double::from(f64::from(count)));
            difference.subtract(found);
            prop_assert!(difference.value().abs() <= found.value() * 2f64.powi(-100));
        }

        #[test]
        fn product__error_equals_fused_multiply_add(a in -1e60..1e60f64, b in 1e-60..1e60f64) {
            let product = Double::product(a, b);
            prop_assert_eq!(product.hi, a * b);
            let error = a.mul_add(b, -product.hi);
            prop_assert!((product.lo - error).abs() <= product.hi.abs() * 2f64.powi(-104));
        }

        #[test]
        fn divide__is_reversed_by_times(a in 1e-60..1e60f64, b in 1e-60..1e60f64) {
            let mut rest = Double::from(a);
            rest.subtract(Double::from(a).divide(Double::from(b)).times(b));
            prop_assert!(rest.value().abs() <= a * 2f64.powi(-100), "{rest:?}");
        }
    }
}
