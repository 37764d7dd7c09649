//! Log lines that others can cause.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Allows a number of messages per second: the log of a flooded host stays short.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    since: Cell<Option<Instant>>,
    said: Cell<u32>,
}

const A_SECOND: Duration = Duration::from_secs(1);
const MOST: u32 = 10;

impl LogLimiter {
    /// Whether another message may be logged.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        if self.since.get().is_none_or(|since| now.duration_since(since) >= A_SECOND) {
            self.since.set(Some(now));
            self.said.set(0);
        }
        let said = self.said.get();
        self.said.set(said.saturating_add(1));
        said < MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows__ten_a_second() {
        let sparing = LogLimiter::default();
        let begin = Instant::now();
        let allowed = |at: Instant| (0..1000).filter(|_| sparing.allows(at)).count();
        assert_eq!(allowed(begin), 10);
        assert_eq!(allowed(begin + A_SECOND / 2), 0);
        assert_eq!(allowed(begin + A_SECOND), 10);
    }
}
