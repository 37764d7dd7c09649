//! Events of the engine for rules that exchange messages, and their order.

use fairwave_schemes::node::tally::{ClaimMessage, GrantMessage};

/// Kinds of events.
#[derive(Clone, Copy, Debug)]
pub(super) enum TallyEventKind {
    /// A sample ends just before this instant.
    Sample,
    /// A new rate, in bit/s, arrives at a row's resource.
    Arrive(usize, f64),
    /// A grant reaches the source of a row's session.
    Grant(usize, GrantMessage),
    /// A claim reaches a row's resource.
    Claim(usize, ClaimMessage),
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
    /// A control interval of a node is over.
    Tick(usize),
    /// A node that received news ticks an additional time.
    ExtraTick(usize),
}

impl TallyEventKind {
    /// Order of simultaneous events: data and messages, then leaves and joins, then ticks. Data come before messages: a
    /// confirmation does not overtake the data that precede it.
    fn rank(&self) -> u8 {
        match self {
            Self::Sample => 0,
            Self::Arrive(..) => 1,
            Self::Grant(..) => 2,
            Self::Claim(..) => 3,
            Self::Complete(..) => 4,
            Self::Stop(_) => 5,
            Self::Start(_) => 6,
            Self::Demand(..) => 7,
            Self::Optimum => 8,
            Self::Tick(_) => 9,
            Self::ExtraTick(_) => 10,
        }
    }
}

/// Time, kind, and the number of events created before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TallyEvent {
    pub(super) at: u64,
    pub(super) number: u64,
    pub(super) kind: TallyEventKind,
}

impl TallyEvent {
    fn key(&self) -> (u64, u8, u64) {
        (self.at, self.kind.rank(), self.number)
    }
}

impl PartialEq for TallyEvent {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for TallyEvent {}

impl PartialOrd for TallyEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TallyEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
