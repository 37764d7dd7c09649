//! A table of background traffic: its paths, its flows and what they delivered.

use fairwave_units::Time;

use crate::route::Route;
use crate::web::Web;

/// A table of background traffic.
pub(crate) struct BackgroundTable {
    /// Draws the flows of web traffic; on-off sources draw for themselves.
    pub(crate) web: Option<Web>,
    /// Paths in both directions: one for all sources, or one for each.
    pub(crate) routes: Vec<[Route; 2]>,
    /// Bytes of a data packet and of an acknowledgement on the wire.
    pub(crate) bytes: [u32; 2],
    pub(crate) stop: Time,
    /// Indices of its flows in the simulator: one per source, or one per simultaneous web flow.
    pub(crate) flows: Vec<u32>,
    /// Those of `flows` that are finished, with no packet in the network.
    pub(crate) idle: Vec<u32>,
    /// Packets delivered by earlier flows of reused slots.
    pub(crate) delivered_before: u64,
}

/// Running totals of a table of background traffic, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackgroundCounts {
    /// Packets delivered for the first time.
    pub(crate) delivered: u64,
    /// Packets that arrived, including duplicates.
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
}

impl BackgroundTable {
    /// Bytes of a data packet on the wire.
    pub(crate) fn data_bytes(&self) -> u32 {
        self.bytes[0]
    }

    /// The paths of one of its sources.
    pub(crate) fn way(&self, source: u32) -> [Route; 2] {
        self.routes[source as usize % self.routes.len()]
    }
}
