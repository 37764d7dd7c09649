//! The clock of a simulation, and all pending events.

use fairwave_units::Time;

use crate::event::SimEvent;
use crate::event_queue::{EventQueue, EventTime};

/// Interval of progress reports, in events: some milliseconds of work, so that their cost is negligible.
const STEP_EVENTS: u64 = 65_536;

/// The current time and the events to come.
pub(crate) struct Agenda {
    /// Arrivals, one entry per line.
    arrivals: EventQueue<SimEvent>,
    /// All other events. Short flows leave many timers that fire without effect; in a separate queue they do not slow
    /// arrivals down.
    timers: EventQueue<SimEvent>,
    order: u64,
    now: Time,
    /// Events so far, including arrivals without an entry.
    pub(crate) events: u64,
    /// Number of events at the next progress report.
    next_step: u64,
}

impl Agenda {
    pub(crate) fn new() -> Self {
        let (arrivals, timers) = (EventQueue::new(), EventQueue::new());
        Self { arrivals, timers, order: 0, now: Time::ZERO, events: 0, next_step: STEP_EVENTS }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The place of a new event at `time`: after all events of that time so far.
    #[inline]
    pub(crate) fn key(&mut self, time: Time) -> EventTime {
        self.order += 1;
        EventTime::new(time, self.order)
    }

    pub(crate) fn schedule(&mut self, time: Time, event: SimEvent) {
        let key = self.key(time);
        self.timers.push(key, event);
    }

    /// Adds the arrival of the first packet of a line.
    #[inline]
    pub(crate) fn schedule_arrival(&mut self, key: EventTime, line: u32) {
        self.arrivals.push(key, SimEvent::Arrival(line));
    }

    /// The next event before `end`; the clock advances to it. Calls `on_step` once in [`STEP_EVENTS`] events.
    #[inline]
    pub(crate) fn next(&mut self, end: EventTime, on_step: &mut dyn FnMut(Time)) -> Option<SimEvent> {
        let timer = self.timers.first().min(end);
        let (now, event) = self.arrivals.pop_before(timer).or_else(|| self.timers.pop_before(end))?;
        self.now = now;
        self.events += 1;
        if self.events >= self.next_step {
            self.next_step = self.events + STEP_EVENTS;
            on_step(now);
        }
        Some(event)
    }

    /// Advances the clock to a time without events before it.
    pub(crate) fn advance(&mut self, to: Time) {
        self.now = to;
    }
}
