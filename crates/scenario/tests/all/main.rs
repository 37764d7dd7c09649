//! Integration tests of the crate in one binary, which links once and runs tests of all files in parallel.

mod companions;
mod meaning;
mod mistakes;
mod never_panics;
mod page;
mod shipped;
mod topology;
