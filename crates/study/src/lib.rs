//! Sweeps: a scenario file over a grid of parameters and many seeds, each run identified by its content, and one table
//! of results, with a row per run.
//!
//! A [`Study`] describes the runs, and runs any one of them. [`Results`] collects their results: next to the requested
//! Parquet file it keeps a journal, to which each run's row is appended as it ends, so that a killed process loses only
//! the runs in progress. At the end the rows are written to the Parquet file in the order of the study, and the journal
//! is removed.
//!
//! It is not a scheduler. The caller decides how many runs are made in parallel, and where.
//!
//! Read [`Study`] and [`Results`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod cell;
mod error;
mod file;
mod grid;
mod interval;
mod journal;
mod league;
mod results;
mod row;
mod study;
mod system;
mod table;
#[cfg(test)]
mod tests;

/// Identity of the code that makes runs: builds of the same sources have the same identity on any machine. It is part
/// of every run's key, and is stored in files of results.
pub const BUILD: &str = env!("FAIRWAVE_BUILD");

pub use cell::{Cell, Row, decode, encode};
pub use error::StudyError;
pub use grid::{Grid, Parameter};
pub use interval::{Mean, t_95};
pub use league::League;
pub use results::{Results, read_parquet, write_parquet};
pub use study::{RunKey, Seeds, Study, StudyCall};
pub use table::{Column, ColumnData, Table};
