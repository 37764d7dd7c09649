//! The taker: it requests, verifies and writes files, and resumes where an earlier transfer stopped.
//!
//! The coordinator is `taker`; `list`, `fetch`, `disk` and `resume` are what it uses.

pub(crate) mod disk;
pub(crate) mod fetch;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod news;
pub(crate) mod options;
pub(crate) mod resume;
pub(crate) mod share_options;
pub(crate) mod take_error;
pub(crate) mod taker;
