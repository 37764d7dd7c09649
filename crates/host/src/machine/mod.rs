//! The machine as its daemon sees it: the answer to [`Question::Status`](crate::control_socket::Question::Status).

mod asked;
mod snapshot;

pub use asked::{AskError, ask, ask_any};
pub use snapshot::{
    DaemonCounts, MachineSnapshot, NodeSnapshot, OtherTraffic, RowSnapshot, SNAPSHOT_VERSION, ShownState, UserSnapshot,
};
