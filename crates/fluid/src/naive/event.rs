//! Events and their order.

/// Kinds of events, in the order in which simultaneous ones happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NaiveEventKind {
    /// A sample ends just before this instant.
    Sample,
    /// A grant arrives at a source.
    Hear,
    /// A new rate arrives at a resource.
    Arrive,
    /// A session has sent its last byte.
    Complete,
    /// A session stops.
    Stop,
    /// The end of a session arrives at a resource.
    Vanish,
    /// A session appears at all its resources.
    Join,
    /// A session starts to send.
    Start,
    /// The demand of a session changes.
    Demand,
    /// The max-min rates change.
    Optimum,
    /// A node or a link that runs a rule ticks.
    Tick,
}

/// An event: time, kind, subject (row, session or ticker), its number, and a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct NaiveEvent {
    pub(super) at: u64,
    pub(super) kind: NaiveEventKind,
    pub(super) whom: usize,
    pub(super) number: u64,
    /// A rate, if the event has one.
    pub(super) bps: f64,
}

impl PartialEq for NaiveEvent {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for NaiveEvent {}

impl PartialOrd for NaiveEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NaiveEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |event: &Self| (event.at, event.kind, event.whom, event.number);
        key(self).cmp(&key(other))
    }
}
