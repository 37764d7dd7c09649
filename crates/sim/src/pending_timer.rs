//! A timer that moves often, in a queue from which no event is removed.

use fairwave_units::Time;

/// The pending event of a timer. One that fires too early is rescheduled; if the deadline moves to an earlier time,
/// another event is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingTimer {
    /// Time of the pending event.
    at: Option<Time>,
    /// Time of the event that was pending when an earlier one was added.
    later: Option<Time>,
}

impl PendingTimer {
    /// Ensures an event at a deadline, or before: returns the time of the event to add, if one is necessary.
    #[inline]
    pub(crate) fn arm(&mut self, deadline: Time, now: Time) -> Option<Time> {
        if self.at.is_some_and(|at| deadline >= at) {
            return None;
        }
        let at = deadline.max(now);
        self.later = self.later.or(self.at);
        self.at = Some(at);
        self.at
    }

    /// Whether the event that fires now is the pending one; it is pending no more.
    #[inline]
    pub(crate) fn fires(&mut self, now: Time) -> bool {
        let is_due = self.at == Some(now);
        if is_due {
            self.at = self.later.take();
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arm__adds_events_for_earlier_deadlines_only() {
        let [now, early, late] = [1, 2, 3].map(Time::from_secs);
        let mut timer = PendingTimer::default();
        assert_eq!(timer.arm(late, now), Some(late));
        assert_eq!(timer.arm(late, now), None);
        assert_eq!(timer.arm(early, now), Some(early));
        assert!(!timer.fires(late) && timer.fires(early) && timer.fires(late) && !timer.fires(late));
        // A deadline that has passed is now.
        assert_eq!(timer.arm(now, early), Some(early));
    }
}
