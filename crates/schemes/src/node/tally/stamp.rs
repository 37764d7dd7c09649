//! Instants in four bytes, for the state of many sessions.

use fairwave_units::{Duration, Time};

/// An instant in units of 2^16 ns (65.5 us), rounded down, modulo 78 hours. It must be read within 39 hours of the
/// instant: leases are at most an hour, and the stamps of a session are read and renewed several times in each.
///
/// Rounding down makes ages larger: a silence is detected at most 65.5 us early, for which the bound on delays, a sixth
/// of a lease where the proof needs a quarter, leaves room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u32);

/// Bits dropped from nanoseconds: the unit is 2^16 ns.
const SHIFT: u32 = 16;

impl Stamp {
    pub(super) fn of(at: Time) -> Self {
        Self((at.as_nanos() >> SHIFT) as u32)
    }

    /// The instant, given another one close to it.
    pub(super) fn near(self, now: Time) -> Time {
        let units = now.as_nanos() >> SHIFT;
        let ago = i64::from((units as u32).wrapping_sub(self.0).cast_signed());
        Time::from_nanos(units.saturating_add_signed(-ago) << SHIFT)
    }

    /// Its age at `now`.
    pub(super) fn age(self, now: Time) -> Duration {
        now.since(self.near(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age__rounds_up_by_less_than_a_unit_across_wraps() {
        for start in [0, 1, 65_535, 65_536, (1_u64 << 48) - 3, (1 << 48) + 5, (1 << 62) + 77] {
            for span in [0, 1, 65_536, 4_000_000_000, 7_200_000_000_000] {
                let stamp = Stamp::of(Time::from_nanos(start));
                let age = stamp.age(Time::from_nanos(start + span)).as_nanos();
                assert!((span..span + 65_536).contains(&age), "{start} + {span}: {age}");
            }
        }
        // A stamp in the future has age zero.
        assert_eq!(Stamp::of(Time::from_secs(5)).age(Time::from_secs(4)), Duration::ZERO);
    }
}
