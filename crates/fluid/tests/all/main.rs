//! Integration tests of the crate in one binary, which links once and runs tests of all files in parallel.
#![allow(clippy::disallowed_methods, reason = "tests may compute what they expect with the system's library")]

mod random_instances;
mod sperc;
mod tally;
