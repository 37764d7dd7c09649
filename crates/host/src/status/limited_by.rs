//! The causes that can limit a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What limits a session: one word for each cause, for people and for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// What the network between both ends carries.
    Path,
    /// The other end owes an answer, or did so just now.
    Silence,
    /// Too much got lost on a path that is said to be dedicated.
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
    /// What a user allows at this end.
    Limit,
    /// There is nothing to send.
    Idle,
    /// What is there already is compared with what would come.
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
