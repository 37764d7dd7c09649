//! Events of the event engine, and their order.

/// Kinds of events; those of the rule are an `E`.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventKind<E> {
    /// A sample ends just before this instant.
    Sample,
    /// A new rate, in bit/s, arrives at a row's resource.
    Arrive(usize, f64),
    /// A session has sent its last byte, if this completion is still valid.
    Complete(usize, u64),
    /// A session stops.
    Stop(usize),
    /// A session starts.
    Start(usize),
    /// The demand of a session changes, to a rate in bit/s.
    Demand(usize, f64),
    /// The max-min rates change.
    Optimum,
    /// An event of the rule.
    Rule(E),
}

/// First of four phases of messages. They come after arrivals: a confirmation does not overtake the data that precede
/// it.
pub(crate) const MESSAGES: u8 = 2;

/// First of three phases of ticks, which come last.
pub(crate) const TICKS: u8 = 11;

impl<E> EventKind<E> {
    /// Order of simultaneous events: data and messages, then leaves and joins, then ticks.
    pub(super) fn place(&self, of_rule: impl FnOnce(&E) -> (u8, usize)) -> (u8, usize) {
        match self {
            Self::Sample => (0, 0),
            Self::Arrive(..) => (1, 0),
            Self::Complete(..) => (6, 0),
            Self::Stop(_) => (7, 0),
            Self::Start(_) => (8, 0),
            Self::Demand(..) => (9, 0),
            Self::Optimum => (10, 0),
            Self::Rule(event) => of_rule(event),
        }
    }
}

/// Time, place among simultaneous events, the number of events created before it, and kind.
pub(super) struct Event<E> {
    pub(super) at: u64,
    pub(super) place: (u8, usize),
    pub(super) number: u64,
    pub(super) kind: EventKind<E>,
}

impl<E> PartialEq for Event<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Event<E> {}

impl<E> PartialOrd for Event<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Event<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |event: &Self| (event.at, event.place, event.number);
        key(self).cmp(&key(other))
    }
}
