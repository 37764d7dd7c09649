//! The control intervals of a node.

use fairwave_units::{Duration, Time};

/// How long a control interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalRule {
    /// Always the same.
    Fixed(Duration),
    /// The largest round-trip time of the node's sessions, within bounds.
    Rtt {
        /// At the least, and without sessions.
        least: Duration,
        /// At the most.
        most: Duration,
    },
}

/// When a node ticks.
#[derive(Clone, Debug)]
pub struct TickSchedule {
    rule: IntervalRule,
    interval: Duration,
    last_tick: Option<Time>,
    next_tick: Time,
}

/// Minimum length of an interval: a tick of a thousand sessions takes about a tenth of it.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(1);

impl Default for IntervalRule {
    /// The largest round-trip time within 10 ms to 200 ms.
    fn default() -> Self {
        Self::Rtt { least: Duration::from_millis(10), most: Duration::from_millis(200) }
    }
}

impl IntervalRule {
    fn interval(self, largest_rtt: Option<Duration>) -> Duration {
        let interval = match self {
            Self::Fixed(interval) => interval,
            // Not `clamp`, which panics if the bounds are the wrong way round.
            Self::Rtt { least, most } => largest_rtt.unwrap_or(least).max(least).min(most),
        };
        interval.max(MIN_INTERVAL)
    }
}

impl TickSchedule {
    /// The first tick is at `phase` from now.
    pub(crate) fn new(now: Time, phase: Duration, rule: IntervalRule) -> Self {
        Self { rule, interval: rule.interval(None), last_tick: None, next_tick: now.saturating_add(phase) }
    }

    /// The control interval.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Sets the rule of the interval, from the next tick on.
    pub fn set_rule(&mut self, rule: IntervalRule) {
        self.rule = rule;
    }

    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    pub(crate) fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// Time since the last tick; zero before the first.
    pub(crate) fn elapsed(&self, now: Time) -> Duration {
        self.last_tick.map_or(Duration::ZERO, |last| now.since(last))
    }

    /// A tick whose successor another part decides.
    pub(crate) fn note_tick(&mut self, now: Time) {
        self.last_tick = Some(now);
    }

    /// A tick is over. Ticks keep their schedule though each comes a little late; one that comes later than the next
    /// starts again.
    pub(crate) fn end_tick(&mut self, now: Time, largest_rtt: Option<Duration>) {
        self.note_tick(now);
        self.interval = self.rule.interval(largest_rtt);
        let next = self.next_tick.saturating_add(self.interval);
        self.next_tick = if next > now { next } else { now.saturating_add(self.interval) };
    }

    /// The first tick is an interval from now.
    pub(crate) fn restart(&mut self, now: Time, largest_rtt: Option<Duration>) {
        self.interval = self.rule.interval(largest_rtt);
        self.next_tick = now.saturating_add(self.interval);
        self.last_tick = None;
    }

    /// The node was not looked at while it had no sessions: its ticks go on with their schedule.
    pub(crate) fn resume(&mut self, now: Time) {
        if self.next_tick <= now {
            let intervals = now.since(self.next_tick).as_nanos() / self.interval.as_nanos() + 1;
            let span = Duration::from_nanos(intervals.saturating_mul(self.interval.as_nanos()));
            self.next_tick = self.next_tick.saturating_add(span);
            self.last_tick = None;
        }
    }
}
