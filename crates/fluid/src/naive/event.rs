//! What happens, and in which order.

/// What happens, in the order of what happens first at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A sample ends just before this instant.
    Sample,
    /// A source hears a grant.
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
    /// It begins to send.
    Start,
    /// It wants another rate.
    Demand,
    /// The max-min rates change.
    Optimum,
    /// A node or a link that runs a rule ticks.
    Tick,
}

/// An event: when, what, to whom (row, session or ticker), its number, and a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) whom: usize,
    pub(super) number: u64,
    /// A rate, where the event brings one.
    pub(super) bps: f64,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |event: &Self| (event.at, event.kind, event.whom, event.number);
        key(self).cmp(&key(other))
    }
}
