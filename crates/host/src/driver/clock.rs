//! The time of a process, as the cores count it.

use std::time::Instant;

use fairwave_units::Time;

/// Counts from the start of an endpoint on, steadily: what the wall clock does is of no concern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// The time, where a test sets it.
    #[cfg(test)]
    by_hand: Option<Time>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(test)]
            by_hand: None,
        }
    }

    /// Stops the clock, and moves it on by a span: from then on it only moves in this way.
    #[cfg(test)]
    pub(crate) fn advance(&mut self, span: fairwave_units::Duration) {
        self.by_hand = Some(self.now().saturating_add(span));
    }

    pub(crate) fn now(self) -> Time {
        #[cfg(test)]
        if let Some(now) = self.by_hand {
            return now;
        }
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
