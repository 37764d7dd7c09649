//! Integration tests of the crate, in one binary: one link, and tests of all files share the processors.

mod max_min;
mod response;
mod tally;
