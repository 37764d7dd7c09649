//! The end node of a machine: one process that shares the machine's capacities among the sessions of all its
//! processes and users.
//!
//! Data, keys and the wire stay in the processes. They say in shared memory what each of their sessions uses and wants
//! (`fairwave-table`), and the daemon answers there what each may use; the rule that decides it is
//! [`Machine`](fairwave_proto::Machine), which knows no socket and no clock. What this crate is not: it carries no data
//! and enforces nothing; docs/explanation/security.md says whom it trusts.
//!
//! - [`Daemon`]: one that runs. Read this first; behind it are two threads, the door (who comes, goes and asks) and the
//!   ticker (the rows, once a control interval).
//! - [`Settings`]: how a daemon is set up, whoever says so: options of a command or a file.
//! - [`MachineSnapshot`]: all that can be seen of a machine at a tick. `status`, `top`, metrics and the live page
//!   render this and nothing else; [`ask`] gets one from a daemon.

#![cfg_attr(test, allow(non_snake_case))]

mod asked;
mod bind;
mod cards;
pub mod config;
mod counters;
mod daemon;
mod door;
mod fair;
mod hangup;
pub mod metrics;
mod neighbours;
mod news;
pub mod notify;
mod seat;
mod settings;
mod shown;
mod snapshot;
mod ticker;
mod view;
mod visitor;

pub use asked::{AskError, ask, ask_any};
pub use bind::BindError;
pub use counters::CardCounters;
pub use daemon::{Daemon, DaemonError};
pub use hangup::on_hangup;
pub use settings::{CardSettings, Settings, UserSettings};
pub use snapshot::{
    DaemonCounts, MachineSnapshot, NodeSnapshot, OtherTraffic, RowSnapshot, SNAPSHOT_VERSION, ShownState, UserSnapshot,
};
