//! Counts of a source.

use fairwave_units::Duration;

use crate::path::path_facts::PathCounts;

/// Counts of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Data packets sent.
    pub sent: u64,
    /// Bytes of streams that were lost, and go again.
    pub lost_bytes: u64,
    /// Data packets that were lost, as known at the time.
    pub lost: u64,
    /// Of them, those that came after all.
    pub spurious: u64,
    /// Data packets that came later than one that was sent after them, by a report's word; with those that were lost.
    pub late: u64,
    /// How late, of the last ten to twenty seconds: the most that is known for certain.
    pub lateness: Duration,
    /// Data packets that were reported to have arrived.
    pub arrived: u64,
    /// Of those, packets that routers marked (ECN).
    pub marked: u64,
    /// Bytes of those that arrived, as IP packets. Without a model of the path (dedicated ones, tunnels) they are taken
    /// for packets of the mean size.
    pub arrived_bytes: u64,
}

impl SenderCounts {
    /// The counts that describe the path.
    pub(crate) fn of_path(&self) -> PathCounts {
        let Self { arrived, lost, spurious, late, marked, arrived_bytes, .. } = *self;
        PathCounts { arrived, late, lost: lost.saturating_sub(spurious), marked, arrived_bytes }
    }
}
