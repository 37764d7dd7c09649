//! Whose end node a process has.

use std::path::PathBuf;

use fairwave_units::Rate;

/// Which end node the sessions of a process are to share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// The process's own capacity, without regard to other processes.
    #[default]
    Own,
    /// The machine's, where a daemon runs ([`usual_sockets`](crate::control_socket::usual_sockets)), also one that
    /// comes later; else the process's own.
    Auto,
    /// The machine's, whose daemon is at this socket.
    At(PathBuf),
}

/// Which end node the sessions of an endpoint share at present.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// The owner of its capacity.
    pub origin: NodeOrigin,
    /// Send capacity, if known.
    pub send: Option<Rate>,
    /// Receive capacity, if known.
    pub receive: Option<Rate>,
    /// The daemon's socket, if a daemon runs or ran.
    pub socket: Option<PathBuf>,
}

/// The owner of an end node.
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
