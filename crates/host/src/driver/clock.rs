//! The time of a process, as the cores count it.

use std::time::Instant;

use fairwave_units::Time;

/// Counts from the start of an endpoint on, steadily: what the wall clock does is of no concern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
