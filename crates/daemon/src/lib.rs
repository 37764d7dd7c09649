//! The end node of a machine: one process that shares the machine's capacities among the sessions of all its processes
//! and users.
//!
//! Data, keys and the wire stay in the processes. They report the measured and desired rates of their sessions in
//! shared memory (`fairwave-table`), and the daemon writes the grants there; the rule that decides them is
//! [`Machine`](fairwave_node::Machine), which knows no socket and no clock. This crate carries no data and enforces
//! nothing; docs/explanation/security.md describes whom it trusts.
//!
//! - [`Daemon`]: a running daemon. Read this first; it has two threads, the control socket's (connections and requests)
//!   and the ticker (the rows, once per control interval).
//! - [`Settings`]: the configuration of a daemon, from the options of a command or a file.
//! - [`MachineSnapshot`](fairwave_host::machine::MachineSnapshot): the visible state of a machine at a tick. `status`,
//!   `top`, metrics and the live page render this and nothing else.

#![cfg_attr(test, allow(non_snake_case))]

mod bind;
mod card_traffic;
mod cards;
pub mod config;
mod control_socket;
mod counters;
mod daemon;
mod fair;
mod hangup;
mod member_process;
pub mod metrics;
mod news;
pub mod notify;
mod settings;
mod shown;
mod ticker;
mod view;
mod visitor;

pub use bind::BindError;
pub use counters::CardCounters;
pub use daemon::{Daemon, DaemonError};
pub use hangup::on_hangup;
pub use settings::{CardSettings, Settings, UserSettings};
