//! Packet events for an observer of a run.

use fairwave_units::Time;

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEvent<'a> {
    /// Time of the event. Events come in order of time.
    pub time: Time,
    /// Kind of event.
    pub what: TraceKind,
    /// The link, for an event at a link.
    pub link: Option<TraceLink<'a>>,
    /// Owner of the packet.
    pub owner: TraceOwner,
    /// The packet.
    pub packet: TracePacket,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// It was sent: data by the source, an acknowledgement by the sink.
    Sent,
    /// Data were sent again.
    Resent,
    /// It entered a link or its queue.
    Entered,
    /// A link's queue had no room for it, or its discipline dropped it.
    Dropped,
    /// It was lost at random before it entered a link.
    Lost,
    /// It arrived: data at the sink, including duplicates; an acknowledgement at the source.
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

/// A link, named as in the summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceLink<'a> {
    /// Index in [`crate::Summary::links`].
    pub index: u32,
    /// Its name, "d1:in" or "s1:out" at end nodes.
    pub name: &'a str,
    /// Its capacity.
    pub capacity_bps: f64,
}

/// Owner of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOwner {
    /// A session, by its index in the scenario.
    Session(u32),
    /// A flow of background traffic.
    Background {
        /// Index of its table in the scenario.
        table: u32,
        /// Its slot among the flows of the run; slots are reused.
        place: u32,
        /// Number of earlier flows in this slot.
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
    /// Contents of the packet.
    pub content: TraceContent,
}

/// Contents of a packet. Numbers count a session's data packets from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceContent {
    /// The data packet of this number.
    Data(u64),
    /// An acknowledgement.
    Ack {
        /// The first number that the receiver has not received.
        next: u64,
        /// Received ranges beyond that, newest first, with exclusive ends; empty ones last (RFC 2018).
        blocks: [(u64, u64); 3],
    },
    /// A message of a session that sets its own rate (UDT, RBUDP).
    Message {
        /// UDT's are counted in each direction; RBUDP's has the number of the request that it makes or answers.
        number: u64,
        /// Whether the source sent it, and not the sink.
        to_sink: bool,
    },
}
