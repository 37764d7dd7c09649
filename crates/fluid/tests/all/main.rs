//! Integration tests of the crate in one binary, which links once and runs tests of all files in parallel.

mod random_instances;
mod tally;
