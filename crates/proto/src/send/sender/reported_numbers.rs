//! The packet numbers last reported to a sink, and when to repeat them.

use fairwave_units::{Duration, Time};

/// The numbers last reported to the sink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedNumbers {
    settled: u64,
    next: u64,
    at: Time,
    wait: Duration,
}

/// While reports come the numbers are sent once a round trip, or at this interval: every message costs rate.
const MIN_TELLING: Duration = Duration::from_millis(10);
/// While data is in flight and no report comes they are sent again after this or half a round trip, and then half as
/// often each time.
const FIRST_WAIT: Duration = Duration::from_millis(10);
/// The longest pause between two words while no report comes.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How a source's numbers stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumbersNow {
    /// Numbers below this are settled.
    pub settled: u64,
    /// The number of the next packet.
    pub next: u64,
    /// Nothing is under way.
    pub is_all_settled: bool,
}

impl ReportedNumbers {
    /// Of a source that starts at `now`.
    pub(crate) fn new(now: Time) -> Self {
        Self { settled: 0, next: 0, at: now, wait: FIRST_WAIT }
    }

    /// The sink was silent, and is heard again: it gets the numbers at once.
    pub(crate) fn on_return(&mut self) {
        self.wait = FIRST_WAIT;
    }

    /// Whether more is settled than the sink knows of.
    pub(crate) fn is_behind(&self, settled: u64) -> bool {
        self.settled < settled
    }

    /// The numbers to send to the sink now, if any: a report was answered, or the last packets may have been lost.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        numbers: NumbersNow,
        smoothed_rtt: Duration,
        is_answer: bool,
    ) -> Option<(u64, u64)> {
        let NumbersNow { settled, next, is_all_settled } = numbers;
        let since = now.since(self.at);
        if (settled, next) == (self.settled, self.next) && is_all_settled {
            return None;
        }
        if settled > self.settled && (is_answer || is_all_settled) {
            self.wait = FIRST_WAIT.max(smoothed_rtt.half());
            if since < MIN_TELLING.max(smoothed_rtt) {
                return None;
            }
        } else {
            // If all data sent is lost, the sink does not know what is missing.
            if is_all_settled || since < self.wait {
                return None;
            }
            self.wait = Duration::from_nanos(2 * self.wait.as_nanos()).min(MAX_WAIT);
        }
        (self.settled, self.next, self.at) = (settled, next, now);
        Some((settled, next))
    }
}
