//! Fates of packets, by the reports of their sink and the judgement of their source.

use fairwave_units::{Duration, Time};

use crate::wire::packet_runs::PieceAt;

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has arrived.
    Arrived,
    /// It is lost.
    Lost,
    /// It was lost, and has arrived after all.
    Late,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its number.
    pub number: u64,
    /// Piece that it carried.
    pub piece: PieceAt,
    /// When it was sent, to the microsecond; of the last 71 minutes.
    pub sent: Time,
    /// Its outcome.
    pub fate: Fate,
}

/// How many packets a report settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Those that arrived and were not lost before.
    pub arrived: u64,
    /// Of them, those that an earlier report missed.
    pub late: u64,
    /// Those that are lost.
    pub lost: u64,
    /// Those that were lost, and arrived after all.
    pub spurious: u64,
    /// How much later than one that is late another was sent that is known to have arrived before it: the most.
    pub lateness: Duration,
}

/// How a source judges what a report misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// When the report came.
    pub now: Time,
    /// How far packets may overtake each other.
    pub window: Duration,
    /// For how long a lost packet is in sight, from when it was sent.
    pub sight: Duration,
}

/// Changes that a report makes to the data to resend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// These pieces are lost, and go again.
    pub needed: Vec<PieceAt>,
    /// These were lost, and need not go again if they have not: they arrived after all.
    pub in_vain: Vec<PieceAt>,
}
