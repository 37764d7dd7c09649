//! The clock that all processes of a machine share.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, which is common to all namespaces of this machine: absolute times in messages
/// between processes use it.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The instant of that reading of the clock, possibly in the past.
pub(crate) fn instant_at(ns: u64) -> Instant {
    // Instants use the same clock, but cannot be made from a number.
    let (now, now_ns) = (Instant::now(), now_ns());
    if ns >= now_ns {
        now + Duration::from_nanos(ns - now_ns)
    } else {
        let passed = Duration::from_nanos(now_ns - ns);
        now.checked_sub(passed).unwrap_or(now)
    }
}
