//! Sweeps: a scenario file over a grid of parameters and many seeds, each run told apart by its content, and one table of
//! results, a row a run.
//!
//! A [`Study`] is what is to be run: it says which runs there are and runs any one of them. [`Results`] keeps what runs
//! gave: beside the Parquet file that is asked for grows a journal, to which each run's row is appended as it ends, so
//! that a process that is killed loses the runs under way alone. At the end the rows go into the Parquet file in the
//! order of the study, and the journal is removed.
//!
//! What it is not: a scheduler. Who calls decides how many runs go side by side, and where.
//!
//! Read [`Study`] and [`Results`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod cell;
mod error;
mod file;
mod grid;
mod interval;
mod journal;
mod results;
mod row;
mod study;
mod table;
#[cfg(test)]
mod tests;

/// Names the code that runs are made by: builds of the same sources have the same name, whoever builds them and how.
/// It is part of every run's key, and stands in files of results.
pub const BUILD: &str = env!("FAIRWAVE_BUILD");

pub use cell::{Cell, Row, decode, encode};
pub use error::StudyError;
pub use grid::{Grid, Parameter};
pub use interval::{Mean, t_95};
pub use results::{Results, read_parquet, write_parquet};
pub use study::{RunKey, Seeds, Study, StudyCall};
pub use table::{Column, ColumnData, Table};
