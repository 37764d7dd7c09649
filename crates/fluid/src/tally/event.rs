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
    /// The control packet of a session reaches a step of its way, if it has this number.
    Visit(usize, u64, usize),
    /// The control packet of a session with this number did not come back.
    Repeat(usize, u64),
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
    /// A round of the capacities of a ticker is over.
    Round(usize),
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
            Self::Visit(..) => 4,
            Self::Repeat(..) => 5,
            Self::Complete(..) => 6,
            Self::Stop(_) => 7,
            Self::Start(_) => 8,
            Self::Demand(..) => 9,
            Self::Optimum => 10,
            Self::Tick(_) => 11,
            Self::ExtraTick(_) => 12,
            Self::Round(_) => 13,
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
