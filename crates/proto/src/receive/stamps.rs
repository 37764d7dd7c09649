//! A source's stamps, at its sink.

use fairwave_units::{Duration, Time};

/// Reads stamps as times that do not wrap, and sees whether they run as fast as time does.
///
/// Rates are measured in the source's own time: one that stretches it sends faster than it reports. No clock is wrong
/// by a fiftieth, and no queue grows by two seconds without other signs; if stamps gain or lose more than both, they
/// are ignored from then on, and the sink's own clock counts instead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    last_us: u64,
    /// Origin of the comparison: the time by the stamps, and by this end's clock.
    from: Option<(Time, Time)>,
    seen: Time,
    are_false: bool,
}

/// Max difference of stamps and clock, next to the drift: packets wait in queues for up to a second or two.
const TOLERANCE: Duration = Duration::from_secs(2);
/// Max drift of stamps, as one part of this many of the time that has passed: 2 %, far more than clocks drift.
const TOLERANCE_SHARE: i128 = 50;
/// After a silence the clocks are compared again: a machine may have slept.
const SILENCE: Duration = Duration::from_secs(5);

impl Stamps {
    /// When the packet of a stamp was sent: the time of these 32 bits that is nearest to the last one.
    #[inline]
    pub(crate) fn time(&mut self, now: Time, stamp_us: u32) -> Time {
        let ahead = i64::from(stamp_us.wrapping_sub(self.last_us as u32).cast_signed());
        // The first wrap backwards would lead below zero: start one wrap up.
        let last_us = if self.last_us == 0 { 1 << 32 } else { self.last_us };
        self.last_us = last_us.saturating_add_signed(ahead);
        let sent = Time::from_nanos(self.last_us.saturating_mul(1000));
        if now.since(self.seen) >= SILENCE {
            self.from = None;
        }
        self.seen = now;
        let (sent_from, from) = *self.from.get_or_insert((sent, now));
        let passed = i128::from(now.since(from).as_nanos());
        let claimed = i128::from(sent.as_nanos()) - i128::from(sent_from.as_nanos());
        let most = i128::from(TOLERANCE.as_nanos()) + passed / TOLERANCE_SHARE;
        self.are_false |= (claimed - passed).abs() > most;
        if self.are_false { now } else { sent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_US: u64 = 1000;

    /// Stamps that run at `speed` after `skew_us`: whether they are believed to the end.
    fn are_believed(speed: f64, steps: u64, skew_us: impl Fn(u64) -> i64) -> bool {
        let mut stamps = Stamps::default();
        let (mut last, mut believed) = (Time::ZERO, true);
        for step in 0..steps {
            let now = Time::from_nanos((step + 7) * STEP_US * 1000);
            let stamp_us = 4_000_000_000 + (step as f64 * STEP_US as f64 * speed) as u64;
            let sent = stamps.time(now, stamp_us.wrapping_add_signed(skew_us(step)) as u32);
            believed = sent != now;
            last = last.max(sent);
        }
        believed && last > Time::ZERO
    }

    #[test]
    fn time__believes_clocks_that_are_a_little_wrong_and_paths_that_wait() {
        // Ten minutes, in which the stamps wrap.
        assert!(are_believed(1.0, 600_000, |_| 0));
        assert!(are_believed(1.01, 600_000, |_| 0) && are_believed(0.99, 600_000, |_| 0));
        assert!(are_believed(1.0, 600_000, |step| if step > 1000 { -1_900_000 } else { 0 }));
    }

    #[test]
    fn time__does_not_believe_stamps_that_run_away() {
        // A tenth too fast is 2 s and a fiftieth after 25 s.
        assert!(are_believed(1.1, 24_000, |_| 0) && !are_believed(1.1, 26_000, |_| 0));
        assert!(!are_believed(0.5, 5000, |_| 0) && !are_believed(10.0, 1000, |_| 0));
        assert!(!are_believed(1.0, 9000, |step| if step > 1000 { 3_000_000 } else { 0 }));
    }

    #[test]
    fn time__compares_anew_after_a_silence() {
        let mut stamps = Stamps::default();
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let first = stamps.time(ms(0), 1000);
        // Its machine slept for ten seconds.
        let second = stamps.time(ms(10_000), 2000);
        assert_eq!(second.since(first), Duration::from_millis(1));
    }
}
