//! Whose end node a process has.

use std::path::PathBuf;

use fairwave_units::Rate;

/// Which end node the sessions of a process are to share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// The process's own capacity, as if there were no other process.
    #[default]
    Own,
    /// The machine's, where a daemon runs ([`usual_sockets`](crate::door::usual_sockets)), also one that comes later;
    /// else the process's own.
    Auto,
    /// The machine's, whose daemon is at this socket.
    At(PathBuf),
}

/// Which end node the sessions of an endpoint share at present.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Whose it is.
    pub origin: NodeOrigin,
    /// Send capacity, if known.
    pub send: Option<Rate>,
    /// Receive capacity, if known.
    pub receive: Option<Rate>,
    /// The daemon's socket, where there is or was one.
    pub socket: Option<PathBuf>,
}

/// Whose an end node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeOrigin {
    /// The process's own.
    #[default]
    Own,
    /// The machine's: a daemon divides the capacity.
    Daemon,
    /// The process's own while the daemon is gone: what it was granted last, and less each minute.
    Orphan,
    /// Unallocated: the daemon is gone, and the share of its capacity that other processes still hold is not known.
    /// Only the path sets the pace.
    Path,
}
