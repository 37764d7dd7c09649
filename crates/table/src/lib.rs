//! The table in shared memory by which the processes of a machine share one capacity: a process writes a row for each
//! of its sessions, the daemon answers with its own row.
//!
//! There are no messages: a row costs a few stores, and is read at the instant of the daemon's tick. Rows come in
//! segments of [`ROWS`]. A segment is two memfds, both made, allocated and sealed by the daemon, so that no process can
//! truncate what another has mapped:
//!
//! - the process's: it writes, the daemon maps it read-only;
//! - the daemon's: no other process can ever map it for writing (`F_SEAL_FUTURE_WRITE`).
//!
//! This crate has no sockets, no rules and no sessions. It carries values, and the reader of another process's row gets
//! a valid [`ProcessRow`] or an error, for any content.
//!
//! - [`DaemonSegment`] and [`ProcessSegment`]: the two ends. Read these first.
//! - [`ProcessRow`], with a [`Holding`] where its session has one, [`GrantRow`], [`TickReport`]: the content of rows,
//!   as values; their layout is in their files.
//!
//! The protocol of a row is a sequence lock ("Rows that are read while they are written" in
//! docs/explanation/design-notes.md). `unsafe` is only in `mapping`: how memory that other processes write becomes a
//! slice of atomics.

#![cfg_attr(test, allow(non_snake_case))]

mod daemon_segment;
mod error;
mod grant_row;
mod holding;
mod label;
mod layout;
mod mapping;
#[cfg_attr(not(target_os = "linux"), path = "no_memory.rs")]
mod memory;
mod process_row;
mod process_segment;
mod rate_word;
mod seqlock;
mod tick_report;
mod used;
mod word;

pub use daemon_segment::{DaemonSegment, SegmentMemory};
pub use error::{RowError, TableError};
pub use grant_row::{GrantRow, GrantState};
pub use holding::Holding;
pub use layout::{
    HEAD_WORDS, LABEL_WORDS, PROCESS_ROW_WORDS, PROCESSES_A_USER, ROWS, ROWS_A_USER, ROWS_IN_ALL, VERSION,
};
pub use process_row::{ProcessRow, Remote};
pub use process_segment::{ProcessSegment, RowPlace};
pub use tick_report::TickReport;
