//! The native half of the Python package `fairwave`: arrays and texts in, arrays and texts out. It converts and
//! nothing else; words, defaults and plots are in `python/fairwave`.
//!
//! The interpreter's lock is released while Rust works. Mistakes are exceptions: `ScenarioError` for scenarios,
//! `ValueError` with the argument's name for the rest.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands the arguments of a call over by value")]

mod allocate;
mod arrow;
mod controller;
mod copy_options;
mod end_node;
mod error;
mod feedback;
mod interrupt;
mod league;
mod link_options;
mod max_min;
mod options;
mod own;
mod papers;
mod response;
mod run;
mod schemes;
mod server;
mod shared_link;
mod simulate;
mod sweep;
mod table;
mod transfer;
mod why;

#[pyo3::pymodule]
mod _core {
    /// Size of the largest scenario file.
    #[pymodule_export]
    const MAX_FILE_BYTES: usize = fairwave_scenario::Document::LARGEST_BYTES;

    /// Version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::allocate::allocate;
    #[pymodule_export]
    use crate::arrow::ArrowTable;
    #[pymodule_export]
    use crate::controller::Controller;
    #[pymodule_export]
    use crate::end_node::Allocator;
    #[pymodule_export]
    use crate::error::ScenarioError;
    #[pymodule_export]
    use crate::feedback::{aecp_control, xcp_control};
    #[pymodule_export]
    use crate::league::League;
    #[pymodule_export]
    use crate::max_min::max_min;
    #[pymodule_export]
    use crate::papers::{Outcome, papers_list, papers_run};
    #[pymodule_export]
    use crate::response::response;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::schemes::schemes;
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::shared_link::SharedLinks;
    #[pymodule_export]
    use crate::simulate::{shipped, simulate};
    #[pymodule_export]
    use crate::sweep::{Sweep, t_95};
    #[pymodule_export]
    use crate::table::{read_parquet, write_parquet};
    #[pymodule_export]
    use crate::transfer::{get, ls, put};
}
