//! The causes that can limit a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The limit of a session: one word for each cause, for people and for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The capacity of the network between both ends.
    Path,
    /// The other end owes an answer, or did so just now.
    Silence,
    /// High loss on a path that was declared dedicated.
    Breaker,
    /// The sink asks for no more at a time than it has room for.
    Window,
    /// This end's node.
    Node,
    /// The other end's node, or what a user allows there.
    #[serde(rename = "peer node")]
    PeerNode,
    /// The disk at this end.
    Disk,
    /// The disk at the other end.
    #[serde(rename = "peer disk")]
    PeerDisk,
    /// A user's limit at this end.
    Limit,
    /// There is nothing to send.
    Idle,
    /// Existing files are compared with the incoming ones.
    Comparing,
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "path",
            Self::Silence => "silence",
            Self::Breaker => "breaker",
            Self::Window => "window",
            Self::Node => "node",
            Self::PeerNode => "peer node",
            Self::Disk => "disk",
            Self::PeerDisk => "peer disk",
            Self::Limit => "limit",
            Self::Idle => "idle",
            Self::Comparing => "comparing",
        })
    }
}
