//! The name of a session at an end node, and its direction.

/// Names a session to the host that chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this host.
    Sending,
    /// To this host.
    Receiving,
}
