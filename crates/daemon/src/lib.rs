//! The end node of a machine: one process that shares the machine's capacities among the sessions of all its
//! processes and users.
//!
//! Data, keys and the wire stay in the processes. They say in shared memory what each of their sessions uses and wants
//! (`fairwave-table`), and the daemon answers there what each may use; the rule that decides it is
//! [`Machine`](fairwave_proto::Machine), which knows no socket and no clock.
//!
//! - [`Settings`]: how a daemon is set up, whoever says so: options of a command or a file.
//! - [`MachineSnapshot`]: all that can be seen of a machine at a tick. `status`, `top`, metrics and the live page
//!   render this and nothing else.

#![cfg_attr(test, allow(non_snake_case))]

pub mod config;
mod counters;
mod hangup;
pub mod metrics;
pub mod notify;
mod settings;
mod snapshot;

pub use counters::CardCounters;
pub use hangup::on_hangup;
pub use settings::{CardSettings, Settings, UserSettings};
pub use snapshot::{
    DaemonCounts, MachineSnapshot, NodeSnapshot, OtherTraffic, RowSnapshot, SNAPSHOT_VERSION, ShownState, UserSnapshot,
};
