//! Exact sums: results are added up in whole grains of 2^-10 bit/s, so that they depend neither on the order of the
//! additions nor on the instants at which they are made.

/// Grains in one bit per second.
const PER_BPS: f64 = 1024.0;

/// A rate in whole grains. Up to 2^60, so that sums over 10^7 sessions stay far inside an `i128`.
pub(crate) type Grains = i64;

/// Grains times nanoseconds.
pub(crate) type Volume = i128;

/// The nearest whole number of grains.
#[inline]
pub(crate) fn grains(bps: f64) -> Grains {
    const MAX: f64 = (1_u64 << 60) as f64;
    (bps * PER_BPS + 0.5).min(MAX) as Grains
}

/// A rate as a node measures it: the nearest whole number of grains. Real measurements count in some unit, and rules
/// that rely on exact numbers must not look better here than they are: without rounding, one that fails by the
/// smallest error looks correct.
#[inline]
pub(crate) fn counted(bps: f64) -> f64 {
    grains(bps) as f64 / PER_BPS
}

/// Volume at `rate` in `span_ns`.
#[inline]
pub(crate) fn volume(rate: Grains, span_ns: u64) -> Volume {
    Volume::from(rate) * Volume::from(span_ns)
}

/// Volume of `bytes` bytes.
pub(crate) fn of_bytes(bytes: u64) -> Volume {
    Volume::from(bytes) * (8 * 1024 * 1_000_000_000)
}

/// Bytes of a volume.
pub(crate) fn bytes(volume: Volume) -> f64 {
    volume as f64 / (8.0 * PER_BPS * 1e9)
}

/// Whole bytes of a volume.
pub(crate) fn whole_bytes(volume: Volume) -> u64 {
    u64::try_from(volume.max(0) / (8 * 1024 * 1_000_000_000)).unwrap_or(u64::MAX)
}

/// Bits per second of a volume over a span; zero over an empty span.
pub(crate) fn mean_bps(volume: Volume, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { volume as f64 / (span_ns as f64 * PER_BPS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_bps__returns_a_constant_rate() {
        // 0.7 Gb/s over 15 s is 7e8 x 1024 grains x 1.5e10 ns, exactly.
        assert_eq!(mean_bps(volume(grains(7e8), 15_000_000_000), 15_000_000_000), 7e8);
        assert_eq!(mean_bps(5, 0), 0.0);
    }

    #[test]
    fn grains__round_to_the_nearest() {
        assert_eq!(grains(999_999_999.999_9), 1_024_000_000_000);
        assert_eq!(grains(0.000_3), 0);
        assert_eq!(grains(f64::INFINITY), 1 << 60);
    }

    #[test]
    fn bytes__of_volume() {
        assert_eq!(bytes(of_bytes(1_500)), 1_500.0);
        assert_eq!(whole_bytes(of_bytes(1_500) + 1), 1_500);
        // 8 Mb/s for 1 s is 1 MB.
        assert_eq!(whole_bytes(volume(grains(8e6), 1_000_000_000)), 1_000_000);
    }
}
