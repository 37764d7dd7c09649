//! What an observer of a run hears, packet by packet.

use fairwave_units::Time;

/// Something that happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEvent<'a> {
    /// When. Events come in order of time.
    pub time: Time,
    /// What.
    pub what: TraceKind,
    /// Where, for what happens at a link.
    pub link: Option<TraceLink<'a>>,
    /// Whose packet it is.
    pub owner: TraceOwner,
    /// The packet.
    pub packet: TracePacket,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// It set out: data from the source, an acknowledgement from the sink.
    Sent,
    /// Data set out again.
    Resent,
    /// It entered a link or the queue in front.
    Entered,
    /// A link's queue had no room for it, or its discipline dropped it.
    Dropped,
    /// It was lost at random on its way into a link.
    Lost,
    /// It arrived: data at the sink, for the first time or not; an acknowledgement at the source.
    Arrived,
}

impl TraceKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Resent => "resent",
            Self::Entered => "entered",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
            Self::Arrived => "arrived",
        }
    }
}

/// A link, as the summary names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceLink<'a> {
    /// Index in [`crate::Summary::links`].
    pub index: u32,
    /// Its name, "d1:in" or "s1:out" at end nodes.
    pub name: &'a str,
    /// Its capacity.
    pub capacity_bps: f64,
}

/// Who sends or answers a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOwner {
    /// A session, by its index in the scenario.
    Session(u32),
    /// A flow of background traffic.
    Background {
        /// Index of its table in the scenario.
        table: u32,
        /// Its place among the flows of the run; places are used again.
        place: u32,
        /// How many flows had this place before.
        life: u32,
    },
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePacket {
    /// Bytes on the wire.
    pub bytes: u32,
    /// Whether its receiver acknowledges data (window-based schemes).
    pub is_acknowledged: bool,
    /// What it carries.
    pub content: TraceContent,
}

/// What a packet carries. Numbers count a session's data packets from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceContent {
    /// The data packet of this number.
    Data(u64),
    /// An acknowledgement.
    Ack {
        /// The first number that the receiver still lacks.
        next: u64,
        /// What it holds beyond, newest first, from and up to (not including); empty ones last (RFC 2018).
        blocks: [(u64, u64); 3],
    },
    /// A message of a session that sets its own rate (UDT, RBUDP).
    Message {
        /// UDT's are counted in each direction; RBUDP's has the number of the question that it asks or answers.
        number: u64,
        /// Whether the source sent it, and not the sink.
        to_sink: bool,
    },
}
