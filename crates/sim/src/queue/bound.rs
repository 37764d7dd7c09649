//! Limit of a queue.

/// Limit of the queue at a link. It excludes the packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueBound {
    Packets(u64),
    Bytes(u64),
}

impl QueueBound {
    /// Whether a queue of `packets` and `bytes` has room for `more` bytes.
    pub(crate) fn has_room(self, packets: usize, bytes: u64, more: u32) -> bool {
        match self {
            Self::Packets(limit) => (packets as u64) < limit,
            Self::Bytes(limit) => bytes + u64::from(more) <= limit,
        }
    }
}
